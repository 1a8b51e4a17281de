"""Every claim of the paper's theory, checked: under which condition it holds, and where it fails.

Each function here checks one claim and says what it found. The conditions are exact where they
can be: "strongly past-invariant at every split" means that the reward separates into a part for the
history and a part for what follows, wherever the window is cut, its overlap included.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from belated.envs.rewards import IntervalReward as Named
from belated.envs.rewards import Max, Square, Sum, WeightedSum, Window
from belated.tabular import examples
from belated.tabular.conditions import largest_interaction, reward_invariance, value_invariance
from belated.tabular.drmdp import Floats, Segment, TabularDRMDP, Unrolled, unroll
from belated.tabular.policy_iteration import improve, iterate
from belated.tabular.random_problems import random_policy, random_problem
from belated.tabular.values import (
    TOLERANCE,
    best_markov,
    expected_return,
    optimal,
    ordinary_q,
    q_values,
    spread,
    td_operator,
    uniform,
    visits,
)

EXACT = (
    "strongly past-invariant at every split; episodes end only where intervals do, for c ≥ 2 never"
)
EARLY = "strongly past-invariant (a plain sum), but an episode may end inside an interval, γ < 1"
LITERAL = "c = 2, strongly past-invariant as printed (histories of at least c steps)"
ENDING = "c = 2, strongly past-invariant at every split (r_c), but an episode may end"


@dataclass(frozen=True)
class Claim:
    """What was found about a claim.

    Attributes:
        name: where it stands in the paper.
        statement: what it says.
        condition: on which problems it was checked.
        problems: how many these were.
        deviation: the largest deviation from what is claimed.
        holds: whether the claim held on all of them.
        evidence: the figures, or the counterexample.
    """

    name: str
    statement: str
    condition: str
    problems: int
    deviation: float
    holds: bool
    evidence: str = ""


def check_claims(problems: int = 1_000, seed: int = 0) -> Iterator[Claim]:
    """Check all claims, one after the other.

    Args:
        problems: how many random problems the central claims are checked on.
        seed: seeds the random problems.
    """
    rng = np.random.default_rng(seed)
    some = max(1, problems // 10)
    yield optimum_with_history(rng, some)
    yield no_optimum_without_history()
    yield unique_fixed_point(rng, some)
    yield order_as_printed(rng, some)
    yield order_under_the_exact_condition(rng, problems)
    yield order_with_early_ends()
    yield order_with_the_literal_overlap()
    yield order_with_ends_after_overlap()
    yield improvement_as_printed()
    yield improvement_under_the_exact_condition(rng, problems)
    yield improvement_with_early_ends()
    yield improvement_with_the_literal_overlap()
    yield improvement_with_ends_after_overlap()
    yield fixed_point_bias()
    yield off_policy_bias()
    yield optimum_of_big_and_little()
    yield optimum_under_the_exact_condition(rng, problems)
    yield optimum_with_early_ends()
    yield smaller_overlap(rng, some)
    yield markov_optimum_of_sums()
    yield markov_optimum_of_undiscounted_sums(rng, some)
    yield from paper_rewards()


# ---------------------------------------------------------------- Fact 1, Fact 2


def optimum_with_history(rng: np.random.Generator, problems: int) -> Claim:
    """Compare the optimum of Π_{τ,c} with that of policies that remember further back."""
    deviation = 0.0
    for _ in range(problems):
        problem = random_problem(rng, kind="any", overlap=int(rng.integers(2)), max_length=2)
        short, long = unroll(problem), unroll(_remember(problem, 1))
        deviation = max(deviation, abs(_best_return(short) - _best_return(long)))
    return Claim(
        "Fact 1", "an optimum exists in Π_τ", "any reward; against one more step of memory",
        problems, deviation, deviation < TOLERANCE,
    )  # fmt: skip


def no_optimum_without_history() -> Claim:
    """Fact 1's example: no policy of Π_s, stochastic ones included, is optimal."""
    unrolled = unroll(examples.xor())
    best = _best_return(unrolled)
    returns = []
    for p in np.linspace(0, 1, 11):
        table = np.tile([1.0, 0.0], (4, 2, 1))
        table[2] = [1 - p, p]
        returns.append(expected_return(unrolled, spread(unrolled, table)))
    return Claim(
        "Fact 1", "in the XOR example no optimum is in Π_s", "the example, γ = 0.99", 1,
        best - max(returns), max(returns) < best - TOLERANCE,
        f"J = {max(returns):.4g} for every π(·|B), {best:.4g} with the history",
    )  # fmt: skip


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
        witness is None, f"A_b/A_l/B: {witness}. Fails on {failed} of {problems} random ones too",
    )  # fmt: skip


