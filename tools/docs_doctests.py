"""An extension of Griffe: doctests in docstrings are shown as code, wherever they stand."""

from __future__ import annotations

import re
from typing import Any

import griffe

DOCTEST = re.compile(r"^( *)>>> .*(?:\n\1\S.*)*", re.MULTILINE)


def fenced(docstring: str) -> str:
    """A docstring with a fence around each run of lines that starts with a prompt.

    ``Example:`` is a note that one must open; ``Examples:`` is a section.
    """
    plural = re.sub(r"^Example:$", "Examples:", docstring, flags=re.MULTILINE)
    return DOCTEST.sub(r"\1```pycon\n\g<0>\n\1```", plural)


def fence(_: Any, *, obj: Any, **__: Any) -> None:
    """Fence the doctests of whatever has a docstring."""
    if obj.docstring is not None:
        obj.docstring.value = fenced(obj.docstring.value)


# A class statement would subclass Any where Griffe is not installed, which mypy refuses.
Doctests = type("Doctests", (griffe.Extension,), {"on_object": fence})
