"""Comparing two methods: how far apart they are, and whether so few seeds can show it.

Scores come as in `statistics`: one sequence per task, one score per seed, the same tasks in the
same order for both methods. SciPy is imported where it is needed, as there.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from itertools import combinations

import numpy as np
import numpy.typing as npt

from belated.analysis.intervals import (
    Array,
    Estimate,
    error_of_mean,
    error_of_resamples,
    normal_quantile,
    proper_fraction,
    student_interval,
)
from belated.analysis.statistics import (
    Statistic,
    Strata,
    bootstrap,
    checked_scores,
    checked_tasks,
    enough_resamples,
    mean,
)
from belated.ranges import non_negative_int, positive_int

_RELABELINGS = 20_000
"""Up to this many are enumerated by a permutation test; of more, this many are drawn."""
_GRID = 100
"""How finely the spreads are cut that a test may find."""
_TIE = 1e-9
"""Relabelings this close to the observed difference, in standard deviations, count as equal."""


def difference(
    a: Strata,
    b: Strata,
    statistic: Statistic = mean,
    *,
    level: float = 0.95,
    resamples: int = 2_000,
    seed: int = 0,
) -> Estimate:
    """``statistic(a) − statistic(b)`` with its interval, as in `estimate`; of means, Welch's.

    The numbers of seeds may differ; the tasks have to be the same ones in the same order.

    >>> value, low, high = difference([[5.0, 6.0, 7.0]], [[1.0, 2.0, 3.0]])
    >>> print(f"{value} in {low:.1f} to {high:.1f}")
    4.0 in 1.7 to 6.3
    """
    first, second = _same_tasks(a, b)
    resamples = enough_resamples(resamples)
    generator = np.random.default_rng(non_negative_int(seed, "The seed"))
    value = float(statistic(first)) - float(statistic(second))
    if statistic is mean:
        error = math.hypot(error_of_mean(first), error_of_mean(second))
    else:
        replicates = bootstrap(first, statistic, resamples, generator)
        replicates = replicates - bootstrap(second, statistic, resamples, generator)
        error = error_of_resamples(replicates, first + second)
    return student_interval(value, error, first + second, level)


def ratio(
    a: Strata, b: Strata, *, level: float = 0.95, resamples: int = 2_000, seed: int = 0
) -> Estimate:
    """The mean over tasks of mean(a)/mean(b), with its interval, as in `difference`.

    Raises:
        ValueError: if a mean of ``b`` is not above 0.

    >>> ratio([[2.0, 4.0], [1.0, 1.0]], [[6.0, 6.0], [1.0, 1.0]]).value
    0.75
    """
    above, below = _same_tasks(a, b)
    if min(scores.mean() for scores in below) <= 0:
        raise ValueError("A ratio means something only where what is divided by is above 0.")
    resamples = enough_resamples(resamples)
    generator = np.random.default_rng(non_negative_int(seed, "The seed"))
    replicates = np.mean(
        [
            bootstrap([x], mean, resamples, generator) / bootstrap([y], mean, resamples, generator)
            for x, y in zip(above, below, strict=True)
        ],
        axis=0,
    )
    shares = [x / y.mean() for x, y in zip(above, below, strict=True)]
    # How much each score moves the ratio: for the interval's degrees of freedom.
    others = [y * x.mean() / y.mean() ** 2 for x, y in zip(above, below, strict=True)]
    value = float(np.mean([scores.mean() for scores in shares]))
    drawn = shares + others
    return student_interval(value, error_of_resamples(replicates, drawn), drawn, level)


def probability_of_improvement(a: Strata, b: Strata, *, level: float = 0.95) -> Estimate:
    """How likely a run of ``a`` is to beat one of ``b``: P(X > Y) + P(X = Y)/2, mean over tasks.

    The interval is Newcombe's for a Mann-Whitney statistic (2006, part 2, method 5), with the
    variances of tasks averaged. A bootstrap would find no spread at all where every run of ``a``
    beats every one of ``b``, and call three seeds certain.

    >>> value, low, high = probability_of_improvement([[5, 6, 7]], [[1, 2, 3]])
    >>> print(f"{value} in {low:.2f} to {high:.2f}")
    1.0 in 0.50 to 1.00
    """
    from scipy import optimize

    first, second = _same_tasks(a, b)
    wins = [np.sign(np.subtract.outer(x, y)).mean() for x, y in zip(first, second, strict=True)]
    value = (1 + float(np.mean(wins))) / 2
    sizes = np.array([(len(x), len(y)) for x, y in zip(first, second, strict=True)])
    z = normal_quantile(level)

    def excess(probability: float) -> float:
        return (value - probability) ** 2 - z**2 * _win_variance(probability, sizes)

    # Where all were won, or none, the value itself is a root, but not the one that is wanted.
    low = optimize.brentq(excess, 0.0, min(value, 1 - _TIE)) if value > 0 else 0.0
    high = optimize.brentq(excess, max(value, _TIE), 1.0) if value < 1 else 1.0
    return Estimate(value, float(low), float(high))


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
    first, second = _same_tasks(a, b)
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
            for x, y in zip(*_same_tasks(a, b), strict=True)
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

    For Welch's t-test at this level and power, and the spread of the scores given; it is only as
    good as that spread, which few seeds tell badly.

    Args:
        a: the scores of one method in one task.
        b: those of the other.
        level: 1 minus the p-value that counts as showing it.
        power: how likely it should be shown.

    Returns:
        A difference in units of the scores; NaN with fewer than two seeds on a side.

    Example:
        >>> print(f"{smallest_difference([10, 12, 14, 16], [11, 12, 13, 14]):.1f}")
        5.4
    """
    x, y = checked_scores(a, "The scores of a"), checked_scores(b, "The scores of b")
    level, power = proper_fraction(level, "The level"), proper_fraction(power, "The power")
    if power <= 1 - level:
        raise ValueError(f"The power must be above 1 − level = {1 - level:.3g}, got {power}.")
    error = math.hypot(error_of_mean([x]), error_of_mean([y]))
    if math.isnan(error) or error == 0:
        return error
    return _gap_that_shows(x, y, error, level, power)


