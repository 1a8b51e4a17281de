"""Policy iteration in Π_s, with the new Q or the ordinary one."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from belated.tabular.drmdp import Floats
from belated.tabular.unrolling import Unrolled
from belated.tabular.values import expected_return, greedy

Evaluate = Callable[[Floats], Floats]
"""From a policy to a value for each choice, NaN where it is not known."""


def improve(unrolled: Unrolled, q: Floats, rng: np.random.Generator | None = None) -> Floats:
    """The greedy policy of Π_s: in each (s, t − t_i) the best action after *one* history.

    Proposition 1 takes an arbitrary one, because Fact 3 says that all agree. Where they do not,
    the outcome depends on which one is taken.

    Args:
        unrolled: the problem.
        q: a value for each choice; choices of unknown value (NaN) are not taken.
        rng: draws the histories; by default the first one found is taken.
    """
    known = np.where(np.isnan(q), -np.inf, q)
    best = greedy(unrolled, known) * unrolled.action
    wanted = np.bincount(unrolled.node, best).astype(np.int64)  # each node's best action
    order = np.arange(len(q)) if rng is None else rng.permutation(len(q))
    _, first = np.unique(unrolled.place[order], return_index=True)
    asked = unrolled.node[order[first]]  # a node for each place
    policy: Floats = (unrolled.action == wanted[asked][unrolled.place]).astype(np.float64)
    return policy


def iterate(
    unrolled: Unrolled, policy: Floats, evaluate: Evaluate, iterations: int = 100
) -> list[tuple[Floats, float]]:
    """Evaluate and improve until the policy no longer changes.

    Args:
        unrolled: the problem.
        policy: where to start.
        evaluate: how to evaluate, for example ``partial(q_values, unrolled)``.
        iterations: the largest number of iterations.

    Returns:
        Each policy with its true J, the first one included.
    """
    path = [(policy, expected_return(unrolled, policy))]
    for _ in range(iterations):
        improved = improve(unrolled, evaluate(policy))
        if np.array_equal(improved, policy):
            break
        policy = improved
        path.append((policy, expected_return(unrolled, policy)))
    return path
