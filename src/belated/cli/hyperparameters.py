"""The tables of docs/hyperparameters.md, made of what the parts' classes declare."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Hashable, Iterator
from typing import Any

from belated.cli.methods import as_text, family_of, meaning_of, stem_of
from belated.methods import METHODS
from belated.ranges import allowed

KINDS = ("backbone", "critic", "history", "credit", "training")
"""The places of parts in a method, which are names of fields."""


def as_markdown() -> str:
    """All tables, a heading for each kind of part."""
    lines: list[str] = []
    for kind in KINDS:
        lines += ["", f"### {kind.capitalize()}"]
        for cls in _classes(kind):
            lines += ["", f"**`{cls.__name__}`**: {_first_line(cls)}"]
            rows = [_row(kind, cls, name) for name in _own_settings(kind, cls)]
            if rows:
                lines += ["", "| name | default | allowed | meaning |", "|---|---|---|---|", *rows]
    return "\n".join(lines[1:])


def _parts(kind: str) -> dict[str, Any]:
    """The part of a kind in each method that has one."""

    def inside(part: Any) -> Iterator[Any]:
        for field in dataclasses.fields(part):
            value = getattr(part, field.name)
            if dataclasses.is_dataclass(value):
                yield from ([value] if field.name == kind else inside(value))

    return {name: part for name, method in METHODS.items() for part in inside(method)}


def _classes(kind: str) -> list[type]:
    """The classes of a kind, each after the dataclasses that it inherits from."""
    found: dict[type, None] = {}
    for part in _parts(kind).values():
        bases = (cls for cls in type(part).__mro__[::-1] if dataclasses.is_dataclass(cls))
        found |= dict.fromkeys(bases)
    return list(found)


def _own_settings(kind: str, cls: type) -> list[str]:
    """What a class declares, or gives another default, parts aside."""
    declared = inspect.get_annotations(cls)
    part: Any = next(part for part in _parts(kind).values() if isinstance(part, cls))
    names = [field.name for field in dataclasses.fields(part) if field.name in declared]
    return [name for name in names if not dataclasses.is_dataclass(getattr(part, name))]


def _row(kind: str, cls: type, name: str) -> str:
    parts = {
        method: part for method, part in _parts(kind).items() if _declaring(type(part), name) is cls
    }
    [default] = (f.default for f in dataclasses.fields(cls) if f.name == name)
    others = _exceptions({method: getattr(part, name) for method, part in parts.items()}, default)
    cells = [] if default is dataclasses.MISSING else [f"`{as_text(default)}`"]
    cells += [f"`{as_text(value)}` in `{label}`" for label, value in others.items()]
    part = next(iter(parts.values()))
    row = (f"`{name}`", ", ".join(cells), allowed(part, name), meaning_of(cls, name))
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |"


def _declaring(cls: type, name: str) -> type | None:
    return next((each for each in cls.__mro__ if name in inspect.get_annotations(each)), None)


def _exceptions(values: dict[str, Hashable], default: Any) -> dict[str, Any]:
    """Which methods have another value than the default, said as shortly as it is true."""

    def stem(method: str) -> str:
        return stem_of(method) if stem_of(method) in METHODS else method

    labels: tuple[Callable[[str], str], ...] = (stem, family_of, str)
    for label in labels:
        grouped: dict[str, set[Hashable]] = {}
        for method, value in values.items():
            grouped.setdefault(label(method), set()).add(value)
        if all(len(same) == 1 for same in grouped.values()):
            return {name: value for name, [value] in grouped.items() if value != default}
    raise AssertionError("A method has one value.")


def _first_line(cls: type) -> str:
    return (inspect.getdoc(cls) or "").partition("\n")[0].replace("``", "`")