def _win_variance(probability: float, sizes: npt.NDArray[np.int64]) -> float:
    """The variance of the mean over tasks of the share of wins; ``sizes`` is (tasks, 2)."""
    p = probability
    correlated = (sizes.mean(axis=1) - 1) * ((1 - p) / (2 - p) + p / (1 + p))
    return float((p * (1 - p) * (1 + correlated) / sizes.prod(axis=1)).sum()) / len(sizes) ** 2


def _gap_that_shows(a: Array, b: Array, error: float, level: float, power: float) -> float:
    """The difference that Welch's test shows so often, if scores are normal and spread like these.

    The test measures spreads anew each time. What it may find is put on a grid of equally likely
    values; for each of them the difference seen must exceed a margin.
    """
    from scipy import optimize, special, stats

    shares = (np.arange(_GRID) + 0.5) / _GRID
    found = [
        error_of_mean([scores]) ** 2 * stats.chi2.ppf(shares, len(scores) - 1) / (len(scores) - 1)
        for scores in (a, b)
    ]
    one, two = np.meshgrid(*found)
    freedom = (one + two) ** 2 / (one**2 / (len(a) - 1) + two**2 / (len(b) - 1))
    margin = special.stdtrit(freedom, (1 + level) / 2) * np.sqrt(one + two)

    def shortfall(gap: float) -> float:
        shown = special.ndtr((gap - margin) / error) + special.ndtr((-gap - margin) / error)
        return float(power - shown.mean())

    enough = error
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


def _same_tasks(a: Strata, b: Strata) -> tuple[list[Array], list[Array]]:
    first, second = checked_tasks(a, "The scores in a"), checked_tasks(b, "The scores in b")
    if len(first) != len(second):
        raise ValueError(
            f"a has {len(first)} tasks, b has {len(second)}. Compare them on the same tasks."
        )
    return first, second
