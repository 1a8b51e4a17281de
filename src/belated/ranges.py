"""What values settings may have; all others are refused by name, value and range."""

from __future__ import annotations

import inspect
import math
import numbers
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

Check = Callable[[Any, str], Any]
"""Takes a value and its name; returns the value in plain form, or raises ValueError. The first line
of its docstring says what it accepts."""

_CHECKS: dict[tuple[type, str], Check] = {}


def checked(config: Any, **checks: Check) -> None:
    """Check fields of a frozen dataclass, from its ``__post_init__``.

    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Decay:
    ...     gamma: float = 0.99
    ...     def __post_init__(self) -> None:
    ...         checked(self, gamma=fraction)
    >>> Decay(gamma=1.5)
    Traceback (most recent call last):
    ValueError: gamma must be a number from 0 to 1, got 1.5.
    """
    for name, check in checks.items():
        _CHECKS[type(config), name] = check
        object.__setattr__(config, name, check(getattr(config, name), name))


def allowed(config: Any, name: str) -> str:
    """Say in words what values a field may have; nothing if it is not checked.

    >>> from belated.methods import SAC
    >>> allowed(SAC(), "gamma")
    'A number from 0 to 1'
    """
    check = _CHECKS.get((type(config), name))
    return "" if check is None else _words(check)


def _words(check: Check) -> str:
    return (inspect.getdoc(check) or "").partition("\n")[0].rstrip(".")


def positive_int(value: Any, what: str) -> int:
    """A whole number of at least 1."""
    return _int_from(value, 1, what)


def non_negative_int(value: Any, what: str) -> int:
    """A whole number of at least 0."""
    return _int_from(value, 0, what)


def _int_from(value: Any, minimum: int, what: str) -> int:
    if isinstance(value, (float, np.floating)) and value.is_integer():
        value = int(value)  # 1e5, say
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise ValueError(f"{what} must be a whole number, got {value!r}.")
    try:
        number = operator.index(value)
    except TypeError:  # an array, say
        raise ValueError(f"{what} must be a whole number, got {value!r}.") from None
    if number < minimum:
        raise ValueError(f"{what} must be at least {minimum}, got {number}.")
    return number


def number(value: Any, what: str) -> float:
    """Any finite number."""
    return _real(value, what, "a finite number", lambda x: True)


def fraction(value: Any, what: str) -> float:
    """A number from 0 to 1."""
    return _real(value, what, "a number from 0 to 1", lambda x: 0 <= x <= 1)


def positive(value: Any, what: str) -> float:
    """A number above 0."""
    return _real(value, what, "a number above 0", lambda x: x > 0)


def non_negative(value: Any, what: str) -> float:
    """A number of at least 0."""
    return _real(value, what, "a number of at least 0", lambda x: x >= 0)


def _real(value: Any, what: str, expected: str, inside: Callable[[float], bool]) -> float:
    try:
        is_number = isinstance(value, numbers.Real) and not isinstance(value, bool)
        if is_number and math.isfinite(value) and inside(float(value)):
            return float(value)
    except OverflowError:  # a whole number beyond all floats
        pass
    raise ValueError(f"{what} must be {expected}, got {value!r}.")


def flag(value: Any, what: str) -> bool:
    """True or False."""
    if not isinstance(value, (bool, np.bool_)):
        raise ValueError(f"{what} must be True or False, got {value!r}.")
    return bool(value)


def layers(value: Any, what: str) -> tuple[int, ...]:
    """The sizes of one or more hidden layers."""
    value = value.tolist() if isinstance(value, np.ndarray) else value
    if not isinstance(value, Sequence) or isinstance(value, str) or not value:
        raise ValueError(
            f"{what} must list the sizes of hidden layers, for example (256, 256), got {value!r}."
        )
    return tuple(positive_int(size, f"Every layer of {what}") for size in value)


def one_of(*options: str) -> Check:
    """One of two words or more."""

    def check(value: Any, what: str) -> str:
        if value not in options:
            raise ValueError(f"{what} must be one of {', '.join(options)}, got {value!r}.")
        return str(value)

    check.__doc__ = f"{', '.join(options[:-1])} or {options[-1]}."
    return check


def optional(check: Check, *words: str) -> Check:
    """None, or what another check accepts; some words may mean None too."""

    def check_unless_none(value: Any, what: str) -> Any:
        is_none = value is None or (isinstance(value, str) and value in words)
        return None if is_none else check(value, what)

    check_unless_none.__doc__ = f"{_words(check)}; or {', '.join(('None', *words))}."
    return check_unless_none
