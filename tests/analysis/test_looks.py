from __future__ import annotations

from itertools import combinations

import numpy as np
import numpy.typing as npt
import pytest

from belated.analysis.looks import LOOKS, looks
from belated.methods import METHODS

PAPER = [
    "sac", "oracle", "q-rnn", "hc-singleton", "hc-pairwise-1", "hc-pairwise-3", "hc-rnn", "ircr",
    "rrd", "rudder", "lirpg",
]  # fmt: skip
"""What is drawn together in the paper's comparison."""
Floats = npt.NDArray[np.float64]


def test_every_method_has_its_own_look() -> None:
    assert {*METHODS} <= {*LOOKS}
    assert len({*LOOKS.values()}) == len(LOOKS)


def test_looks_do_not_depend_on_the_company() -> None:
    together = looks(PAPER)
    assert list(together) == sorted(PAPER, key=list(LOOKS).index)
    for name in PAPER:
        assert looks([name]) == {name: together[name]}


def test_a_variant_has_its_methods_colour_and_another_line() -> None:
    names = ["hc-rnn", *(f"hc-rnn-{variant}" for variant in ("no-regulariser", "a", "b", "c"))]
    found = looks(names)
    assert {look.colour for look in found.values()} == {LOOKS["hc-rnn"].colour}
    assert len({*found.values()}) == len(names)
    assert looks(["td3-hc-rnn-a"])["td3-hc-rnn-a"].colour == LOOKS["td3-hc-rnn"].colour


def test_unknown_names_have_a_look_of_their_own() -> None:
    names = [f"somebody's {number}" for number in range(20)]
    found = looks([*names, *PAPER])
    assert len({*found.values()}) == len(found)
    assert looks(names[:1]) == looks(names[:1])
    few = looks(names[:8])
    assert len({look.colour for look in few.values()}) == 8


_WITHOUT_CONES = {
    "none": np.eye(3),
    # Machado, Oliveira and Fernandes (2009), severity 1.
    "red": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216],
         [-0.003882, -0.048116, 1.051998]]
    ),
    "green": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413],
         [-0.011820, 0.042940, 0.968881]]
    ),
}  # fmt: skip
_TO_XYZ = np.array(
    [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750],
     [0.0193339, 0.1191920, 0.9503041]]
)  # fmt: skip


def linear(colour: str) -> Floats:
    encoded = np.array([int(colour[at : at + 2], 16) for at in (1, 3, 5)]) / 255
    return np.where(encoded <= 0.04045, encoded / 12.92, ((encoded + 0.055) / 1.055) ** 2.4)


def lab(light: Floats) -> Floats:
    xyz = _TO_XYZ @ np.clip(light, 0, 1) / np.array([0.95047, 1.0, 1.08883])
    x, y, z = np.where(xyz > 216 / 24389, np.cbrt(xyz), (24389 / 27 * xyz + 16) / 116)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


@pytest.mark.parametrize("missing", _WITHOUT_CONES)
def test_the_papers_methods_can_be_told_apart_without_red_or_green_cones(missing: str) -> None:
    seen = {name: lab(_WITHOUT_CONES[missing] @ linear(LOOKS[name].colour)) for name in PAPER}
    for one, two in combinations(PAPER, 2):
        # 2.3 is just noticeable side by side. Thin lines need much more, most of all if only
        # their colour differs.
        enough = 28 if LOOKS[one].dashes == LOOKS[two].dashes else 18
        assert np.linalg.norm(seen[one] - seen[two]) > enough, (one, two)


def test_colours_stand_out_from_light_and_from_dark_pages() -> None:
    for name in set(PAPER) - {"oracle"}:  # (on a dark page, black becomes the page's ink)
        luminance = float(_TO_XYZ[1] @ linear(LOOKS[name].colour))
        dark = float(_TO_XYZ[1] @ linear("#15171a"))
        assert 1.05 / (luminance + 0.05) > 2.1
        assert (luminance + 0.05) / (dark + 0.05) > 2.1
