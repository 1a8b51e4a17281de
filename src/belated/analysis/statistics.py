"""What a few seeds say about one method: aggregate scores and their intervals; curves.

Scores come as strata: one sequence per task, one score per seed. Seeds are what would differ if all
were run again, so they are what intervals are about; tasks stay as they are. `comparison` compares
two methods. What the intervals really cover is measured in ``docs/statistics.md``.

SciPy is imported where it is needed: every command waits for what is imported here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from belated.analysis.intervals import (
    Array,
    Estimate,
    error_of_mean,
    error_of_resamples,
    normal_quantile,
    student_interval,
)
from belated.ranges import non_negative_int, number, positive_int

Strata: TypeAlias = Sequence[npt.ArrayLike] | npt.NDArray[Any]
"""One sequence of scores, one for each seed, per task. A single task is a list of one."""
Statistic: TypeAlias = Callable[[Sequence[Array]], float]
"""Anything that makes one number of the scores of all tasks."""

_FEWEST_RESAMPLES = 100


class Profile(NamedTuple):
    """The share of runs above each threshold, with pointwise intervals.

    Attributes:
        fraction: the share that was seen, of shape (thresholds,).
        low: the lower ends.
        high: the upper ends.
    """

    fraction: Array
    low: Array
    high: Array


def mean(strata: Strata) -> float:
    """The mean over tasks of each task's mean: every task counts the same, however many seeds.

    >>> mean([[1, 2, 3], [10, 20]])
    8.5
    """
    return float(_means(checked_tasks(strata)))


def median(strata: Strata) -> float:
    """The median over tasks of each task's mean, as in Agarwal et al. (2021) and rliable.

    It is not the median over seeds: of a single task it is the mean.

    >>> median([[1, 2, 3], [10, 20], [100]])
    15.0
    """
    return float(_medians(checked_tasks(strata)))


def iqm(strata: Strata) -> float:
    """The interquartile mean: of all scores pooled, without the lowest and the highest quarter.

    The quarters are rounded down to whole scores, as in Agarwal et al. (2021), rliable and
    `scipy.stats.trim_mean`: up to three scores it is the mean, of four to seven it leaves out the
    lowest and the highest one.

    >>> iqm([[0, 10, 11, 12, 1000]])
    11.0
    >>> iqm([[0, 10, 1000]]) == mean([[0, 10, 1000]])
    True
    """
    return float(_iqms(checked_tasks(strata)))


def estimate(
    strata: Strata,
    statistic: Statistic = iqm,
    *,
    level: float = 0.95,
    resamples: int = 2_000,
    seed: int = 0,
) -> Estimate:
    """A statistic of the scores and its confidence interval.

    The interval is value ± t · s: t is Student's with Welch's degrees of freedom, and s the
    standard error. Of a mean it is known. Of others it is the standard deviation over resamples of
    a stratified bootstrap, seeds inside each task, widened because that of n resampled scores is
    too small by √((n − 1)/n). The usual percentiles of the resamples cover too little: of one task
    about 90 % instead of 95 % with 10 seeds, and at most 75 % with 3.

    Args:
        strata: one sequence of scores per task. With a single seed in some task, the interval is
            NaN: nothing says how far another seed would have been.
        statistic: `iqm`, `mean`, `median` or any function of the list of tasks' scores.
        level: how often intervals like this one should hold the truth.
        resamples: how often to resample, but for means. The width has a relative error of about
            1/√(2·resamples).
        seed: seeds the resampling.

    Example:
        >>> value, low, high = estimate([[3.0, 4.0, 5.0, 4.0]], mean)
        >>> print(f"{value} in {low:.1f} to {high:.1f}")
        4.0 in 2.7 to 5.3
    """
    tasks = checked_tasks(strata)
    resamples = enough_resamples(resamples)
    generator = np.random.default_rng(non_negative_int(seed, "The seed"))
    if statistic is mean:
        error = error_of_mean(tasks)
    else:
        error = error_of_resamples(bootstrap(tasks, statistic, resamples, generator), tasks)
    return student_interval(float(statistic(tasks)), error, tasks, level)


def performance_profile(
    strata: Strata, thresholds: npt.ArrayLike, *, level: float = 0.95
) -> Profile:
    """The share of all runs, pooled over tasks, that score above each threshold.

    Intervals are Wilson's, pointwise. They do not shrink to nothing where all runs, or none, are
    above. Over several tasks they are rather too wide: they count the difference between tasks.

    >>> fraction, low, high = performance_profile([[1, 2, 3, 4]], [0, 2, 4])
    >>> print(fraction, low.round(2), high.round(2))
    [1.  0.5 0. ] [0.51 0.15 0.  ] [1.   0.85 0.49]
    """
    pooled = np.sort(np.concatenate(checked_tasks(strata)))
    runs = len(pooled)
    above = runs - np.searchsorted(
        pooled, checked_scores(thresholds, "The thresholds"), side="right"
    )
    share = above / runs
    z = normal_quantile(level)
    centre = share + z**2 / (2 * runs)
    margin = z * np.sqrt(share * (1 - share) / runs + (z / (2 * runs)) ** 2)
    shrink = 1 + z**2 / runs
    # Rounding must not put the share itself outside, where all or none are above.
    low = np.clip((centre - margin) / shrink, 0, share)
    high = np.clip((centre + margin) / shrink, share, 1)
    return Profile(share, low, high)


def relative_performance(returns: float, oracle: float, *, offset: float = 0.0) -> float:
    """(returns + offset) / (oracle + offset): 1 is as good as the oracle.

    Args:
        returns: what a method earned.
        oracle: what was earned with the rewards in time.
        offset: added to both where returns can be negative, so that 0 is as bad as can be.

    Raises:
        ValueError: if the oracle's return is not positive, offset included.

    Example:
        >>> relative_performance(-500, -200, offset=1_000)
        0.625
    """
    returns, oracle = number(returns, "The return"), number(oracle, "The oracle's return")
    offset = number(offset, "The offset")
    if oracle + offset <= 0:
        raise ValueError(
            f"The oracle's return plus the offset must be above 0, got {oracle} + {offset}. "
            "Choose an offset that makes it positive."
        )
    return (returns + offset) / (oracle + offset)


def area_under_curve(steps: npt.ArrayLike, values: npt.ArrayLike) -> float:
    """The average height of a learning curve over the steps that it covers (trapezoids).

    >>> area_under_curve([0, 1, 3], [0, 2, 2])
    1.6666666666666667
    """
    at, heights = checked_scores(steps, "The steps"), checked_scores(values, "The values")
    if len(at) != len(heights):
        raise ValueError(f"There are {len(at)} steps but {len(heights)} values.")
    widths = np.diff(at)
    if (widths <= 0).any():
        raise ValueError("The steps must increase: sort the curve, and keep one value per step.")
    if len(at) == 1:
        return float(heights[0])
    return float(widths @ (heights[1:] + heights[:-1]) / 2 / widths.sum())


def smoothed(values: npt.ArrayLike, window: int) -> Array:
    """A centred moving average. Near the ends its window is shortened on both sides.

    So it stays centred: a straight line remains as it is, and the first and last values too.

    Args:
        values: evenly spaced values.
        window: how many to average, an odd number.

    Example:
        >>> smoothed([0, 3, 0, 3, 9], 3).tolist()
        [0.0, 1.0, 2.0, 4.0, 9.0]
    """
    heights = checked_scores(values, "The values")
    if (window := positive_int(window, "The window")) % 2 == 0:
        raise ValueError(f"The window must be odd to have a centre, got {window}.")
    places = np.arange(len(heights))
    reach = np.minimum(window // 2, np.minimum(places, places[::-1]))
    sums = np.append(0.0, np.cumsum(heights))
    return np.asarray((sums[places + reach + 1] - sums[places - reach]) / (2 * reach + 1))


# Statistics of many resamples at once: scores of shape (..., seeds) for each task.


def _means(tasks: Sequence[Array]) -> Array:
    return np.asarray(np.mean([scores.mean(axis=-1) for scores in tasks], axis=0))


def _medians(tasks: Sequence[Array]) -> Array:
    return np.asarray(np.median([scores.mean(axis=-1) for scores in tasks], axis=0))


def _iqms(tasks: Sequence[Array]) -> Array:
    pooled = np.sort(np.concatenate(tasks, axis=-1), axis=-1)
    runs = pooled.shape[-1]
    cut = runs // 4
    return np.asarray(pooled[..., cut : runs - cut].mean(axis=-1))


_AT_ONCE: dict[Statistic, Callable[[Sequence[Array]], Array]] = {
    mean: _means,
    median: _medians,
    iqm: _iqms,
}


def bootstrap(
    tasks: Sequence[Array], statistic: Statistic, resamples: int, generator: np.random.Generator
) -> Array:
    """The statistic of each resample, of shape (resamples,)."""
    drawn = [
        # Sorted first, so that the order of seeds changes nothing.
        np.sort(scores)[generator.integers(len(scores), size=(resamples, len(scores)))]
        for scores in tasks
    ]
    if statistic in _AT_ONCE:
        return _AT_ONCE[statistic](drawn)
    return np.array([float(statistic(resample)) for resample in zip(*drawn, strict=True)])


# What is accepted.


def checked_tasks(strata: Strata, what: str = "The scores") -> list[Array]:
    """The scores of each task as arrays, if they are what they should be."""
    if len(strata) == 0:
        raise ValueError(f"{what} are empty: give one sequence of scores per task.")
    if all(np.ndim(scores) == 0 for scores in strata):
        raise ValueError(f"{what} must be one sequence per task. Put a single task in a list.")
    return [checked_scores(scores, f"{what} of task {task}") for task, scores in enumerate(strata)]


def checked_scores(values: npt.ArrayLike, what: str) -> Array:
    """Numbers as an array of one axis, if all are finite and there are any."""
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{what} must be numbers, got {values!r}.") from None
    if array.ndim != 1:
        raise ValueError(f"{what} must have one axis, got shape {array.shape}.")
    if len(array) == 0:
        raise ValueError(f"{what} are empty.")
    if not np.isfinite(array).all():
        raise ValueError(f"{what} must be finite, got {array[~np.isfinite(array)][0]}.")
    return array


def enough_resamples(number: int) -> int:
    """A number of resamples that says something."""
    if (number := positive_int(number, "The number of resamples")) < _FEWEST_RESAMPLES:
        raise ValueError(
            f"The number of resamples must be at least {_FEWEST_RESAMPLES}, got {number}."
        )
    return number
