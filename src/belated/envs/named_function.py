"""Functions given by name, as in a config file or on a command line."""

from __future__ import annotations

import pkgutil
from collections.abc import Callable
from typing import Any


def import_function(name: str, what: str) -> Callable[..., Any]:
    """Import ``"package.module:function"``; ``what`` names it in errors.

    >>> import_function("math:sqrt", "the reward function")(4)
    2.0
    """
    try:
        function = pkgutil.resolve_name(name)
    except (ImportError, AttributeError, ValueError) as error:
        raise ValueError(f"Cannot import {what} {name!r}: {error}.") from error
    if not callable(function):
        raise ValueError(f"Expected {what} under the name {name!r}, found {function!r}.")
    return function  # type: ignore[no-any-return]
