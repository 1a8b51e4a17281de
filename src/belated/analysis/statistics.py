"""What a few seeds say about methods: aggregate scores, intervals, tests.

Scores come as strata: one sequence per task, one score per seed. Seeds are what would differ if all
were run again, so they are what is resampled or relabeled; tasks stay as they are.
What the intervals really cover is measured in ``docs/statistics.md``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import combinations
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy import optimize, stats

from belated.ranges import fraction, non_negative_int, number, positive_int

Array: TypeAlias = npt.NDArray[np.float64]
Strata: TypeAlias = Sequence[npt.ArrayLike] | npt.NDArray[Any]
"""One sequence of scores, one for each seed, per task. A single task is a list of one."""
Statistic: TypeAlias = Callable[[Sequence[Array]], float]
"""Anything that makes one number of the scores of all tasks."""

_RELABELINGS = 20_000
"""Up to this many are enumerated by a permutation test; of more, this many are drawn."""
_TIE = 1e-9
"""Relabelings this close to the observed difference, in standard deviations, count as equal."""
_FEWEST_RESAMPLES = 100


class Estimate(NamedTuple):
    """A number and its confidence interval; ``low`` and ``high`` are NaN where none can be given.

    Attributes:
        value: the number that was seen.
        low: the lower end of the interval.
        high: the upper end.
    """

    value: float
    low: float
    high: float


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
    return float(_means(_checked(strata)))


def median(strata: Strata) -> float:
    """The median over tasks of each task's mean, as in Agarwal et al. (2021) and rliable.

    It is not the median over seeds: of a single task it is the mean.

    >>> median([[1, 2, 3], [10, 20], [100]])
    15.0
    """
    return float(_medians(_checked(strata)))


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
    return float(_iqms(_checked(strata)))


def estimate(
    strata: Strata,
    statistic: Statistic = iqm,
    *,
    level: float = 0.95,
    resamples: int = 2_000,
    seed: int = 0,
) -> Estimate:
    """A statistic of the scores and its confidence interval, from a stratified bootstrap.

    Seeds are resampled inside each task. The interval is value ± t · s: s is the standard deviation
    over resamples, widened because that of n resampled scores is too small by √((n − 1)/n), and t
    is Student's with Welch's degrees of freedom. The usual percentiles of the resamples cover too
    little: of one task about 90 % instead of 95 % with 10 seeds, and at most 75 % with 3.

    Args:
        strata: one sequence of scores per task. With a single seed in some task, the interval is
            NaN: nothing says how far another seed would have been.
        statistic: `iqm`, `mean`, `median` or any function of the list of tasks' scores.
        level: how often intervals like this one should hold the truth.
        resamples: how often to resample. The width has a relative error of about 1/√(2·resamples).
        seed: seeds the resampling.

    Example:
        >>> value, low, high = estimate([[3.0, 4.0, 5.0, 4.0]], mean)
        >>> print(f"{value} in {low:.1f} to {high:.1f}")
        4.0 in 2.7 to 5.3
    """
    tasks = _checked(strata)
    generator = np.random.default_rng(non_negative_int(seed, "The seed"))
    replicates = _replicates(tasks, statistic, resamples, generator)
    return _interval(float(statistic(tasks)), replicates, tasks, level)


def difference(
    a: Strata,
    b: Strata,
    statistic: Statistic = mean,
    *,
    level: float = 0.95,
    resamples: int = 2_000,
    seed: int = 0,
) -> Estimate:
    """``statistic(a) − statistic(b)`` with its interval, as in `estimate`.

    Both methods' seeds are resampled, each on its own. The numbers of seeds may differ; the tasks
    have to be the same ones in the same order.

    >>> value, low, high = difference([[5.0, 6.0, 7.0]], [[1.0, 2.0, 3.0]])
    >>> print(f"{value} in {low:.1f} to {high:.1f}")
    4.0 in 1.8 to 6.2
    """
    first, second = _checked_pair(a, b)
    generator = np.random.default_rng(non_negative_int(seed, "The seed"))
    replicates = _replicates(first, statistic, resamples, generator)
    replicates = replicates - _replicates(second, statistic, resamples, generator)
    value = float(statistic(first)) - float(statistic(second))
    return _interval(value, replicates, first + second, level)


def probability_of_improvement(a: Strata, b: Strata, *, level: float = 0.95) -> Estimate:
    """How likely a run of ``a`` is to beat one of ``b``: P(X > Y) + P(X = Y)/2, mean over tasks.

    The interval is Newcombe's for a Mann-Whitney statistic (2006, part 2, method 5), with the
    variances of tasks averaged. A bootstrap would find no spread at all where every run of ``a``
    beats every one of ``b``, and call three seeds certain.

    >>> value, low, high = probability_of_improvement([[5, 6, 7]], [[1, 2, 3]])
    >>> print(f"{value} in {low:.2f} to {high:.2f}")
    1.0 in 0.50 to 1.00
    """
    first, second = _checked_pair(a, b)
    wins = [np.sign(np.subtract.outer(x, y)).mean() for x, y in zip(first, second, strict=True)]
    value = (1 + float(np.mean(wins))) / 2
    sizes = np.array([(len(x), len(y)) for x, y in zip(first, second, strict=True)])
    z = _normal_quantile(level)

    def excess(probability: float) -> float:
        return (value - probability) ** 2 - z**2 * _win_variance(probability, sizes)

    # Where all were won, or none, the value itself is a root, but not the one that is wanted.
    low = optimize.brentq(excess, 0.0, min(value, 1 - _TIE)) if value > 0 else 0.0
    high = optimize.brentq(excess, max(value, _TIE), 1.0) if value < 1 else 1.0
    return Estimate(value, float(low), float(high))


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
    pooled = np.sort(np.concatenate(_checked(strata)))
    runs = len(pooled)
    above = runs - np.searchsorted(pooled, _scores(thresholds, "The thresholds"), side="right")
    share = above / runs
    z = _normal_quantile(level)
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
    at, heights = _scores(steps, "The steps"), _scores(values, "The values")
    if len(at) != len(heights):
        raise ValueError(f"There are {len(at)} steps but {len(heights)} values.")
    widths = np.diff(at)
    if (widths <= 0).any():
        raise ValueError("The steps must increase: sort the curve, and keep one value per step.")
    if len(at) == 1:
        return float(heights[0])
    return float(widths @ (heights[1:] + heights[:-1]) / 2 / widths.sum())


def permutation_test(a: Strata, b: Strata, *, seed: int = 0) -> float:
    """The two-sided p-value of a difference of means, from relabeling runs within each task.

    The statistic is the sum over tasks of the difference of means, each in standard deviations of
    that task's scores of both methods: tasks with large returns do not drown the others. p is the
    share of relabelings with a sum at least as far from 0 as the observed one. All are enumerated
    if there are at most 20,000; otherwise that many are drawn, and the observed labels count as
    one of them.

    Args:
        a: one sequence of scores per task.
        b: the same tasks in the same order; other numbers of seeds are fine.
        seed: seeds the draws, if any.

    Example:
        >>> permutation_test([[5, 6, 7]], [[1, 2, 3]])
        0.1
    """
    first, second = _checked_pair(a, b)
    generator = np.random.default_rng(non_negative_int(seed, "The seed"))
    labels = [(len(x), len(y)) for x, y in zip(first, second, strict=True)]
    scores = [_standardised(np.append(x, y)) for x, y in zip(first, second, strict=True)]
    observed = standardised_difference(a, b)
    exact = _count_relabelings(labels) <= _RELABELINGS
    relabeled = np.zeros(1)
    for z, (n, m) in zip(scores, labels, strict=True):
        sums = _all_sums(z, n) if exact else _random_sums(z, n, generator)
        # The scores sum to 0, so those of one label tell the difference of the means.
        gaps = sums * (1 / n + 1 / m)
        relabeled = np.add.outer(relabeled, gaps).ravel() if exact else relabeled + gaps
    as_far = int((abs(relabeled) >= abs(observed) - _TIE).sum())
    return as_far / len(relabeled) if exact else (as_far + 1) / (len(relabeled) + 1)


def standardised_difference(a: Strata, b: Strata) -> float:
    """The statistic of `permutation_test`: the sum over tasks of the difference of means.

    Each is in standard deviations of that task's scores of both methods.

    >>> standardised_difference([[3, 3]], [[1, 1]])
    2.0
    """
    return float(
        sum(
            z[: len(x)].mean() - z[len(x) :].mean()
            for x, y in zip(*_checked_pair(a, b), strict=True)
            for z in [_standardised(np.append(x, y))]
        )
    )


def smallest_p(a_sizes: Sequence[int], b_sizes: Sequence[int]) -> float:
    """The smallest p that `permutation_test` can give for these numbers of seeds in each task.

    Where this is above 0.05, no difference, however large, could have been significant.

    >>> smallest_p([3], [3]), smallest_p([2] * 3, [2] * 3)
    (0.1, 0.009259259259259259)
    """
    if len(a_sizes) != len(b_sizes) or len(a_sizes) == 0:
        raise ValueError(
            f"There must be the same tasks on both sides, got {len(a_sizes)} and {len(b_sizes)}."
        )
    labels = [
        (positive_int(n, "A number of seeds"), positive_int(m, "A number of seeds"))
        for n, m in zip(a_sizes, b_sizes, strict=True)
    ]
    relabelings = _count_relabelings(labels)
    if relabelings > _RELABELINGS:
        return 1 / (_RELABELINGS + 1)
    # With equal numbers, swapping all labels gives the opposite difference, just as far from 0.
    return (2 if all(n == m for n, m in labels) else 1) / relabelings


def smallest_difference(
    a: npt.ArrayLike, b: npt.ArrayLike, *, level: float = 0.95, power: float = 0.8
) -> float:
    """The smallest true difference of means in one task that so many seeds would likely show.

    For a two-sample t-test at this level and power, and the pooled spread of the scores given; it
    is only as good as that spread, which few seeds tell badly.

    Args:
        a: the scores of one method in one task.
        b: those of the other.
        level: 1 minus the p-value that counts as showing it.
        power: how likely it should be shown.

    Returns:
        A difference in units of the scores; NaN with fewer than two seeds on a side.

    Example:
        >>> print(f"{smallest_difference([10, 12, 14, 16], [11, 12, 13, 14]):.1f}")
        4.9
    """
    x, y = _scores(a, "The scores of a"), _scores(b, "The scores of b")
    level, power = _inside(level, "The level"), _inside(power, "The power")
    if power <= 1 - level:
        raise ValueError(f"The power must be above 1 − level = {1 - level:.3g}, got {power}.")
    n, m = len(x), len(y)
    if min(n, m) < 2:
        return math.nan
    spread = math.sqrt((np.var(x) * n + np.var(y) * m) / (n + m - 2))
    return spread * math.sqrt(1 / n + 1 / m) * _noncentrality(n + m - 2, level, power)


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
    heights = _scores(values, "The values")
    if positive_int(window, "The window") % 2 == 0:
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


def _replicates(
    tasks: Sequence[Array], statistic: Statistic, resamples: int, generator: np.random.Generator
) -> Array:
    """The statistic of each resample, of shape (resamples,)."""
    if positive_int(resamples, "The number of resamples") < _FEWEST_RESAMPLES:
        raise ValueError(
            f"The number of resamples must be at least {_FEWEST_RESAMPLES}, got {resamples}."
        )
    drawn = [
        # Sorted first, so that the order of seeds changes nothing.
        np.sort(scores)[generator.integers(len(scores), size=(resamples, len(scores)))]
        for scores in tasks
    ]
    if statistic in _AT_ONCE:
        return _AT_ONCE[statistic](drawn)
    return np.array([float(statistic(resample)) for resample in zip(*drawn, strict=True)])


def _interval(value: float, replicates: Array, tasks: Sequence[Array], level: float) -> Estimate:
    """Student's interval with the bootstrap's standard error; ``tasks`` are all that was drawn."""
    level = _inside(level, "The level")
    if min(map(len, tasks)) < 2:
        return Estimate(value, math.nan, math.nan)
    sizes = np.array([len(scores) for scores in tasks])
    variances = np.array([scores.var(ddof=1) for scores in tasks]) / sizes
    if not variances.any():
        return Estimate(value, value, value)
    # Welch and Satterthwaite: if one task has nearly all the spread, the seeds of the others say
    # little about how large it is. Exact for means, a fair guess for other statistics.
    shares = variances / variances.sum()
    freedom = 1 / (shares**2 / (sizes - 1)).sum()
    widening = 1 / math.sqrt((shares * (sizes - 1) / sizes).sum())
    margin = float(stats.t.ppf((1 + level) / 2, freedom)) * widening * float(replicates.std())
    return Estimate(value, value - margin, value + margin)


def _win_variance(probability: float, sizes: npt.NDArray[np.int64]) -> float:
    """The variance of the mean over tasks of the share of wins; ``sizes`` is (tasks, 2)."""
    p = probability
    correlated = (sizes.mean(axis=1) - 1) * ((1 - p) / (2 - p) + p / (1 + p))
    return float((p * (1 - p) * (1 + correlated) / sizes.prod(axis=1)).sum()) / len(sizes) ** 2


def _normal_quantile(level: float) -> float:
    return float(stats.norm.ppf((1 + _inside(level, "The level")) / 2))


def _noncentrality(freedom: int, level: float, power: float) -> float:
    """How many standard errors a difference must have for a t-test to show it."""
    critical = float(stats.t.ppf((1 + level) / 2, freedom))

    def shortfall(noncentrality: float) -> float:
        # t² has an F distribution, both sides in one. SciPy's noncentral t is NaN in the far tail.
        shown = stats.ncf.sf(critical**2, 1, freedom, noncentrality**2)
        return float(power - shown)

    enough = critical
    while shortfall(enough) > 0:
        enough *= 2
    return float(optimize.brentq(shortfall, 0.0, enough))


# Relabelings: which of a task's scores are called a's.


def _count_relabelings(labels: Sequence[tuple[int, int]]) -> int:
    return math.prod(math.comb(n + m, n) for n, m in labels)


def _standardised(scores: Array) -> Array:
    if np.ptp(scores) == 0:  # the standard deviation itself might be rounding
        return np.zeros_like(scores)
    return np.asarray((scores - scores.mean()) / scores.std())


def _all_sums(scores: Array, chosen: int) -> Array:
    return np.asarray(scores[_choices(len(scores), chosen)].sum(axis=1))


@lru_cache(maxsize=8)
def _choices(size: int, chosen: int) -> npt.NDArray[np.int64]:
    """All ways to choose from ``range(size)``, of shape (ways, chosen)."""
    return np.array(list(combinations(range(size), chosen)))


def _random_sums(scores: Array, chosen: int, generator: np.random.Generator) -> Array:
    copies = np.tile(scores, (_RELABELINGS, 1))
    return np.asarray(generator.permuted(copies, axis=1)[:, :chosen].sum(axis=1))


# What is accepted.


def _checked(strata: Strata, what: str = "The scores") -> list[Array]:
    if len(strata) == 0:
        raise ValueError(f"{what} are empty: give one sequence of scores per task.")
    if all(np.ndim(scores) == 0 for scores in strata):
        raise ValueError(f"{what} must be one sequence per task. Put a single task in a list.")
    return [_scores(scores, f"{what} of task {task}") for task, scores in enumerate(strata)]


def _checked_pair(a: Strata, b: Strata) -> tuple[list[Array], list[Array]]:
    first, second = _checked(a, "The scores in a"), _checked(b, "The scores in b")
    if len(first) != len(second):
        raise ValueError(
            f"a has {len(first)} tasks, b has {len(second)}. Compare them on the same tasks."
        )
    return first, second


def _scores(values: npt.ArrayLike, what: str) -> Array:
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


def _inside(value: float, what: str) -> float:
    if not 0 < fraction(value, what) < 1:
        raise ValueError(f"{what} must be between 0 and 1, got {value!r}.")
    return float(value)