def order_under_the_exact_condition(rng: np.random.Generator, problems: int) -> Claim:
    """Differences of actions' values must not depend on the history at all."""
    deviation = 0.0
    for unrolled in _exact_problems(rng, problems):
        q = q_values(unrolled, random_policy(unrolled, rng))
        deviation = max(deviation, largest_interaction(unrolled, q))
    return Claim(
        "Fact 3", "the order of actions by Q does not depend on the history", EXACT, problems,
        deviation, deviation < TOLERANCE,
    )  # fmt: skip


def _order_on(unrolled: Unrolled, condition: str) -> Claim:
    assert reward_invariance(unrolled).differences is None
    q = q_values(unrolled, uniform(unrolled))
    witness = value_invariance(unrolled, q).order
    return Claim(
        "Fact 3", "the order of actions by Q does not depend on the history", condition, 1,
        largest_interaction(unrolled, q), witness is None, str(witness),
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


# ---------------------------------------------------------------- Proposition 1


def improvement_under_the_exact_condition(rng: np.random.Generator, problems: int) -> Claim:
    """No choice may lose value when the policy becomes greedy, whichever histories are asked."""
    deviation = 0.0
    for unrolled in _exact_problems(rng, problems):
        q = q_values(unrolled, random_policy(unrolled, rng))
        better = q_values(unrolled, improve(unrolled, q, rng))
        deviation = max(deviation, float((q - better).max()))
    return Claim(
        "Proposition 1", "greedy policies of Π_s improve: Q^{π'} ≥ Q^π everywhere", EXACT,
        problems, deviation, deviation < TOLERANCE,
    )  # fmt: skip


def _improvement_on(unrolled: Unrolled, policy: Floats, condition: str) -> Claim:
    """Look for histories that lead greedy policies astray, and take those that do most."""
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


def improvement_as_printed() -> Claim:
    """The paper's own example of past-invariance."""
    unrolled = unroll(examples.big_and_little())
    return _improvement_on(unrolled, _always(unrolled, 0), "past-invariant, as printed: A_b/A_l/B")


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


# ---------------------------------------------------------------- biases of the ordinary Q


def fixed_point_bias() -> Claim:
    """Policy iteration from every start, with the ordinary Q and with the new one."""
    deviation, runs = 0.0, 0
    for gamma in (0.5, 0.9, 0.99, 1.0):
        unrolled = unroll(examples.fixed_point_bias(gamma))
        for p in (0.001, 0.1, 0.5, 0.9, 0.999):
            table = np.tile([1.0, 0.0], (5, 2, 1))
            table[0] = [1 - p, p]
            policy = spread(unrolled, table)
            ordinary = iterate(unrolled, policy, partial(on_policy_q, unrolled))[-1][1]
            new = expected_return(unrolled, improve(unrolled, q_values(unrolled, policy)))
            deviation = max(deviation, abs(ordinary + 0.495 * gamma), abs(new))
            runs += 1
    return Claim(
        "Fixed-point bias", "the ordinary Q leads to J = −0.495γ, the new one to J = 0",
        "the example; γ in {0.5, 0.9, 0.99, 1}, 0 < p < 1 (at p = 0 or 1 an action has no data)",
        runs, deviation, deviation < 1e-12,
        "in the proof Q(D, d) should be (p − 1)/(p + 1), not (p − 1)/2; the conclusion stands",
    )  # fmt: skip


def on_policy_q(unrolled: Unrolled, policy: Floats) -> Floats:
    """Return the ordinary Q learnt by TD from the policy's own data."""
    return ordinary_q(unrolled, policy, visits(unrolled, policy))


def off_policy_bias() -> Claim:
    """Data of two policies whose first and last actions go together."""
    unrolled = unroll(examples.off_policy_bias())
    data = np.zeros(len(unrolled.node))
    for first, last in ((0.9, 0.1), (0.1, 0.9)):  # the probability of the better action
        table = np.zeros((3, 2, 2))
        table[0], table[1], table[2] = [1 - first, first], [1 - last, last], [1, 0]
        data += visits(unrolled, spread(unrolled, table))
    ordinary = ordinary_q(unrolled, uniform(unrolled), data)
    new = q_values(unrolled, uniform(unrolled))
    at = [int(np.flatnonzero((unrolled.state == 1) & (unrolled.action == a))[0]) for a in (0, 1)]
    wrong, right = ordinary[at[1]] - ordinary[at[0]], new[at[1]] - new[at[0]]
    return Claim(
        "Off-policy bias", "mixed data mislead the ordinary Q, not the new one",
        "two steps; two data policies, good at one of them each", 1, abs(wrong - 0.1),
        bool(wrong < 0 < right),
        f"the better last action is worth 0.1 more: {right:.4g} by the new Q, {wrong:.4g} by the "
        "ordinary one",
    )  # fmt: skip


# ---------------------------------------------------------------- where the optimum is


def optimum_of_big_and_little() -> Claim:
    """The appendix's past-invariant problem whose optimum needs the history."""
    unrolled = unroll(examples.big_and_little())
    best, markov = _best_return(unrolled), best_markov(unrolled)[1]
    return Claim(
        "A_b/A_l/B", "past-invariance does not put an optimum into Π_s", "the example, γ = 0.99",
        1, best - markov, markov < best - TOLERANCE and not reward_invariance(unrolled).order,
        f"J = {markov:.4g} in Π_s (deterministic), {best:.4g} in Π_τ",
    )  # fmt: skip


def optimum_under_the_exact_condition(rng: np.random.Generator, problems: int) -> Claim:
    """Policy iteration within Π_s must end at the optimum of Π_{τ,c}."""
    deviation = 0.0
    for unrolled in _exact_problems(rng, problems):
        path = iterate(unrolled, random_policy(unrolled, rng), partial(q_values, unrolled))
        deviation = max(deviation, _best_return(unrolled) - path[-1][1])
    return Claim(
        "Strong past-invariance", "an optimum is in Π_s, and policy iteration finds it", EXACT,
        problems, deviation, deviation < TOLERANCE,
    )  # fmt: skip


def optimum_with_early_ends() -> Claim:
    """A plain sum whose episodes can end inside an interval."""
    unrolled = unroll(examples.early_end())
    best, markov = _best_return(unrolled), best_markov(unrolled)[1]
    return Claim(
        "Strong past-invariance", "an optimum is in Π_s", EARLY, 1,
        best - markov, best - markov < TOLERANCE,
        f"J = {markov:.4g} in Π_s (deterministic), {best:.4g} in Π_τ",
    )  # fmt: skip


def smaller_overlap(rng: np.random.Generator, problems: int) -> Claim:
    """A problem seen with a larger overlap: same optimum, same invariance."""
    deviation, same = 0.0, True
    for _ in range(problems):
        kind = rng.choice(["any", "monotone", "separable"])
        problem = random_problem(rng, kind=kind, overlap=int(rng.integers(2)), max_length=2)
        small, large = unroll(problem), unroll(_remember(problem, 1))
        deviation = max(deviation, abs(_best_return(small) - _best_return(large)))
        one, two = reward_invariance(small), reward_invariance(large)
        same &= (one.order is None) == (two.order is None)
        same &= (one.differences is None) == (two.differences is None)
    return Claim(
        "Appendix, c' < c", "a (past-invariant) problem with overlap c' is also one with c",
        "any, monotone and separable rewards", problems, deviation,
        deviation < TOLERANCE and same,
    )  # fmt: skip


def markov_optimum_of_sums() -> Claim:
    """The footnote on sum-form tasks."""
    unrolled = unroll(examples.phase_matters())
    best = _best_return(unrolled)
    returns = []
    for p in np.linspace(0, 1, 1001):  # the one state with a choice
        table = np.tile([1.0, 0.0], (3, 2, 1))
        table[1] = [1 - p, p]
        returns.append(expected_return(unrolled, spread(unrolled, table)))
    return Claim(
        "Footnote on sums", "sum-form tasks have optimal policies π(a | s)", "γ < 1", 1,
        best - max(returns), best - max(returns) < TOLERANCE,
        f"J ≤ {max(returns):.4g} for all π(a | s), {best:.4g} with the phase",
    )  # fmt: skip


def markov_optimum_of_undiscounted_sums(rng: np.random.Generator, problems: int) -> Claim:
    """Without a discount it does not matter when a reward is revealed."""
    deviation = 0.0
    for _ in range(problems):
        problem = random_problem(rng, kind="sum", overlap=0, ends="anywhere", gamma=1.0)
        unrolled = unroll(problem)
        gap = _best_return(unrolled) - best_markov(unrolled, phase=False)[1]
        deviation = max(deviation, gap)
    return Claim(
        "Footnote on sums", "sum-form tasks have optimal policies π(a | s)",
        "γ = 1, c = 0, every episode ends", problems, deviation, deviation < TOLERANCE,
    )  # fmt: skip


# ---------------------------------------------------------------- the paper's own rewards

_PER_STEP = (-2.0, 0.5, 1.0, 3.0)


def paper_rewards() -> Iterator[Claim]:
    """Say which of the paper's rewards are past-invariant, and which strongly so."""
    rewards: list[tuple[str, Named, int]] = [
        ("Sum", Sum(), 0),
        ("Sum with overlap (r_c)", Sum(), 2),
        ("Weighted sum", WeightedSum((1.0, 0.3, 0.7)), 0),
        ("Max", Max(), 0),
        ("Square", Square(), 0),
    ]
    for name, reward, overlap in rewards:
        yield from _invariance_of(name, _one_state(reward, overlap))
    # Point Reach: the best column of an interval, for the columns 0, 1, 2 and 3.
    columns = dataclasses.replace(
        _one_state(Sum(), 0), reward=lambda segment: max(float(step[1]) for step in segment if step)
    )
    yield from _invariance_of("Point Reach (best column)", columns)


def _invariance_of(name: str, problem: TabularDRMDP) -> Iterator[Claim]:
    found = reward_invariance(unroll(problem), every_split=True)
    for statement, witness in (
        ("is past-invariant", found.order),
        ("is strongly past-invariant", found.differences),
    ):
        deviation = 0.0
        if witness is not None:
            (a, b), (c, d) = witness.values
            deviation = abs((a - b) - (c - d))
        yield Claim(
            f"Reward {name}", statement, "n = 3, per-step rewards −2, 0.5, 1, 3; every split", 1,
            deviation, witness is None, "" if witness is None else str(witness),
        )  # fmt: skip


def _one_state(reward: Named, overlap: int) -> TabularDRMDP:
    """One state in which any sequence of per-step rewards can be had."""

    def worth(segment: Segment) -> float:
        window = Window(overlap)
        for step in segment:
            window.rewards.append(0.0 if step is None else _PER_STEP[step[1]])
            window.mask.append(step is not None)
        return reward(window)

    actions = len(_PER_STEP)
    return TabularDRMDP(
        np.ones((1, actions, 1)), np.ones(1), np.array([0, 0, 1.0]), worth, 0.9, overlap=overlap
    )


# ---------------------------------------------------------------- shared


def _exact_problems(rng: np.random.Generator, problems: int) -> Iterator[Unrolled]:
    """Random problems for the exact condition: endless ones, and ones that end with intervals."""
    for index in range(problems):
        if index % 2:
            overlap = int(rng.integers(2))
            yield unroll(random_problem(rng, overlap=overlap, ends="at interval ends"))
        else:
            yield unroll(random_problem(rng))


def _remember(problem: TabularDRMDP, steps: int) -> TabularDRMDP:
    """The same problem with a larger overlap, whose reward ignores what was added."""
    reward: Callable[[Segment], float] = problem.reward
    return dataclasses.replace(
        problem,
        overlap=problem.overlap + steps,
        reward=lambda segment: reward(segment[steps:]),
    )


def _always(unrolled: Unrolled, action: int) -> Floats:
    """The policy that takes an action wherever there is a choice."""
    counts = np.bincount(unrolled.node)[unrolled.node]
    taken = np.where(counts > action, action, 0)
    policy: Floats = (unrolled.action == taken).astype(np.float64)
    return policy


def _best_return(unrolled: Unrolled) -> float:
    policy, q = optimal(unrolled)
    return expected_return(unrolled, policy, q)
