"""Comparisons worked by hand, laws that hold for all scores, p-values that are what they say."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import combinations, product
from typing import Any

import numpy as np
import pytest
from scipy import stats

from belated.analysis.comparison import (
    difference,
    permutation_test,
    probability_of_improvement,
    ratio,
    smallest_difference,
    smallest_p,
)
from belated.analysis.intervals import Array, Estimate
from belated.analysis.statistics import estimate, iqm, mean, median

TASKS = [[3.0, 4.0, 8.0, 5.0], [30.0, 10.0, 20.0], [7.0, 7.5, 6.0, 9.0, 1.0]]
OTHERS = [[2.0, 5.0, 4.0], [31.0, 35.0, 40.0, 33.0], [5.0, 2.0]]
AnyStatistic = Callable[[Any], float]


def generator(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def width(found: Estimate) -> float:
    return found.high - found.low


def share_covered(found: list[Estimate], truth: float) -> float:
    return float(np.mean([low <= truth <= high for _, low, high in found]))


# Differences


def test_the_interval_of_a_difference_is_welchs() -> None:
    a, b = generator().normal(5, 2, 4), generator(1).normal(3, 6, 7)
    low, high = stats.ttest_ind(a, b, equal_var=False).confidence_interval()
    found = difference([a], [b])
    assert found == pytest.approx((a.mean() - b.mean(), low, high))
    resampled = difference([a], [b], lambda tasks: mean(tasks), resamples=50_000)
    assert width(resampled) == pytest.approx(high - low, rel=0.02)


@pytest.mark.parametrize("statistic", [mean, median, iqm])
def test_swapping_sides_turns_a_difference_around(statistic: AnyStatistic) -> None:
    ahead, behind = difference(TASKS, OTHERS, statistic), difference(OTHERS, TASKS, statistic)
    assert ahead.value == statistic(TASKS) - statistic(OTHERS) == -behind.value
    assert width(ahead) == pytest.approx(width(behind), rel=0.1)


def test_both_sides_are_resampled_on_their_own() -> None:
    task = generator().normal(size=(1, 100))
    both = difference(task, task, iqm)
    assert both.value == 0
    assert width(both) == pytest.approx(math.sqrt(2) * width(estimate(task, iqm)), rel=0.05)


def test_the_same_seed_gives_the_same_interval() -> None:
    assert difference(TASKS, OTHERS, iqm, seed=3) == difference(TASKS, OTHERS, iqm, seed=3)
    assert difference(TASKS, OTHERS, iqm, seed=3) != difference(TASKS, OTHERS, iqm, seed=4)
    # Means are not resampled.
    assert difference(TASKS, OTHERS, seed=3) == difference(TASKS, OTHERS, seed=4)


def test_a_single_seed_has_no_interval() -> None:
    found = difference([[1.0, 2.0]], [[5.0]])
    assert found.value == -3.5
    assert math.isnan(found.low)
    assert math.isnan(found.high)


def test_intervals_of_differences_cover() -> None:
    random = generator(9)
    found = [
        difference(random.normal(3, 1, (1, 10)), random.normal(1, 4, (1, 5))) for _ in range(1000)
    ]
    assert 0.93 <= share_covered(found, 2.0) <= 0.97


# Probability of improvement


def test_probability_of_improvement_worked_by_hand() -> None:
    assert probability_of_improvement([[1, 2]], [[0, 2, 3]]).value == pytest.approx(2.5 / 6)
    assert probability_of_improvement([[1, 2], [9]], [[0, 2, 3], [8, 10]]).value == pytest.approx(
        (2.5 / 6 + 1 / 2) / 2
    )


@pytest.mark.parametrize(("wins", "tasks"), [(1, 1), (0, 4), (3, 5), (7, 8), (9, 9)])
def test_single_runs_make_it_the_interval_of_a_proportion(wins: int, tasks: int) -> None:
    a = [[1.0]] * wins + [[-1.0]] * (tasks - wins)
    found = probability_of_improvement(a, [[0.0]] * tasks)
    wilson = stats.binomtest(wins, tasks).proportion_ci(method="wilson")
    assert found == pytest.approx((wins / tasks, wilson.low, wilson.high), abs=1e-6)


def test_swapping_sides_turns_a_probability_around() -> None:
    ahead, behind = (
        probability_of_improvement(TASKS, OTHERS),
        probability_of_improvement(OTHERS, TASKS),
    )
    assert ahead == pytest.approx((1 - behind.value, 1 - behind.high, 1 - behind.low))
    assert 0 <= ahead.low < ahead.value < ahead.high <= 1


def test_a_probability_depends_on_the_order_of_scores_only() -> None:
    stretched = [np.exp(np.asarray(task) / 10) for task in TASKS]
    others = [np.exp(np.asarray(task) / 10) for task in OTHERS]
    assert probability_of_improvement(stretched, others) == probability_of_improvement(
        TASKS, OTHERS
    )


@pytest.mark.parametrize(("seeds", "least"), [(1, 0.2065), (3, 0.5), (5, 0.64), (10, 0.8)])
def test_a_clean_sweep_is_not_certainty(seeds: int, least: float) -> None:
    swept = probability_of_improvement([np.arange(seeds) + 100], [np.arange(seeds)])
    assert swept.value == swept.high == 1
    assert swept.low == pytest.approx(least, abs=0.01)


@pytest.mark.parametrize("shift", [0.0, 1.0])
@pytest.mark.parametrize("tasks", [1, 5])
def test_intervals_of_probabilities_cover(shift: float, tasks: int) -> None:
    random = generator(11)
    found = [
        probability_of_improvement(
            random.normal(shift, 1, (tasks, 10)), random.normal(0, 1, (tasks, 10))
        )
        for _ in range(1000)
    ]
    assert 0.93 <= share_covered(found, stats.norm.cdf(shift / math.sqrt(2))) <= 0.98


# Permutation tests


def brute_force(a: list[list[float]], b: list[list[float]]) -> float:
    """The definition, one relabeling at a time."""
    choices = [combinations(range(len(x) + len(y)), len(x)) for x, y in zip(a, b, strict=True)]
    gaps = []
    for chosen in product(*choices):
        gap = 0.0
        for mine, x, y in zip(chosen, a, b, strict=True):
            pooled = np.array(x + y)
            is_mine = np.isin(np.arange(len(pooled)), mine)
            gap += (pooled[is_mine].mean() - pooled[~is_mine].mean()) / pooled.std()
        gaps.append(abs(gap))
    return float(np.mean(np.array(gaps) >= gaps[0] - 1e-9))  # the first are the labels as given


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ([1, 2, 3], [11, 12, 13], 2 / 20),
        ([3, 4], [1, 2], 2 / 6),
        ([2, 4], [1, 3], 4 / 6),
        ([1, 4], [2, 3], 1),
        ([9], [1, 2, 4], 1 / 4),
        ([5], [7], 1),
    ],
)
def test_p_worked_by_hand(a: list[float], b: list[float], expected: float) -> None:
    assert permutation_test([a], [b]) == pytest.approx(expected)


@pytest.mark.parametrize(("first", "second"), [(5, 5), (3, 4), (2, 6), (7, 7)])
def test_p_of_one_task_is_scipys(first: int, second: int) -> None:
    a, b = generator(first).normal(1, 1, first), generator(second + 50).normal(0, 1, second)
    reference = stats.permutation_test(
        (a, b), lambda x, y: abs(x.mean() - y.mean()), alternative="greater", n_resamples=np.inf
    )
    assert permutation_test([a], [b]) == pytest.approx(reference.pvalue)


@pytest.mark.parametrize("seed", range(3))
def test_p_of_several_tasks_is_the_definitions(seed: int) -> None:
    random = generator(seed)
    a = [(scale * random.normal(0.7, 1, 3)).tolist() for scale in (1, 100)]
    b = [(scale * random.normal(0, 1, size)).tolist() for scale, size in ((1, 2), (100, 4))]
    assert permutation_test(a, b) == pytest.approx(brute_force(a, b))


@pytest.mark.parametrize("seeds", [2, 12])
def test_p_does_not_depend_on_order_units_or_sides(seeds: int) -> None:
    """Enumerated for 2 seeds, drawn for 12."""
    random = generator(1)
    a, b = random.normal(0, 1, (3, seeds)), random.normal(0, 1, (3, seeds))
    p = permutation_test(a, b)
    units = np.array([[1], [1000], [0.01]])
    equivalent: list[tuple[Any, Any]] = [
        (b, a),
        (a[:, ::-1], b),
        (a[::-1], b[::-1]),
        (a * units + 5, b * units + 5),
        (-a, -b),
        ([*a, [2.0, 2.0]], [*b, [2.0]]),  # a task where all score the same says nothing
    ]
    for first, second in equivalent:
        assert permutation_test(first, second) == pytest.approx(
            p, abs=1e-9 if seeds == 2 else 0.015
        )


def test_scores_that_differ_by_rounding_are_ties() -> None:
    assert permutation_test([[0.1 + 0.2, 1.0, 7e5]], [[0.3, 1.0, 7e5]]) == 1
    assert permutation_test([[0.1, 0.1]], [[0.1, 0.1]]) == 1


def test_drawn_relabelings_are_reproducible_and_near_the_t_test() -> None:
    a, b = generator(1).normal(0.8, 1, 15), generator(2).normal(0, 1, 15)
    p = permutation_test([a], [b], seed=5)
    assert p == permutation_test([a], [b], seed=5)
    assert p != permutation_test([a], [b], seed=6)
    assert p == pytest.approx(stats.ttest_ind(a, b).pvalue, rel=0.1)


def test_drawn_p_is_never_zero() -> None:
    assert permutation_test([np.arange(20) + 1e3], [np.arange(20)]) == pytest.approx(1 / 20_001)


@pytest.mark.parametrize(
    ("sizes", "sets"), [([5], 2000), ([3, 3], 1000), ([2, 2, 2], 1000), ([10], 200)]
)
def test_p_is_uniform_where_there_is_no_difference(sizes: list[int], sets: int) -> None:
    random = generator(3)
    drawn = [
        permutation_test(
            [random.normal(size=n) for n in sizes], [random.normal(size=n) for n in sizes]
        )
        for _ in range(sets)
    ]
    step = smallest_p(sizes, sizes)
    for level in (0.05, 0.1, 0.25, 0.5, 0.9):
        reachable = math.floor(level / step + 1e-9) * step
        error = math.sqrt(level * (1 - level) / sets)
        assert np.mean(np.array(drawn) <= level + 1e-9) == pytest.approx(reachable, abs=3 * error)


@pytest.mark.parametrize(
    ("a_sizes", "b_sizes"), [([3], [3]), ([2], [3]), ([1], [9]), ([2, 2], [2, 2]), ([2, 1], [2, 3])]
)
def test_the_smallest_p_is_reached_and_not_undercut(a_sizes: list[int], b_sizes: list[int]) -> None:
    bound = smallest_p(a_sizes, b_sizes)
    far = [np.arange(n) + 100.0 for n in a_sizes]
    near = [np.arange(n, dtype=float) for n in b_sizes]
    assert permutation_test(far, near) == pytest.approx(bound)
    random = generator(4)
    for _ in range(200):
        a = [random.standard_cauchy(n) for n in a_sizes]
        b = [random.standard_cauchy(n) for n in b_sizes]
        assert permutation_test(a, b) >= bound - 1e-12


def test_the_smallest_p_of_few_seeds() -> None:
    found = [smallest_p([seeds], [seeds]) for seeds in (1, 2, 3, 4, 5)]
    assert found == pytest.approx([1, 1 / 3, 1 / 10, 1 / 35, 1 / 126])
    assert smallest_p([1] * 5, [1] * 5) == 1 / 16
    assert smallest_p([50], [50]) == 1 / 20_001


# What could have been seen


def with_spread(seeds: int, spread: float) -> Array:
    task = generator(seeds).normal(size=seeds)
    return np.asarray(spread * (task - task.mean()) / task.std(ddof=1))


@pytest.mark.parametrize(("effect", "seeds"), [(0.5, 64), (0.8, 26), (1.0, 17)])
def test_the_smallest_difference_agrees_with_tables_of_power(effect: float, seeds: int) -> None:
    """Cohen (1988): so many in each of two groups show an effect of so many spreads."""
    enough, too_few = with_spread(seeds, 3.0), with_spread(seeds - 1, 3.0)
    assert smallest_difference(enough, enough + 7) <= 3 * effect
    assert smallest_difference(too_few, too_few + 7) > 3 * effect


@pytest.mark.parametrize(("n", "m", "spread"), [(2, 2, 1.0), (3, 3, 1.0), (2, 8, 3.0), (6, 9, 0.4)])
def test_welchs_test_shows_the_smallest_difference_four_times_in_five(
    n: int, m: int, spread: float
) -> None:
    gap = smallest_difference(with_spread(n, 2.0), with_spread(m, 2 * spread))
    random = generator(5)
    a, b = random.normal(gap, 2, (10_000, n)), random.normal(0, 2 * spread, (10_000, m))
    shown = stats.ttest_ind(a, b, axis=1, equal_var=False).pvalue <= 0.05
    assert np.mean(shown) == pytest.approx(0.8, abs=0.015)


@pytest.mark.parametrize("seeds", [5, 10])
def test_the_permutation_test_shows_the_smallest_difference_four_times_in_five(seeds: int) -> None:
    gap = smallest_difference(with_spread(seeds, 1.0), with_spread(seeds, 1.0))
    random = generator(6)
    shown = [
        permutation_test([random.normal(gap, 1, seeds)], [random.normal(0, 1, seeds)]) <= 0.05
        for _ in range(2000 if seeds == 5 else 300)
    ]
    assert np.mean(shown) == pytest.approx(0.8, abs=0.06)


def test_the_smallest_difference_grows_with_spread_power_and_level() -> None:
    a, b = np.array([1.0, 2.0, 4.0]), np.array([1.0, 5.0])
    found = smallest_difference(a, b)
    assert smallest_difference(b, a) == pytest.approx(found)
    assert smallest_difference(10 * a, 10 * b + 3) == pytest.approx(10 * found)
    assert smallest_difference(a, b, power=0.9) > found
    assert smallest_difference(a, b, level=0.999) > found
    assert smallest_difference([2, 2], [3, 3]) == 0


def test_the_smallest_difference_of_a_single_seed_is_unknown() -> None:
    assert math.isnan(smallest_difference([1.0], [1.0, 2.0]))
    assert math.isnan(smallest_difference([1.0, 2.0], [1.0]))


# What is refused

COMPARISONS: list[Callable[[Any, Any], Any]] = [
    difference,
    probability_of_improvement,
    permutation_test,
]


@pytest.mark.parametrize(
    ("strata", "said"),
    [
        ([], "empty: give one sequence"),
        ([[1.0], []], "task 1 are empty"),
        ([[1.0], [2.0, math.nan]], "task 1 must be finite, got nan"),
        ([[math.inf]], "must be finite, got inf"),
        ([1.0, 2.0], "single task in a list"),
        ([[[1.0]]], "one axis"),
        ([["three"]], "must be numbers"),
    ],
)
def test_bad_scores_are_refused_on_both_sides(strata: Any, said: str) -> None:
    for compare in COMPARISONS:
        with pytest.raises(ValueError, match=said):
            compare(strata, [[1.0]])
        with pytest.raises(ValueError, match=said):
            compare([[1.0]], strata)


@pytest.mark.parametrize("compare", COMPARISONS)
def test_other_tasks_are_refused(compare: Callable[[Any, Any], Any]) -> None:
    with pytest.raises(ValueError, match="a has 3 tasks, b has 2"):
        compare(TASKS, OTHERS[:2])


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: difference(TASKS, OTHERS, level=0), "level"),
        (lambda: probability_of_improvement(TASKS, OTHERS, level=0), "level"),
        (lambda: permutation_test(TASKS, OTHERS, seed=-1), "seed"),
        (lambda: smallest_p([3], [3, 3]), "same tasks on both sides, got 1 and 2"),
        (lambda: smallest_p([], []), "got 0 and 0"),
        (lambda: smallest_p([0], [3]), "at least 1"),
        (lambda: smallest_difference([[1.0, 2.0]], [1.0, 2.0]), "scores of a must have one axis"),
        (lambda: smallest_difference([1.0, 2.0], [math.nan]), "scores of b must be finite"),
        (lambda: smallest_difference([1.0, 2.0], [1.0, 2.0], power=1), "power"),
        (lambda: smallest_difference([1.0, 2.0], [1.0, 2.0], power=0.01), "above 1 − level = 0.05"),
    ],
)
def test_arguments_out_of_range_are_refused(call: Callable[[], Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        call()


def test_a_ratio_covers_the_truth_although_the_oracle_is_noisy_too() -> None:
    generator = np.random.default_rng(0)
    covered = 0
    for _ in range(300):
        a, b = generator.normal(1, 0.1, (2, 7)), generator.normal(2, 0.4, (2, 7))
        _, low, high = ratio(a, b, resamples=300)
        covered += low <= 0.5 <= high
    assert 0.92 <= covered / 300 <= 0.98


def test_a_ratio_by_hand_and_of_nothing() -> None:
    assert ratio([[3.0], [8.0]], [[6.0], [4.0]]).value == pytest.approx(1.25)
    with pytest.raises(ValueError, match="above 0"):
        ratio([[1.0]], [[0.0]])
