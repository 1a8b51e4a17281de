"""The look of each method: the same colour and line in every picture."""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from typing import Literal, NamedTuple, TypeAlias

Dashes: TypeAlias = tuple[float, ...]

INK, GRID = "#000000", "#d8d8d8"
"""Of everything that belongs to no method; the report has its own for both."""


class Look(NamedTuple):
    """How a method is drawn.

    Attributes:
        colour: what its critic or credit rule is.
        dashes: what it stands on: lengths of strokes and gaps in line widths; none is solid.
    """

    colour: str
    dashes: Dashes = ()

    @property
    def linestyle(self) -> Literal["-"] | tuple[float, Dashes]:
        """The line, as matplotlib wants it."""
        return (0, self.dashes) if self.dashes else "-"

    @property
    def hatch(self) -> str:
        """What stands for the line on an area."""
        return _HATCHES[self.dashes]


_LONG, DOTS, _DASH_DOT = (5.0, 1.5), (1.0, 1.2), (4.0, 1.2, 1.0, 1.2)
_DASHES, _DASH_DOT_DOT = (2.5, 1.2), (3.0, 1.2, 1.0, 1.2, 1.0, 1.2)
_DASH_DASH_DOT = (3.0, 1.2, 3.0, 1.2, 1.0, 1.2)
_HATCHES: dict[Dashes, str] = {
    (): "",
    _DASHES: "////",
    DOTS: "....",
    _DASH_DOT: "xxxx",
    _LONG: r"\\\\",
    _DASH_DOT_DOT: "||||",
    _DASH_DASH_DOT: "++++",
}
_OTHER_LINES = tuple(_HATCHES)[1:]

_COLOURS = {
    "": "#bf5700",  # as the backbone comes, with late rewards
    "q-rnn": "#ff9800",
    "hc-singleton": "#72b2fc",
    "hc-pairwise-1": "#1d5c97",
    "hc-pairwise-3": "#785ef0",
    "hc-rnn": "#00c47a",
    "ircr": "#b48ba9",
    "rrd": "#98392d",
    "rudder": "#84a848",
    "lirpg": "#6c5460",
}
"""Chosen by search: any two are far apart in Lab, also as seen without red or green cones, and all
stand out from white and from the report's dark page."""
_BACKBONES: dict[str, Dashes] = {
    "": (),
    "crossq": _LONG,
    "td3": DOTS,
    "dqn": _DASH_DASH_DOT,
}


def _known_looks() -> dict[str, Look]:
    looks = {"oracle": Look(INK, _DASHES), "ppo-oracle": Look("#8a8a8a", _DASH_DOT)}
    for backbone, dashes in _BACKBONES.items():
        for rule, colour in list(_COLOURS.items())[:8]:
            looks["-".join(filter(None, (backbone, rule))) or "sac"] = Look(colour, dashes)
        if backbone:
            looks[f"{backbone}-oracle"] = Look("#8a8a8a", dashes)
    return looks | {
        "crossq-hc-rrd": Look(_COLOURS["rudder"], _LONG),
        "ircr-original": Look(_COLOURS["ircr"], _DASH_DOT_DOT),
        "ppo": Look(_COLOURS[""], _DASH_DOT),
        "rudder": Look(_COLOURS["rudder"], _DASH_DOT),
        "lirpg": Look(_COLOURS["lirpg"], _DASH_DOT),
        "sb3-sac": Look("#8a8a8a", _DASH_DOT_DOT),
        "sbx-sac": Look(_COLOURS["lirpg"], _DASH_DASH_DOT),
    }


LOOKS = _known_looks()
"""The looks of the library's methods, in the order of legends."""


def looks(names: Iterable[str]) -> dict[str, Look]:
    """The looks of all methods in a picture, in the order of its legend.

    A variant, METHOD-VARIANT, has its method's colour and another line. An unknown name has a look
    that depends on nothing but the name, as long as no other method of the picture has it.

    >>> looks(["hc-rnn-no-regulariser", "hc-rnn"])["hc-rnn-no-regulariser"].colour
    '#00c47a'
    """
    found: dict[str, Look] = {}
    for name in sorted(set(names), key=_place):
        preferred = _candidates(name)
        free = [look for look in preferred if look not in found.values()]
        used = {look.colour for look in found.values()}
        fresh = [look for look in free if look.colour not in used]
        found[name] = (fresh or free or preferred)[0]
    return found


def _parent(name: str) -> str | None:
    """The library's method that a name is, or is a variant of."""
    parents = [known for known in LOOKS if name == known or name.startswith(f"{known}-")]
    return max(parents, key=len, default=None)


def _place(name: str) -> tuple[int, str]:
    parent = _parent(name)
    return (len(LOOKS) if parent is None else list(LOOKS).index(parent), name)


def _candidates(name: str) -> list[Look]:
    """The looks that a name may have, the one that it should have first."""
    if name in LOOKS:
        return [LOOKS[name]]
    parent = _parent(name)
    # A variant has the same line with every method. (hash() differs between processes.)
    start = zlib.crc32(name.removeprefix(parent or "").encode(errors="replace"))
    if parent is None:
        pool = [Look(each, dashes) for dashes in _OTHER_LINES for each in _COLOURS.values()]
    else:
        pool = [Look(LOOKS[parent].colour, dashes) for dashes in _OTHER_LINES]
    start %= len(pool)
    return pool[start:] + pool[:start]
