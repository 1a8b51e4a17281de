"""Claims about optimal policies: how much of the history and the phase they need.

Fact 1, the appendix on strong past-invariance and on overlaps, and the footnote on sums.

If a stochastic policy of Π_s is optimal, so is every deterministic one that takes only actions
which the former takes, unless γ = 1 and it never ends: they are optimal wherever the former comes.
So deterministic ones decide whether there is an optimum in Π_s.
"""

from __future__ import annotations

import dataclasses

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
from belated.tabular.conditions import reward_invariance
from belated.tabular.drmdp import Ends, Reward, TabularDRMDP
from belated.tabular.markov import best_markov
from belated.tabular.random_problems import (
    Kind,
    random_problem,
)
from belated.tabular.unrolling import Unrolled, unroll
from belated.tabular.values import TOLERANCE, expected_return, optimal, scale_of

# ---------------------------------------------------------------- Fact 1


def optimum_with_history(rng: np.random.Generator, problems: int, ends: Ends) -> Claim:
    """Compare the optimum of Π_{τ,c} with that of policies that remember further back."""
    deviation = 0.0
    for _ in range(problems):
        overlap = int(rng.integers(2))
        problem = random_problem(
            rng, kind="any", overlap=overlap, max_length=2, ending="anywhere", ends=ends
        )
        short, long = unroll(problem), unroll(_remember(problem, 1))
        gap = abs(_best_return(short) - _best_return(long))
        deviation = max(deviation, gap / _scale(short))
    return Claim(
        "Fact 1", "an optimum exists in Π_τ", "any reward; against one more step of memory", ends,
        problems, deviation, deviation < TOLERANCE, True,
    )  # fmt: skip


def no_optimum_without_history(ends: Ends) -> Claim:
    """Fact 1's example."""
    claim = _gap_on(
        unroll(examples.xor(ends=ends)), "Fact 1", "in the XOR example an optimum is in Π_s",
        "the example, γ = 0.99", "xor", expected=False,
    )  # fmt: skip
    statement = "in the XOR example no optimum is in Π_s"
    return dataclasses.replace(claim, statement=statement, holds=not claim.holds, expected=True)


# ---------------------------------------------------------------- strong past-invariance

STRONG = "Strong past-invariance"
IN_PI_S = "an optimum is in Π_s"


def optimum_as_printed(ends: Ends) -> Claim:
    """The appendix's past-invariant problem whose optimum needs the history."""
    unrolled = unroll(examples.big_and_little(ends=ends))
    assert reward_invariance(unrolled).order is None
    return _gap_on(unrolled, "Past-invariance", IN_PI_S, PRINTED, "big_and_little", expected=False)


def optimum_with_early_ends(ends: Ends) -> Claim:
    """A plain sum whose episodes can end inside an interval."""
    unrolled = unroll(examples.early_end(ends=ends))
    return _gap_on(unrolled, STRONG, IN_PI_S, EARLY, "early_end", ends == "absorb")


def optimum_with_early_ends_of_a_mean(ends: Ends) -> Claim:
    """A mean whose episodes can end inside an interval."""
    unrolled = unroll(examples.early_end_of_a_mean(ends=ends))
    return _gap_on(unrolled, STRONG, IN_PI_S, MEAN, "early_end_of_a_mean", ends == "absorb")


def optimum_with_the_literal_overlap() -> Claim:
    """An endless problem, strongly past-invariant for histories of at least c = 2 steps."""
    unrolled = unroll(examples.entangled_state())
    assert reward_invariance(unrolled).differences is None
    claim = _gap_on(unrolled, STRONG, IN_PI_S, LITERAL, "entangled_state", expected=False)
    return dataclasses.replace(claim, ends="either")


def optimum_with_ends_after_overlap(ends: Ends) -> Claim:
    """The paper's r_c: an end forgoes what the past would have been worth in the next interval."""
    unrolled = unroll(examples.end_after_overlap(ends=ends))
    return _gap_on(unrolled, STRONG, IN_PI_S, ENDING, "end_after_overlap", ends == "absorb")


# ---------------------------------------------------------------- overlaps


def smaller_overlap(rng: np.random.Generator, problems: int, ends: Ends) -> Claim:
    """A problem viewed with a larger overlap has the same optimum and the same invariance."""
    deviation, same = 0.0, True
    for _ in range(problems):
        kind = rng.choice(["any", "monotone", "separable"])
        problem = random_problem(
            rng, kind=kind, overlap=int(rng.integers(2)), max_length=2, ending="anywhere", ends=ends
        )
        small, large = unroll(problem), unroll(_remember(problem, 1))
        gap = abs(_best_return(small) - _best_return(large))
        deviation = max(deviation, gap / _scale(small))
        one, two = reward_invariance(small), reward_invariance(large)
        same &= (one.order is None) == (two.order is None)
        same &= (one.differences is None) == (two.differences is None)
    return Claim(
        "Appendix, c' < c", "a (past-invariant) problem with overlap c' is also one with c",
        "any, monotone and separable rewards", ends, problems, deviation,
        deviation < TOLERANCE and same, True,
    )  # fmt: skip


