"""How long a signal interval lasts: the distributions q_n of the paper (Definition 1)."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate

import numpy as np

from belated.ranges import positive_int


class IntervalLength(ABC):
    """A distribution over interval lengths.

    ``str()`` of every distribution is the text that `parse_length` turns back into it.
    """

    @property
    @abstractmethod
    def pmf(self) -> dict[int, float]:
        """The exact probability of each possible length, shortest first."""

    @abstractmethod
    def sample(self, generator: np.random.Generator) -> int:
        """Draw one length."""

    @property
    def max_length(self) -> int:
        """The largest length that can occur: n_max."""
        return max(self.pmf)

    @property
    def mean(self) -> float:
        """The expected length."""
        return math.fsum(length * probability for length, probability in self.pmf.items())


@dataclass(frozen=True)
class Fixed(IntervalLength):
    """Every interval has the same length.

    >>> Fixed(20).pmf
    {20: 1.0}
    """

    length: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "length", positive_int(self.length, "An interval's length"))

    @property
    def pmf(self) -> dict[int, float]:  # noqa: D102
        return {self.length: 1.0}

    def sample(self, generator: np.random.Generator) -> int:  # noqa: D102
        return self.length

    def __str__(self) -> str:
        return str(self.length)


@dataclass(frozen=True)
class Uniform(IntervalLength):
    """Every length from ``low`` to ``high``, both included, is equally likely.

    >>> Uniform(15, 20).mean
    17.5
    """

    low: int
    high: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "low", positive_int(self.low, "The shortest interval"))
        object.__setattr__(self, "high", positive_int(self.high, "The longest interval"))
        if self.low > self.high:
            raise ValueError(
                f"The shortest interval ({self.low}) is longer than the longest ({self.high}); "
                f"did you mean {self.high}:{self.low}?"
            )

    @property
    def pmf(self) -> dict[int, float]:  # noqa: D102
        count = self.high - self.low + 1
        return dict.fromkeys(range(self.low, self.high + 1), 1 / count)

    def sample(self, generator: np.random.Generator) -> int:  # noqa: D102
        return int(generator.integers(self.low, self.high, endpoint=True))

    def __str__(self) -> str:
        return f"{self.low}:{self.high}"


@dataclass(frozen=True)
class Choice(IntervalLength):
    """Lengths with given probabilities.

    >>> Choice({5: 0.2, 10: 0.8}).mean
    9.0
    """

    probabilities: Mapping[int, float] = field(hash=False)

    def __post_init__(self) -> None:
        if not self.probabilities:
            raise ValueError("Choice needs at least one length, for example {5: 0.2, 10: 0.8}.")
        checked: dict[int, float] = {}
        for length, probability in self.probabilities.items():
            if not 0 < probability <= 1:
                raise ValueError(
                    f"The probability of length {length} is {probability}; it must be in (0, 1]. "
                    "Leave out lengths that never occur."
                )
            checked[positive_int(length, "An interval's length")] = float(probability)
        total = math.fsum(checked.values())
        if not math.isclose(total, 1.0, rel_tol=0, abs_tol=1e-9):
            raise ValueError(f"The probabilities of the lengths sum to {total:g}, not to 1.")
        object.__setattr__(self, "probabilities", dict(sorted(checked.items())))

    @property
    def pmf(self) -> dict[int, float]:  # noqa: D102
        return dict(self.probabilities)

    @cached_property
    def _table(self) -> tuple[list[float], list[int]]:
        return list(accumulate(self.probabilities.values())), list(self.probabilities)

    def sample(self, generator: np.random.Generator) -> int:  # noqa: D102
        cumulative, lengths = self._table
        # Rounding may leave the last cumulative probability just under 1.
        return lengths[min(bisect_right(cumulative, generator.random()), len(lengths) - 1)]

    def __str__(self) -> str:
        return ",".join(f"{length}={p!r}" for length, p in self.probabilities.items())


LengthLike = IntervalLength | int | str | tuple[int, int] | list[int] | Mapping[int, float]


def parse_length(spec: LengthLike) -> IntervalLength:
    """Turn a number, a pair, a mapping or text into a distribution of lengths.

    >>> parse_length(20)
    Fixed(length=20)
    >>> parse_length("15:20") == parse_length((15, 20)) == Uniform(15, 20)
    True
    >>> parse_length("5=0.2,10=0.8")
    Choice(probabilities={5: 0.2, 10: 0.8})

    Raises:
        ValueError: if ``spec`` is none of these or its values are not a distribution.
    """
    if isinstance(spec, IntervalLength):
        return spec
    if isinstance(spec, str):
        return _parse_text(spec)
    if isinstance(spec, Mapping):
        return Choice(spec)
    if isinstance(spec, (tuple, list)):
        if len(spec) != 2:
            raise ValueError(f"Expected (shortest, longest), got {spec!r}.")
        return Uniform(*spec)
    return Fixed(spec)


def _parse_text(text: str) -> IntervalLength:
    try:
        if "=" in text:
            pairs = [item.split("=") for item in text.split(",")]
            probabilities = {int(length): float(probability) for length, probability in pairs}
            if len(probabilities) < len(pairs):
                raise ValueError("a length is given twice")
        elif ":" in text:
            low, high = (int(part) for part in text.split(":"))
        else:
            length = int(text)
    except ValueError as error:
        raise ValueError(
            f"Cannot read {text!r} as interval lengths ({error}). Write 20 for a fixed length, "
            "15:20 for a uniform one, or 5=0.2,10=0.8 for given probabilities."
        ) from None
    if "=" in text:
        return Choice(probabilities)
    if ":" in text:
        return Uniform(low, high)
    return Fixed(length)
