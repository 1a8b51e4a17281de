"""Numbers as people want to read them."""

from __future__ import annotations

import math
from collections.abc import Callable

from belated.analysis.intervals import Estimate


def as_number(value: float) -> str:
    """A number as people want to read it.

    >>> as_number(1234.5), as_number(0.12345)
    ('1,234', '0.123')
    """
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def signed(value: float) -> str:
    """A number with its sign."""
    return f"{'+' if value > 0 else ''}{as_number(value)}"


def with_interval(estimate: Estimate) -> str:
    """A value with its interval in brackets, if it has one.

    >>> with_interval(Estimate(1234.5, 1000.0, 1500.0)), with_interval(Estimate(0.5, 0.25, 0.75))
    ('1,234 (1,000 to 1,500)', '0.5 (0.25 to 0.75)')
    """
    return f"{as_number(estimate.value)}{between(estimate)}"


def between(estimate: Estimate, write: Callable[[float], str] = as_number) -> str:
    """An interval in brackets, with a space before; nothing if there is none."""
    if math.isnan(estimate.low):
        return ""
    return f" ({write(estimate.low)} to {write(estimate.high)})"
