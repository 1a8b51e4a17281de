"""Numbers worked by hand, laws that hold for all scores, and intervals that cover what they say."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from belated.analysis.intervals import Array, Estimate
from belated.analysis.statistics import (
    area_under_curve,
    estimate,
    iqm,
    mean,
    median,
    performance_profile,
    relative_performance,
    smoothed,
)

TASKS = [[3.0, 4.0, 8.0, 5.0], [30.0, 10.0, 20.0], [7.0, 7.5, 6.0, 9.0, 1.0]]
AnyStatistic = Callable[[Any], float]
ALL_STATISTICS = pytest.mark.parametrize("statistic", [mean, median, iqm])

scores = st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=12)


def generator(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def transformed(strata: list[list[float]], scale: float, shift: float) -> list[list[float]]:
    return [[scale * score + shift for score in task] for task in strata]


def width(found: Estimate) -> float:
    return found.high - found.low


def share_covered(found: list[Estimate], truth: float) -> float:
    return float(np.mean([low <= truth <= high for _, low, high in found]))


def bimodal(random: np.random.Generator, size: tuple[int, int]) -> Array:
    """A quarter of the seeds gets stuck."""
    learned = random.random(size) < 0.75
    return np.where(learned, random.normal(4000, 300, size), random.normal(1000, 100, size))


# Aggregates


def test_every_task_counts_the_same_in_the_mean() -> None:
    assert mean([[0, 0, 0, 0, 0, 0], [12]]) == 6


def test_the_median_is_that_of_the_tasks_means() -> None:
    assert median([[0, 0, 9], [5, 7], [100, 100]]) == 6
    assert median([[0, 0, 9]]) == mean([[0, 0, 9]]) == 3


@pytest.mark.parametrize(
    ("pooled", "expected"),
    [
        ([5], 5),
        ([1, 9], 5),
        ([0, 1, 8], 3),
        ([0, 1, 2, 90], 1.5),
        ([90, 0, 3, 1, 2], 2),
        ([0, 0, 1, 2, 3, 4, 90, 90], 2.5),
    ],
)
def test_iqm_worked_by_hand(pooled: list[float], expected: float) -> None:
    assert iqm([pooled]) == expected
    assert iqm([[score] for score in pooled]) == expected


@given(st.lists(scores, min_size=1, max_size=4))
def test_iqm_is_scipys_trimmed_mean_of_the_pooled_scores(strata: list[list[float]]) -> None:
    assert iqm(strata) == pytest.approx(stats.trim_mean(np.concatenate(strata), 0.25), abs=1e-6)


@ALL_STATISTICS
@given(st.lists(scores, min_size=1, max_size=4), st.randoms())
def test_the_order_of_seeds_and_of_tasks_does_not_matter(
    statistic: AnyStatistic, strata: list[list[float]], random: Any
) -> None:
    shuffled = [random.sample(task, len(task)) for task in random.sample(strata, len(strata))]
    assert statistic(shuffled) == pytest.approx(statistic(strata), abs=1e-6)


# Intervals


@ALL_STATISTICS
def test_intervals_shift_and_scale_with_the_scores(statistic: AnyStatistic) -> None:
    plain = estimate(TASKS, statistic)
    moved = estimate(transformed(TASKS, 100, -7), statistic)
    assert moved == pytest.approx([100 * end - 7 for end in plain])


@ALL_STATISTICS
def test_intervals_do_not_depend_on_the_order_of_seeds_and_little_on_that_of_tasks(
    statistic: AnyStatistic,
) -> None:
    plain = estimate(TASKS, statistic)
    assert estimate([task[::-1] for task in TASKS], statistic) == plain
    assert width(estimate(TASKS[::-1], statistic)) == pytest.approx(width(plain), rel=0.1)


def test_the_same_seed_gives_the_same_interval() -> None:
    assert estimate(TASKS, seed=3) == estimate(TASKS, seed=3)
    assert estimate(TASKS, seed=3) != estimate(TASKS, seed=4)
    assert width(estimate(TASKS, seed=3)) == pytest.approx(width(estimate(TASKS, seed=4)), rel=0.1)


@ALL_STATISTICS
def test_any_function_of_the_scores_can_be_estimated(statistic: AnyStatistic) -> None:
    wrapped = estimate(TASKS, lambda tasks: statistic(tasks))
    # What is resampled is resampled alike; of a mean the error is known.
    rel = 0.05 if statistic is mean else 1e-9
    assert wrapped == pytest.approx(estimate(TASKS, statistic), rel=rel)


@pytest.mark.parametrize("seeds", [2, 3, 10])
@pytest.mark.parametrize("level", [0.5, 0.95])
def test_the_interval_of_a_mean_is_students(seeds: int, level: float) -> None:
    task = generator().normal(5, 2, seeds)
    low, high = stats.t.interval(level, seeds - 1, task.mean(), stats.sem(task))
    assert estimate([task], mean, level=level) == pytest.approx((task.mean(), low, high))
    resampled = estimate([task], lambda tasks: mean(tasks), level=level, resamples=50_000)
    assert width(resampled) == pytest.approx(high - low, rel=0.02)


def test_a_single_seed_has_no_interval() -> None:
    for found in (
        estimate([[5.0]]),
        estimate([[1.0, 2.0, 3.0], [5.0]], mean),
    ):
        assert math.isfinite(found.value)
        assert math.isnan(found.low)
        assert math.isnan(found.high)


def test_equal_scores_have_an_interval_of_no_width() -> None:
    assert estimate([[5.0, 5.0, 5.0], [1.0, 1.0]], mean) == (3, 3, 3)


@pytest.mark.parametrize("statistic", [mean, iqm])
@pytest.mark.parametrize("tasks", [1, 5])
@pytest.mark.parametrize("seeds", [3, 10])
def test_intervals_cover_the_truth_of_normal_scores(
    statistic: AnyStatistic, tasks: int, seeds: int
) -> None:
    random = generator(7)
    found = [
        estimate(random.normal(size=(tasks, seeds)), statistic, resamples=500, seed=seed)
        for seed in range(1000)
    ]
    assert 0.93 <= share_covered(found, 0.0) <= (0.97 if seeds == 10 else 0.98)


def test_intervals_cover_when_one_task_has_nearly_all_the_spread() -> None:
    random, spread = generator(8), np.array([[1], [1], [1], [20]])
    found = [estimate(spread * random.normal(size=(4, 3)), mean) for _ in range(1000)]
    assert 0.93 <= share_covered(found, 0.0) <= 0.97


def test_seeds_that_all_got_stuck_or_all_learned_do_not_tell_of_the_others() -> None:
    """What docs/statistics.md warns of: three seeds of a bimodal score are misleading."""
    random = generator(10)
    found = [estimate(bimodal(random, (1, 3)), mean) for _ in range(1000)]
    assert 0.65 <= share_covered(found, 0.75 * 4000 + 0.25 * 1000) <= 0.8


# Profiles


def test_a_profile_is_the_share_strictly_above() -> None:
    fraction, low, high = performance_profile([[1, 2, 2], [5]], [2, 0, 5, 1.5])
    assert fraction.tolist() == [0.25, 1, 0, 0.75]
    for above, share_low, share_high in zip([1, 4, 0, 3], low, high, strict=True):
        wilson = stats.binomtest(above, 4).proportion_ci(method="wilson")
        assert (share_low, share_high) == pytest.approx((wilson.low, wilson.high))


@given(st.lists(scores, min_size=1, max_size=4), scores)
def test_a_profile_falls_and_lies_in_its_interval(
    strata: list[list[float]], thresholds: list[float]
) -> None:
    profile = performance_profile(strata, sorted(thresholds))
    assert (np.diff(profile, axis=1) <= 1e-12).all()
    assert (profile.low <= profile.fraction).all()
    assert (profile.fraction <= profile.high).all()
    assert np.min(profile) >= 0
    assert np.max(profile) <= 1


# Curves


def test_relative_performance_worked_by_hand() -> None:
    assert relative_performance(3000, 4000) == 0.75
    assert relative_performance(-100, 100, offset=300) == 0.5
    assert relative_performance(-500, -200, offset=1000) == 0.625
    assert relative_performance(50, 50, offset=-10) == 1


@pytest.mark.parametrize(("oracle", "offset"), [(0, 0), (-100, 0), (-100, 100)])
def test_an_oracle_that_earned_nothing_is_refused(oracle: float, offset: float) -> None:
    with pytest.raises(ValueError, match="plus the offset must be above 0"):
        relative_performance(1.0, oracle, offset=offset)


def test_area_under_curve_worked_by_hand() -> None:
    assert area_under_curve([10], [3]) == 3
    assert area_under_curve([0, 10], [0, 4]) == 2
    assert area_under_curve([100, 110, 140], [0, 4, 6]) == pytest.approx((20 + 150) / 40)


@given(scores)
def test_the_area_lies_within_the_curve_and_reads_the_same_backwards(values: list[float]) -> None:
    steps = np.arange(len(values)) ** 2
    area = area_under_curve(steps, values)
    assert min(values) - 1e-6 <= area <= max(values) + 1e-6
    backwards = area_under_curve(steps[-1] - steps[::-1], values[::-1])
    assert backwards == pytest.approx(area, abs=1e-6)


def test_smoothing_worked_by_hand() -> None:
    assert smoothed([0, 5, 10, 0, 0, 20], 5).tolist() == [0, 5, 3, 7, pytest.approx(20 / 3), 20]


@given(scores, st.integers(0, 10))
def test_smoothing_is_the_mean_of_what_fits_on_both_sides(values: list[float], half: int) -> None:
    found = smoothed(values, 2 * half + 1)
    for place, height in enumerate(found):
        reach = min(half, place, len(values) - 1 - place)
        around = values[place - reach : place + reach + 1]
        assert height == pytest.approx(np.mean(around), abs=1e-6)


def test_smoothing_keeps_a_straight_line_and_a_window_of_one_keeps_all() -> None:
    line = np.linspace(-3, 8, 12)
    assert smoothed(line, 5) == pytest.approx(line)
    assert smoothed([1, 9, 2], 1).tolist() == [1, 9, 2]


# What is refused

ON_ONE: list[Callable[[Any], Any]] = [
    mean,
    median,
    iqm,
    estimate,
    lambda strata: performance_profile(strata, [0.0]),
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
def test_bad_scores_are_refused(strata: Any, said: str) -> None:
    for function in ON_ONE:
        with pytest.raises(ValueError, match=said):
            function(strata)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: estimate(TASKS, level=1.0), "level must be between 0 and 1"),
        (lambda: estimate(TASKS, level=95), "level must be a number from 0 to 1"),
        (lambda: estimate(TASKS, resamples=99), "at least 100"),
        (lambda: estimate(TASKS, mean, resamples=-5), "at least"),
        (lambda: estimate(TASKS, seed=-1), "seed"),
        (lambda: performance_profile(TASKS, [], level=0.9), "thresholds are empty"),
        (lambda: performance_profile(TASKS, [math.nan]), "thresholds must be finite"),
        (lambda: relative_performance(math.nan, 1.0), "The return must be a finite number"),
        (lambda: area_under_curve([1, 2], [1]), "2 steps but 1 values"),
        (lambda: area_under_curve([1, 1], [1, 2]), "steps must increase"),
        (lambda: area_under_curve([], []), "steps are empty"),
        (lambda: smoothed([1, 2, 3], 2), "must be odd"),
        (lambda: smoothed([1, 2, 3], 0), "at least 1"),
        (lambda: smoothed([1, math.nan], 1), "must be finite"),
    ],
)
def test_arguments_out_of_range_are_refused(call: Callable[[], Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        call()
