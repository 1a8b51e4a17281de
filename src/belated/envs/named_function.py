"""Functions given by name, as in a config file or on a command line."""

from __future__ import annotations

import pkgutil
from collections.abc import Callable
from pathlib import Path
from typing import Any


def import_function(name: str, what: str) -> Callable[..., Any]:
    """Import ``"package.module:function"``; ``what`` names it in errors.

    >>> import_function("math:sqrt", "the reward function")(4)
    2.0
    """
    try:
        function = pkgutil.resolve_name(name)
    except ModuleNotFoundError as error:
        why = not_found(error, name.partition(":")[0])
        raise ValueError(f"Cannot import {what} {name!r}: {why}") from error
    except (ImportError, AttributeError, ValueError) as error:
        raise ValueError(f"Cannot import {what} {name!r}: {error}.") from error
    if not callable(function):
        raise ValueError(f"Expected {what} under the name {name!r}, found {function!r}.")
    return function  # type: ignore[no-any-return]


def not_found(error: ModuleNotFoundError, module: str) -> str:
    """Say which module is missing; if it is the one that was named, also where to put it."""
    if not f"{module}.".startswith(f"{error.name}."):
        return f"{str(error).rstrip('.')}."
    return (
        f"there is no module {module!r} in {Path.cwd()}, nor where Python looks for modules. Go to "
        "the folder that it is in, or name that folder: PYTHONPATH=FOLDER belated ..."
    )
