"""Claims about the paper's Q: it is well defined, orders actions and improves policies.

Fact 2, Fact 3 and Proposition 1.
"""

from __future__ import annotations

import numpy as np

from belated.tabular import examples
from belated.tabular.claims.claim import EARLY, ENDING, EXACT, LITERAL, Claim
from belated.tabular.conditions import largest_interaction, reward_invariance, value_invariance
from belated.tabular.drmdp import Floats, Unrolled, unroll
from belated.tabular.policy_iteration import improve
from belated.tabular.random_problems import exact_problems, random_policy, random_problem
from belated.tabular.values import (
    TOLERANCE,
    expected_return,
    q_values,
    spread,
    td_operator,
    uniform,
)

# ---------------------------------------------------------------- Fact 2


def unique_fixed_point(rng: np.random.Generator, problems: int) -> Claim:
    """Iterate the TD operator from anywhere; compare its contraction with γ."""
    deviation = excess = 0.0
    for _ in range(problems):
        unrolled = unroll(random_problem(rng, kind="any", gamma=rng.uniform(0.5, 0.9)))
        policy, gamma = random_policy(unrolled, rng), unrolled.problem.gamma
        truth, q = q_values(unrolled, policy), 10 * rng.normal(size=len(unrolled.node))
        other = q + rng.normal(size=len(q))
        step = td_operator(unrolled, policy, q) - td_operator(unrolled, policy, other)
        excess = max(excess, np.abs(step).max() - gamma * np.abs(q - other).max())
        for _ in range(300):
            q = td_operator(unrolled, policy, q)
        deviation = max(deviation, float(np.abs(q - truth).max()))
    return Claim(
        "Fact 2", "Q^π is the unique fixed point of its TD loss; the operator contracts by γ",
        "any reward, any policy of Π_s, γ < 1, any data that cover all segments",
        problems, deviation, deviation < TOLERANCE and excess < TOLERANCE,
    )  # fmt: skip


# ---------------------------------------------------------------- Fact 3


def order_as_printed(rng: np.random.Generator, problems: int) -> Claim:
    """Past-invariance alone: the paper's own example, and random monotone rewards."""
    failed = 0
    for _ in range(problems):
        unrolled = unroll(random_problem(rng, kind="monotone", overlap=0))
        q = q_values(unrolled, random_policy(unrolled, rng))
        failed += value_invariance(unrolled, q).order is not None
    unrolled = unroll(examples.big_and_little())
    q = q_values(unrolled, _always(unrolled, 0))
    witness = value_invariance(unrolled, q).order
    return Claim(
        "Fact 3", "the order of actions by Q does not depend on the history",
        "past-invariant, as printed", problems + 1, largest_interaction(unrolled, q),
        witness is None, f"A_b/A_l/B: {witness}. Also fails on {failed} of {problems} random ones",
    )  # fmt: skip


def order_under_the_exact_condition(rng: np.random.Generator, problems: int) -> Claim:
    """Differences of actions' values must not depend on the history at all."""
    deviation = 0.0
    for unrolled in exact_problems(rng, problems):
        q = q_values(unrolled, random_policy(unrolled, rng))
        deviation = max(deviation, largest_interaction(unrolled, q))
    return Claim(
        "Fact 3", "the order of actions by Q does not depend on the history", EXACT, problems,
        deviation, deviation < TOLERANCE,
    )  # fmt: skip


def order_with_early_ends() -> Claim:
    """A plain sum whose episodes can end inside an interval."""
    return _order_on(unroll(examples.early_end()), EARLY)


def order_with_the_literal_overlap() -> Claim:
    """A reward that is strongly past-invariant only for histories of at least c = 2 steps."""
    return _order_on(unroll(examples.entangled_overlap()), LITERAL)


def order_with_ends_after_overlap() -> Claim:
    """The paper's r_c: an end forgoes what the past would have been worth in the next interval."""
    return _order_on(unroll(examples.end_after_overlap()), ENDING)


def _order_on(unrolled: Unrolled, condition: str) -> Claim:
    assert reward_invariance(unrolled).differences is None
    q = q_values(unrolled, uniform(unrolled))
    witness = value_invariance(unrolled, q).order
    return Claim(
        "Fact 3", "the order of actions by Q does not depend on the history", condition, 1,
        largest_interaction(unrolled, q), witness is None, str(witness),
    )  # fmt: skip


# ---------------------------------------------------------------- Proposition 1


def improvement_as_printed() -> Claim:
    """The paper's own example of past-invariance."""
    unrolled = unroll(examples.big_and_little())
    return _improvement_on(unrolled, _always(unrolled, 0), "past-invariant, as printed: A_b/A_l/B")


def improvement_under_the_exact_condition(rng: np.random.Generator, problems: int) -> Claim:
    """No choice may lose value when the policy becomes greedy, whichever histories it looks at."""
    deviation = 0.0
    for unrolled in exact_problems(rng, problems):
        q = q_values(unrolled, random_policy(unrolled, rng))
        better = q_values(unrolled, improve(unrolled, q, rng))
        deviation = max(deviation, float((q - better).max()))
    return Claim(
        "Proposition 1", "greedy policies of Π_s improve: Q^{π'} ≥ Q^π everywhere", EXACT,
        problems, deviation, deviation < TOLERANCE,
    )  # fmt: skip


def improvement_with_early_ends() -> Claim:
    """A plain sum whose episodes can end inside an interval."""
    unrolled = unroll(examples.early_end())
    return _improvement_on(unrolled, _always(unrolled, 0), EARLY)


def improvement_with_the_literal_overlap() -> Claim:
    """A reward that is strongly past-invariant only for histories of at least c = 2 steps."""
    unrolled = unroll(examples.entangled_overlap())
    table = np.array([[[0.5, 0.5], [0.4, 0.6]]])
    return _improvement_on(unrolled, spread(unrolled, table), LITERAL)


def improvement_with_ends_after_overlap() -> Claim:
    """The paper's r_c: an end forgoes what the past would have been worth in the next interval."""
    unrolled = unroll(examples.end_after_overlap())
    return _improvement_on(unrolled, _always(unrolled, 1), ENDING)


def _improvement_on(unrolled: Unrolled, policy: Floats, condition: str) -> Claim:
    """Look for histories that mislead greedy policies, and take the worst ones."""
    q = q_values(unrolled, policy)
    rng = np.random.default_rng(0)
    attempts = [improve(unrolled, q, rng) for _ in range(50)]
    losses = [float((q - q_values(unrolled, attempt)).max()) for attempt in attempts]
    worst = attempts[int(np.argmax(losses))]
    return Claim(
        "Proposition 1", "greedy policies of Π_s improve: Q^{π'} ≥ Q^π everywhere", condition, 1,
        max(losses), max(losses) < TOLERANCE,
        f"a step loses {max(losses):.4g}; J goes from {expected_return(unrolled, policy):.4g} to "
        f"{expected_return(unrolled, worst):.4g}",
    )  # fmt: skip


def _always(unrolled: Unrolled, action: int) -> Floats:
    """The policy that takes the given action where a state has it, and action 0 elsewhere."""
    counts = np.bincount(unrolled.node)[unrolled.node]
    taken = np.where(counts > action, action, 0)
    policy: Floats = (unrolled.action == taken).astype(np.float64)
    return policy
