"""Claims about optimal policies: how much of the history and the phase they need.

Fact 1, the appendix on strong past-invariance and on overlaps, and the footnote on sums.
"""

from __future__ import annotations

import dataclasses
from functools import partial

import numpy as np

from belated.tabular import examples
from belated.tabular.claims.claim import EARLY, EXACT, Claim
from belated.tabular.conditions import reward_invariance
from belated.tabular.drmdp import Reward, TabularDRMDP, Unrolled, unroll
from belated.tabular.policy_iteration import iterate
from belated.tabular.random_problems import exact_problems, random_policy, random_problem
from belated.tabular.values import (
    TOLERANCE,
    best_markov,
    expected_return,
    optimal,
    q_values,
    spread,
)


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
    for unrolled in exact_problems(rng, problems):
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
    """A problem viewed with a larger overlap has the same optimum and the same invariance."""
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
