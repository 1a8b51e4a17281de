"""Drawings inside the report's page: whole figures, the curves of single runs, methods' lines."""

from __future__ import annotations

import io
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from belated.analysis.frame import in_style, words
from belated.analysis.looks import GRID, INK, Look
from belated.analysis.markup import Html, element
from belated.analysis.runs import Curve, Floats, Run
from belated.analysis.wording import as_number

if TYPE_CHECKING:
    from matplotlib.figure import Figure

POINTS = 200
"""The curves of single runs are small: more points could not be seen."""


def inline(figure: Figure, key: str, label: str) -> Html:
    """A figure as SVG inside a page: see-through, in the page's ink, with ids of its own.

    Args:
        figure: the figure.
        key: what the ids start with.
        label: what is read aloud instead of it.
    """
    file = io.StringIO()
    with in_style({"svg.fonttype": "none"}):
        figure.savefig(file, format="svg", transparent=True, metadata={"Date": None})
    text = file.getvalue()
    root = re.search(r"<svg [^>]*?viewBox=\"([^\"]*)\"[^>]*>", text)
    if root is None:
        raise RuntimeError("matplotlib wrote no <svg> with a viewBox.")
    drawn = text[root.end() : text.rindex("</svg>")]
    # Its style sheet would apply to the whole page; the page has the same rule for figures.
    drawn = re.sub(r"<(metadata|style)\b.*?</\1>|<!--.*?-->", "", drawn, flags=re.DOTALL)
    used = set(re.findall(r'(?:url\(|href=")#([^)"]+)', drawn))
    drawn = re.sub(r' id="([^"]*)"', lambda m: f' id="{key}-{m[1]}"' * (m[1] in used), drawn)
    drawn = re.sub(r'(url\(|href=")#', rf"\1#{key}-", drawn)
    drawn = re.sub(r' (?:d|points)="[^"]*"', _rounded, drawn)
    drawn = re.sub(r">\s+<", "><", drawn)
    drawn = drawn.replace(INK, "currentColor").replace(GRID, "var(--line)")
    return element("svg", Html(drawn), viewBox=root[1], role="img", aria_label=label)


def _rounded(path: re.Match[str]) -> str:
    """Coordinates with one digit after the point: a hundredth of a point cannot be seen."""
    text = re.sub(r"\d+\.\d+", lambda number: f"{float(number[0]):.1f}", path[0])
    return re.sub(r"\s+", " ", text)


def named(method: str, styles: Mapping[str, Look]) -> Html:
    """A method's name with a piece of its line."""
    look = styles[method]
    dashes = " ".join(f"{2.2 * length:g}" for length in look.dashes)
    line = element(
        "line", x1="0", y1="5", x2="30", y2="5", stroke=_colour(look), stroke_width="2.4",
        stroke_dasharray=dashes or "none",
    )  # fmt: skip
    swatch = element("svg", line, class_="swatch", viewBox="0 0 30 10", aria_hidden="true")
    return element("span", swatch, element("span", method), class_="method")


def _colour(look: Look) -> str:
    return "currentColor" if look.colour == INK else look.colour


class SmallCurves:
    """The curves of some runs as small drawings on one scale; each is written once and reused."""

    width, height = 200, 84

    def __init__(self, runs: Sequence[Run], column: str, key: str) -> None:
        self.runs, self.key = runs, key
        self.curves = [_thinned(run.curve(column)) for run in runs]
        values = np.concatenate([curve.values for curve in self.curves])
        self.low, self.high = float(values.min()), float(values.max())
        self.steps = max(float(curve.steps[-1]) for curve in self.curves)
        self.scale = (
            f"All to one scale: 0 to {self.steps:,.0f} steps, {words(column)} "
            f"{as_number(self.low)} to {as_number(self.high)}."
        )

    def definitions(self) -> Html:
        """All curves, to be put on the page once; nothing is seen of them there."""
        lines = []
        for place, curve in enumerate(self.curves):
            across = curve.steps / self.steps * (self.width - 4) + 2
            pairs = zip(across, self._up(curve.values), strict=True)
            points = " ".join(f"{x:.1f},{y:.1f}" for x, y in pairs)
            lines.append(element("polyline", id=f"{self.key}-{place}", points=points, fill="none"))
        return element("svg", element("defs", *lines), width="0", height="0", class_="defined")

    def _up(self, values: Floats) -> Floats:
        share = (values - self.low) / ((self.high - self.low) or 1)
        return np.asarray(self.height - 3 - share * (self.height - 6))

    def plot(self, place: int, look: Look) -> Html:
        """One run's curve, in front of those of the method's other seeds."""
        run = self.runs[place]
        others = [at for at, each in enumerate(self.runs) if each.method == run.method]
        drawn = [element("use", href=f"#{self.key}-{at}") for at in others if at != place]
        drawn.append(element("use", href=f"#{self.key}-{place}", class_="own"))
        if self.low < 0 < self.high:
            zero = f"{self._up(np.zeros(1))[0]:.1f}"
            drawn.insert(0, element("line", x1="0", x2=str(self.width), y1=zero, y2=zero))
        return element(
            "svg", *drawn, class_="plot", viewBox=f"0 0 {self.width} {self.height}", role="img",
            aria_label=f"Curve of {run.name}", style=f"--own: {_colour(look)}",
        )  # fmt: skip


def _thinned(curve: Curve) -> Curve:
    known = np.flatnonzero(np.isfinite(curve.values))
    chosen = known[np.linspace(0, len(known) - 1, min(len(known), POINTS)).round().astype(int)]
    return Curve(curve.steps[chosen], curve.values[chosen])
