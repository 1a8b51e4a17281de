"""Student's interval about a number, from the scores that it comes from.

Scores come as a list of arrays: one for each task, with one score per seed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from belated.ranges import fraction

Array: TypeAlias = npt.NDArray[np.float64]


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


def error_of_mean(tasks: Sequence[Array]) -> float:
    """The standard error of `mean`; NaN if some task has a single score."""
    return math.sqrt(_variances(tasks).sum()) / len(tasks)


def error_of_resamples(replicates: Array, tasks: Sequence[Array]) -> float:
    """The standard error that resamples show, widened; ``tasks`` are all that was drawn from.

    Exact for means, a fair guess for other statistics.
    """
    sizes, variances = _sizes(tasks), _variances(tasks)
    if not variances.any() or np.isnan(variances).any():
        return float(replicates.std())
    shares = variances / variances.sum()
    return float(replicates.std()) / math.sqrt((shares * (sizes - 1) / sizes).sum())


def student_interval(value: float, error: float, tasks: Sequence[Array], level: float) -> Estimate:
    """Student's interval about a value with this standard error; it comes from all ``tasks``."""
    from scipy import special

    level = proper_fraction(level, "The level")
    variances = _variances(tasks)
    if np.isnan(variances).any():
        return Estimate(value, math.nan, math.nan)
    if not variances.any():
        return Estimate(value, value, value)
    margin = float(special.stdtrit(welch_freedom(tasks), (1 + level) / 2)) * error
    return Estimate(value, value - margin, value + margin)


def welch_freedom(tasks: Sequence[Array]) -> float:
    """Welch's and Satterthwaite's degrees of freedom.

    If one task has nearly all the spread, the seeds of the others say little about how large it is.
    """
    variances = _variances(tasks)
    shares = variances / variances.sum()
    return float(1 / (shares**2 / (_sizes(tasks) - 1)).sum())


def _sizes(tasks: Sequence[Array]) -> Array:
    return np.array([len(scores) for scores in tasks], dtype=np.float64)


def _variances(tasks: Sequence[Array]) -> Array:
    """Of the mean of each task's scores; NaN of a single score."""
    return np.array(
        [s.var(ddof=1) / len(s) if len(s) > 1 else math.nan for s in tasks], dtype=np.float64
    )


def normal_quantile(level: float) -> float:
    """How many standard errors a normal interval reaches to each side."""
    from scipy import special

    return float(special.ndtri((1 + proper_fraction(level, "The level")) / 2))


def proper_fraction(value: float, what: str) -> float:
    """A number above 0 and below 1."""
    if not 0 < fraction(value, what) < 1:
        raise ValueError(f"{what} must be between 0 and 1, got {value!r}.")
    return float(value)