# ---------------------------------------------------------------- the footnote on sums

_SUMS, _MARKOV = "Footnote on sums", "an optimum is among the policies π(a | s)"


def sum_with_a_discount() -> Claim:
    """The phase tells how long a reward will be held back."""
    unrolled = unroll(examples.phase_matters())
    claim = _gap_on(unrolled, _SUMS, _MARKOV, "γ < 1", "phase_matters", expected=False, phase=False)
    return dataclasses.replace(claim, ends="either")


def sum_of_single_steps(rng: np.random.Generator, problems: int, ends: Ends) -> Claim:
    """With n = 1 every step has its own reward."""
    return _sums(rng, problems, ends, "n = 1, γ < 1, c = 0", "sum", overlap=0, max_length=1)


def sum_without_a_discount(rng: np.random.Generator, problems: int, ends: Ends) -> Claim:
    """Without a discount it does not matter when a reward is revealed."""
    condition = "γ = 1, c = 0 and every episode ends"
    return _sums(rng, problems, ends, condition, "sum", overlap=0, gamma=1.0)


def shifted_sum(rng: np.random.Generator, problems: int, ends: Ends) -> Claim:
    """r_c with c = 1: only the last step of an episode is left out."""
    condition = "γ = 1, r_c with c = 1 and every episode ends"
    return _sums(rng, problems, ends, condition, "r_c", overlap=1, gamma=1.0)


def further_shifted_sum(ends: Ends) -> Claim:
    """r_c with c = 2: the end decides whether the step before it counts."""
    unrolled = unroll(examples.end_after_overlap(gamma=1.0, ends=ends))
    condition = "γ = 1, r_c with c = 2 and every episode ends"
    expected = ends == "absorb"
    return _gap_on(unrolled, _SUMS, _MARKOV, condition, "end_after_overlap", expected, phase=False)


def sum_of_the_window(ends: Ends) -> Claim:
    """The overlap's steps count once more, so it matters where in an interval a step lies."""
    unrolled = unroll(examples.counted_twice(ends=ends))
    condition = "γ = 1, the sum of the whole window with c = 1"
    return _gap_on(unrolled, _SUMS, _MARKOV, condition, "counted_twice", False, phase=False)


def _sums(
    rng: np.random.Generator,
    problems: int,
    ends: Ends,
    condition: str,
    kind: Kind,
    overlap: int,
    max_length: int | None = None,
    gamma: float | None = None,
) -> Claim:
    deviation = 0.0
    for _ in range(problems):
        problem = random_problem(
            rng, kind=kind, overlap=overlap, max_length=max_length, ending="anywhere", ends=ends,
            gamma=gamma,
        )  # fmt: skip
        unrolled = unroll(problem)
        gap = _best_return(unrolled) - best_markov(unrolled, phase=False)[1]
        deviation = max(deviation, gap / _scale(unrolled))
    return Claim(_SUMS, _MARKOV, condition, ends, problems, deviation, deviation < TOLERANCE, True)


# ---------------------------------------------------------------- shared


def _gap_on(
    unrolled: Unrolled,
    name: str,
    statement: str,
    condition: str,
    example: str,
    expected: bool,
    phase: bool = True,
) -> Claim:
    """Compare the best policy of Π_s, or of π(a | s), with the best one."""
    best, markov = _best_return(unrolled), best_markov(unrolled, phase=phase)[1]
    deviation = (best - markov) / _scale(unrolled)
    holds = deviation < TOLERANCE
    without = "without the history" if phase else "without history and phase"
    return Claim(
        name, statement, condition, unrolled.problem.ends, 1, deviation, holds, expected,
        "" if holds else f"J = {best:.4g} is possible, {markov:.4g} {without}", example,
    )  # fmt: skip


def _remember(problem: TabularDRMDP, steps: int) -> TabularDRMDP:
    """The same problem with a larger overlap, whose reward ignores what was added."""
    reward: Reward = problem.reward
    return dataclasses.replace(
        problem,
        overlap=problem.overlap + steps,
        reward=lambda trajectory: reward(trajectory[steps:]),
    )


def _best_return(unrolled: Unrolled) -> float:
    policy, q = optimal(unrolled)
    return expected_return(unrolled, policy, q)


def _scale(unrolled: Unrolled) -> float:
    return scale_of(optimal(unrolled)[1])
