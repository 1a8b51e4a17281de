"""Claims about the paper's Q: it is well defined, orders actions and improves policies.

Fact 2, Fact 3 and Proposition 1.
"""

from __future__ import annotations

import numpy as np

from belated.tabular import examples
from belated.tabular.claims.claim import (
    EARLY,
    ENDING,
    LITERAL,
    MEAN,
    PRINTED,
    Claim,
)
from belated.tabular.conditions import largest_interaction, reward_invariance, value_invariance
from belated.tabular.drmdp import Ends, Floats, TabularDRMDP
from belated.tabular.policy_iteration import improve
from belated.tabular.random_problems import random_policy, random_problem
from belated.tabular.unrolling import Unrolled, unroll
from belated.tabular.values import (
    TOLERANCE,
    expected_return,
    q_values,
    scale_of,
    spread,
    td_operator,
    uniform,
    visits,
)

# ---------------------------------------------------------------- Fact 2

_UNIQUE = "Q^π is the unique fixed point of its TD loss"


def unique_fixed_point(
    rng: np.random.Generator, problems: int, ends: Ends, discounted: bool
) -> Claim:
    """Solve for the fixed points of the loss under the data of another policy."""
    deviation = 0.0
    for _ in range(problems):
        gamma = rng.uniform(0.5, 0.99) if discounted else 1.0
        problem = random_problem(
            rng, kind="any", overlap=int(rng.integers(2)), max_length=int(rng.integers(1, 3)),
            ending="anywhere", ends=ends, gamma=gamma,
        )  # fmt: skip
        unrolled = unroll(problem)
        policy = random_policy(unrolled, rng)
        data = visits(unrolled, random_policy(unrolled, rng))
        solution, free = _fixed_points(unrolled, policy, data)
        truth = q_values(unrolled, policy)
        error = np.abs(solution - truth).max() / scale_of(truth)
        deviation = max(deviation, float(error), float(free))
    return Claim(
        "Fact 2", _UNIQUE,
        ("γ < 1" if discounted else "γ = 1 and every episode ends")
        + ", data of any policy that take in every segment",
        ends, problems, deviation, deviation < TOLERANCE, True,
    )  # fmt: skip


def fixed_points_without_data() -> Claim:
    """Leave one segment out of the data: its value is then anything, and others build on it."""
    unrolled = unroll(examples.off_policy_bias())
    data = visits(unrolled, uniform(unrolled))
    data[-1] = 0.0
    policy = uniform(unrolled)
    solution, free = _fixed_points(unrolled, policy, data)
    changed = np.abs(solution - q_values(unrolled, policy)).max()
    return Claim(
        "Fact 2", _UNIQUE, "data that leave a segment out", "either", 1, float(free), free == 0,
        False,
        f"without {unrolled.problem.describe(unrolled.trajectory(len(data) - 1))} the loss leaves "
        f"{free} value open; one of its fixed points is off by {changed:.4g}",
        "off_policy_bias",
    )  # fmt: skip


def _fixed_points(unrolled: Unrolled, policy: Floats, data: Floats) -> tuple[Floats, int]:
    """The shortest q with ρ·(Tq − q) = 0 for data ρ, and how many values are free.

    The gradient of the loss Σ ρ (q − stop(Tq))² is zero where the data say so, and where there are
    no data.
    """
    count = len(data)
    offset = td_operator(unrolled, policy, np.zeros(count))
    columns = [td_operator(unrolled, policy, unit) - offset for unit in np.eye(count)]
    weight = np.sqrt(data / data.max())[:, None]
    system = weight * (np.eye(count) - np.transpose(columns))
    solution, _, rank, _ = np.linalg.lstsq(system, weight[:, 0] * offset, rcond=1e-14)
    return solution, count - int(rank)


# ---------------------------------------------------------------- Fact 3

ORDER = "the order of actions by Q does not depend on the history"


def order_as_printed(ends: Ends) -> Claim:
    """Past-invariance alone: the paper's own example."""
    unrolled = unroll(examples.big_and_little(ends=ends))
    return _order_on(unrolled, _always(unrolled, 0), PRINTED, "big_and_little", expected=False)


def order_with_early_ends(ends: Ends) -> Claim:
    """A plain sum whose episodes can end inside an interval."""
    return _order_of(examples.early_end(ends=ends), EARLY, "early_end", ends == "absorb")


def order_with_early_ends_of_a_mean(ends: Ends) -> Claim:
    """A mean whose episodes can end inside an interval."""
    problem = examples.early_end_of_a_mean(ends=ends)
    return _order_of(problem, MEAN, "early_end_of_a_mean", ends == "absorb")


