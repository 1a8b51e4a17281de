"""From a method to the name of the nearest one in the table, and what it differs in."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from belated.methods import METHODS, Method, find_method
from belated.parts import to_json

Settings = dict[str, Any]


def name_of(method: Method) -> tuple[str, Settings]:
    """A name and the hyperparameters that make its method equal to another.

    A method that is put together as none in the table is gets a name made of its parts, which
    `find_method` does not know.

    >>> from belated.parts import override
    >>> name_of(override(find_method("hc-pairwise-2"), {"gamma": 0.9, "critic.units": [8]}))
    ('hc-pairwise-2', {'units': [8], 'gamma': 0.9})
    """
    own = _flat(to_json(method))
    found: list[tuple[str, Settings]] = []
    for name in _names(own.get("backbone.critic.history.reach")):
        other = _flat(to_json(find_method(name)))
        if _structure(own) == _structure(other):
            found.append((name, {key: own[key] for key in own if own[key] != other[key]}))
    if not found:
        parts = [value for key, value in own.items() if _is_type(key) and "backbone" in key]
        return "-".join(part for part in parts if part not in ("Markov", "Revealed")), {}
    name, changes = min(found, key=lambda each: len(each[1]))
    count = Counter(map(_last, own))
    return name, {_last(k) if count[_last(k)] == 1 else k: value for k, value in changes.items()}


def _names(reach: int | None) -> Iterable[str]:
    """All names, hc-pairwise-K for one K only."""
    if reach is None:
        return METHODS
    return dict.fromkeys(re.sub(r"pairwise-\d+", f"pairwise-{reach}", name) for name in METHODS)


def _flat(values: dict[str, Any]) -> Settings:
    return dict(_entries(values, ""))


def _entries(values: dict[str, Any], above: str) -> Iterator[tuple[str, Any]]:
    for name, value in values.items():
        if isinstance(value, dict):
            yield from _entries(value, f"{above}{name}.")
        else:
            yield above + name, value


def _structure(settings: Settings) -> Settings:
    """Which parts there are, and which settings they have."""
    return {key: value if _is_type(key) else None for key, value in settings.items()}


def _is_type(key: str) -> bool:
    return _last(key) == "type"


def _last(key: str) -> str:
    return key.rpartition(".")[2]
