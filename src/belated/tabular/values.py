"""Exact values of policies, new (Eq. 3) and ordinary (Eq. 1), and the best policies.

A policy is an array with one probability for each choice of an `Unrolled` problem, which covers
Π_{τ,c}. Policies of Π_s are tables π(a | s, t − t_i) of shape (S, n_max, A); `spread` turns them
into the former.
"""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.sparse.linalg import MatrixRankWarning, spsolve

from belated.tabular.drmdp import Floats, Ints, Unrolled

TOLERANCE = 1e-9
"""Differences of values below this are rounding."""


def spread(unrolled: Unrolled, table: Floats) -> Floats:
    """Turn a table π(a | s, t − t_i) of Π_s into a probability for each choice.

    Raises:
        ValueError: if it is not a distribution over each state's actions.
    """
    policy: Floats = np.asarray(table, np.float64)[
        unrolled.state, unrolled.position, unrolled.action
    ]
    totals = np.bincount(unrolled.node, policy)
    if (policy < 0).any() or not np.allclose(totals, 1):
        raise ValueError("A policy's probabilities must add up to 1 over each state's actions.")
    return policy


def uniform(unrolled: Unrolled) -> Floats:
    """Return the policy that takes all actions with equal probability."""
    return 1.0 / np.bincount(unrolled.node)[unrolled.node]


def td_operator(unrolled: Unrolled, policy: Floats, q: Floats) -> Floats:
    """Apply the new Q's TD operator: the minimiser of Eq. 4 for a fixed target Q.

    It is the same for every data distribution that covers all choices, because the target depends
    on nothing but the choice.
    """
    values = np.bincount(unrolled.node, policy * q, len(unrolled.nodes))
    result: Floats = unrolled.reward + unrolled.problem.gamma * (unrolled.transition @ values)
    return result


def q_values(unrolled: Unrolled, policy: Floats) -> Floats:
    """Q^π(τ_{t_i−c:t+1}) of every choice, the fixed point of `td_operator`."""
    follow = _follow(unrolled, policy)
    return _solve(follow * unrolled.problem.gamma, unrolled.reward)


def expected_return(unrolled: Unrolled, policy: Floats, q: Floats | None = None) -> float:
    """J(π), from Q^π if it is known."""
    q = q_values(unrolled, policy) if q is None else q
    return float(unrolled.start[unrolled.node] @ (policy * q))


def visits(unrolled: Unrolled, policy: Floats, continuation: float = 1.0) -> Floats:
    """How often each choice occurs in an episode: a data distribution ρ, not normalised.

    Args:
        unrolled: the problem.
        policy: collects the data.
        continuation: the probability with which collecting goes on after each step. Must be
            less than 1 for problems whose episodes need not end.
    """
    first = unrolled.start[unrolled.node] * policy
    return _solve(_follow(unrolled, policy).T * continuation, first)


def ordinary_q(unrolled: Unrolled, policy: Floats, data: Floats, *, phase: bool = True) -> Floats:
    """The fixed point of TD with an ordinary Q(s, t − t_i, a), or Q(s, a) without the phase.

    Choices that share an entry are averaged with the weights that the data give them. That is
    where the off-policy bias and the fixed-point bias come from.

    Args:
        unrolled: the problem.
        policy: π, whose actions the targets take.
        data: ρ, a weight for each choice, for example from `visits`.
        phase: whether Q sees the position in the interval.

    Returns:
        The value of the entry that each choice belongs to; NaN where there are no data.
    """
    columns = [unrolled.state, unrolled.action] + ([unrolled.position] if phase else [])
    _, entry = np.unique(np.stack(columns), axis=1, return_inverse=True)
    entry = entry.reshape(-1)
    total = np.bincount(entry, data)
    known = total > 0
    weight = np.divide(data, total[entry], out=np.zeros_like(data), where=known[entry])
    average = sparse.csr_matrix((weight, (entry, np.arange(len(entry)))))
    member = sparse.csr_matrix((np.ones(len(entry)), (np.arange(len(entry)), entry)))
    if not known.all():
        # Entries without data have no value, so no target may need one.
        reached = np.asarray(average @ _follow(unrolled, policy) @ member.toarray())
        if (reached[np.ix_(known, ~known)] > 0).any():
            raise ValueError("The policy takes actions for which there are no data.")
    follow = average @ _follow(unrolled, policy) @ member
    values = _solve(follow * unrolled.problem.gamma, average @ unrolled.reward)
    return np.where(known, values, np.nan)[entry]


def optimal(unrolled: Unrolled) -> tuple[Floats, Floats]:
    """The best policy of Π_{τ,c} and its Q, by policy iteration over the nodes."""
    policy = uniform(unrolled)
    while True:
        q = q_values(unrolled, policy)
        improved = greedy(unrolled, q, tolerance=0)
        gain = (td_operator(unrolled, improved, q) - q).max()
        if gain <= 1e-13 * max(1, np.abs(q).max()):  # rounding
            return improved, q
        policy = improved


def greedy(unrolled: Unrolled, q: Floats, tolerance: float = TOLERANCE) -> Floats:
    """The policy of Π_{τ,c} that takes the best action in each node; ties go to the first."""
    best = np.full(len(unrolled.nodes), -np.inf)
    np.maximum.at(best, unrolled.node, q)
    candidates = q >= best[unrolled.node] - tolerance
    return _first_of_each(unrolled.node, candidates)


def best_markov(
    unrolled: Unrolled, *, phase: bool = True, limit: int = 5_000
) -> tuple[Floats, float]:
    """The best deterministic policy of Π_s (without phase: of π(a | s)) and its J, by enumeration.

    Stochastic policies may do better: which histories a policy of Π_s meets depends on the policy.

    Raises:
        ValueError: if there are more than ``limit`` policies.
    """
    situation = np.stack([unrolled.state, unrolled.position if phase else 0 * unrolled.state])
    places, place = np.unique(situation, axis=1, return_inverse=True)
    place = place.reshape(-1)
    counts = [unrolled.problem.number_of_actions(int(state)) for state in places[0]]
    if np.prod(counts, dtype=float) > limit:
        raise ValueError(
            f"There are {np.prod(counts, dtype=float):.0f} deterministic policies, more than "
            f"{limit}: too many to try all of them."
        )
    best, best_return = uniform(unrolled), -np.inf
    for picks in itertools.product(*map(range, counts)):
        policy = (np.array(picks)[place] == unrolled.action).astype(float)
        value = expected_return(unrolled, policy)
        if value > best_return:
            best, best_return = policy, value
    return best, best_return


def _first_of_each(group: Ints, candidates: npt.NDArray[np.bool_]) -> Floats:
    chosen = np.flatnonzero(candidates)
    _, first = np.unique(group[chosen], return_index=True)
    policy = np.zeros(len(group))
    policy[chosen[first]] = 1
    return policy


def _follow(unrolled: Unrolled, policy: Floats) -> sparse.csr_matrix:
    """From choices to the choices that follow them under a policy."""
    choices = np.arange(len(policy))
    take = sparse.csr_matrix((policy, (unrolled.node, choices)), (len(unrolled.nodes), len(policy)))
    return unrolled.transition @ take


def _solve(matrix: sparse.csr_matrix, right: Floats) -> Floats:
    """Solve x = right + matrix·x."""
    system = sparse.identity(len(right), format="csc") - matrix.tocsc()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MatrixRankWarning)  # the error below says more
        solution: Floats = np.atleast_1d(spsolve(system, right))
    if not np.isfinite(solution).all():
        raise ValueError("There is no finite value: with γ = 1 every episode must end.")
    return solution