def order_with_the_literal_overlap() -> Claim:
    """A reward that is strongly past-invariant only for histories of at least c = 2 steps."""
    return _order_of(
        examples.entangled_overlap(), LITERAL, "entangled_overlap", False, endless=True
    )


def order_with_ends_after_overlap(ends: Ends) -> Claim:
    """The paper's r_c: an end forgoes what the past would have been worth in the next interval."""
    problem = examples.end_after_overlap(ends=ends)
    return _order_of(problem, ENDING, "end_after_overlap", ends == "absorb")


def _order_of(
    problem: TabularDRMDP, condition: str, example: str, expected: bool, endless: bool = False
) -> Claim:
    unrolled = unroll(problem)
    assert reward_invariance(unrolled).differences is None
    return _order_on(unrolled, uniform(unrolled), condition, example, expected, endless)


def _order_on(
    unrolled: Unrolled,
    policy: Floats,
    condition: str,
    example: str,
    expected: bool,
    endless: bool = False,
) -> Claim:
    q = q_values(unrolled, policy)
    witness = value_invariance(unrolled, q).order
    return Claim(
        "Fact 3", ORDER, condition, "either" if endless else unrolled.problem.ends, 1,
        largest_interaction(unrolled, q) / scale_of(q), witness is None, expected,
        "" if witness is None else str(witness), example,
    )  # fmt: skip


# ---------------------------------------------------------------- Proposition 1

IMPROVES = "greedy policies of Π_s improve: Q^{π'} ≥ Q^π everywhere"


def improvement_as_printed(ends: Ends) -> Claim:
    """The paper's own example of past-invariance."""
    unrolled = unroll(examples.big_and_little(ends=ends))
    return _improvement_on(unrolled, _always(unrolled, 0), PRINTED, "big_and_little", False)


def improvement_with_early_ends(ends: Ends) -> Claim:
    """A plain sum whose episodes can end inside an interval."""
    unrolled = unroll(examples.early_end(ends=ends))
    return _improvement_on(unrolled, _always(unrolled, 0), EARLY, "early_end", ends == "absorb")


def improvement_with_early_ends_of_a_mean(ends: Ends) -> Claim:
    """A mean whose episodes can end inside an interval."""
    unrolled = unroll(examples.early_end_of_a_mean(ends=ends))
    policy = _always(unrolled, 0)
    return _improvement_on(unrolled, policy, MEAN, "early_end_of_a_mean", ends == "absorb")


def improvement_with_the_literal_overlap() -> Claim:
    """A reward that is strongly past-invariant only for histories of at least c = 2 steps."""
    unrolled = unroll(examples.entangled_overlap())
    policy = spread(unrolled, np.array([[[0.5, 0.5], [0.4, 0.6]]]))
    return _improvement_on(unrolled, policy, LITERAL, "entangled_overlap", False, endless=True)


def improvement_with_ends_after_overlap(ends: Ends) -> Claim:
    """The paper's r_c: an end forgoes what the past would have been worth in the next interval."""
    unrolled = unroll(examples.end_after_overlap(ends=ends))
    policy = _always(unrolled, 1)
    return _improvement_on(unrolled, policy, ENDING, "end_after_overlap", ends == "absorb")


def _improvement_on(
    unrolled: Unrolled,
    policy: Floats,
    condition: str,
    example: str,
    expected: bool,
    endless: bool = False,
) -> Claim:
    """Look for histories that mislead greedy policies, and take the worst ones."""
    q = q_values(unrolled, policy)
    rng = np.random.default_rng(0)
    attempts = [improve(unrolled, q, rng) for _ in range(50)]
    losses = [float((q - q_values(unrolled, attempt)).max()) for attempt in attempts]
    worst, loss = attempts[int(np.argmax(losses))], max(losses)
    holds = loss / scale_of(q) < TOLERANCE
    evidence = (
        f"a step loses {loss:.4g}; J goes from {expected_return(unrolled, policy):.4g} to "
        f"{expected_return(unrolled, worst):.4g}"
    )
    return Claim(
        "Proposition 1", IMPROVES, condition, "either" if endless else unrolled.problem.ends, 1,
        loss / scale_of(q), holds, expected, "" if holds else evidence, example,
    )  # fmt: skip


def _always(unrolled: Unrolled, action: int) -> Floats:
    """The policy that takes the given action where a state has it, and action 0 elsewhere."""
    counts = np.bincount(unrolled.node)[unrolled.node]
    taken = np.where(counts > action, action, 0)
    policy: Floats = (unrolled.action == taken).astype(np.float64)
    return policy
