"""Small problems as pictures: SVG or any other format of Matplotlib's, and TikZ for LaTeX."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from belated.tabular.drmdp import TabularDRMDP


class Arrow(NamedTuple):
    """A move from state to state, with the actions that may lead there."""

    source: int
    target: int
    label: str


def layout(problem: TabularDRMDP) -> dict[int, tuple[float, float]]:
    """A place for each state that can be reached: a column for each number of steps to it."""
    columns: list[list[int]] = []
    seen: set[int] = set()
    fresh = sorted(np.flatnonzero(problem.start).tolist())
    while fresh:
        columns.append(fresh)
        seen |= {*fresh}
        reached = {arrow.target for arrow in arrows(problem) if arrow.source in fresh}
        fresh = sorted(reached - seen)
    return {
        state: (2.4 * x, 1.3 * ((len(column) - 1) / 2 - y))
        for x, column in enumerate(columns)
        for y, state in enumerate(column)
    }


def arrows(problem: TabularDRMDP) -> Iterator[Arrow]:
    """All moves; one arrow for all actions that lead the same way."""
    for source in range(len(problem.start)):
        if source in problem.terminal:
            continue
        labels: dict[int, list[str]] = defaultdict(list)
        rows = [problem.following(source, a) for a in range(problem.number_of_actions(source))]
        all_alike = all((row == rows[0]).all() for row in rows) and rows[0].max() < 1
        for action, row in enumerate(rows[:1] if all_alike else rows):
            for target in np.flatnonzero(row).tolist():
                name = "" if len(rows) == 1 or all_alike else problem.action_name(source, action)
                if row[target] < 1:
                    name = f"{name}: {row[target]:.3g}" if name else f"{row[target]:.3g}"
                labels[target].append(name)
        for target, names in labels.items():
            yield Arrow(source, target, ", ".join(dict.fromkeys(filter(None, names))))


def draw_problem(problem: TabularDRMDP, path: Path) -> None:
    """Draw states and moves; states in which an episode starts have an arrow from nowhere.

    Args:
        problem: what to draw.
        path: where to; its ending says the format, such as ``.svg`` or ``.png``.
    """
    from matplotlib.figure import Figure
    from matplotlib.patches import FancyArrowPatch

    places = layout(problem)
    xs, ys = zip(*places.values(), strict=True)
    width, height = max(xs) - min(xs) + 2.2, max(ys) - min(ys) + 2.2
    figure = Figure(figsize=(width, height))
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(min(xs) - 1.1, max(xs) + 1.1), ylim=(min(ys) - 1.1, max(ys) + 1.1))
    axes.set_axis_off()
    pairs = {(arrow.source, arrow.target) for arrow in arrows(problem)}

    def arrow_between(
        start: tuple[float, float], end: tuple[float, float], bend: float, room: float = 19
    ) -> None:
        axes.add_patch(
            FancyArrowPatch(
                start, end, connectionstyle=f"arc3,rad={bend}", arrowstyle="-|>",
                mutation_scale=11, shrinkA=19, shrinkB=room, color="#444444", linewidth=1,
            )
        )  # fmt: skip

    def say(x: float, y: float, text: str) -> None:
        box = {"facecolor": "white", "edgecolor": "none", "pad": 1.0}
        axes.text(x, y, text, ha="center", va="center", fontsize=9, color="#1d5c97", bbox=box)

    for source, target, label in arrows(problem):
        (x, y), (u, v) = places[source], places[target]
        if source == target:
            loop = FancyArrowPatch(
                (x - 0.13, y + 0.27), (x + 0.13, y + 0.27), connectionstyle="arc3,rad=-2.2",
                arrowstyle="-|>", mutation_scale=11, shrinkA=0, shrinkB=0, color="#444444",
            )  # fmt: skip
            axes.add_patch(loop)
            say(x, y + 0.72, label)
            continue
        bend = 0.25 if (target, source) in pairs else 0.0
        arrow_between((x, y), (u, v), bend, room=32 if target in problem.terminal else 19)
        if label:
            say((x + u) / 2 + bend * (v - y) / 2, (y + v) / 2 - bend * (u - x) / 2, label)
    for state in np.flatnonzero(problem.start).tolist():
        x, y = places[state]
        arrow_between((x - 1.0, y), (x, y), 0.0)
    for state, (x, y) in places.items():
        style = {"boxstyle": "circle,pad=0.35", "facecolor": "white", "edgecolor": "#444444"}
        if state in problem.terminal:
            style |= {"boxstyle": "round,pad=0.35", "facecolor": "#eeeeee"}
        name = problem.state_name(state)
        axes.text(x, y, name, ha="center", va="center", fontsize=10, bbox=style, zorder=3)
    figure.savefig(path)


def as_tikz(problem: TabularDRMDP) -> str:
    r"""The same as a ``tikzpicture``; it needs ``\usetikzlibrary{automata,positioning}``."""
    lines = [r"\begin{tikzpicture}[->, auto, node font=\small]"]
    for state, (x, y) in layout(problem).items():
        options = ["state"]
        if problem.start[state] > 0:
            options.append("initial, initial text={}")
        if state in problem.terminal:
            options.append("accepting")
        name = _tex(problem.state_name(state))
        lines.append(rf"  \node[{', '.join(options)}] (s{state}) at ({x:g}, {y:g}) {{{name}}};")
    pairs = {(arrow.source, arrow.target) for arrow in arrows(problem)}
    for source, target, label in arrows(problem):
        how = "loop above" if source == target else "bend left" if (target, source) in pairs else ""
        said = f" node {{{_tex(label)}}}" if label else ""
        lines.append(rf"  \path (s{source}) edge[{how}]{said} (s{target});")
    return "\n".join([*lines, r"\end{tikzpicture}", ""])


def _tex(text: str) -> str:
    """Names as LaTeX: subscripts and minus signs in mathematics."""
    for sign, tex in {"₀": "_0", "₁": "_1", "₋": "_-", "−": "-", "%": r"\%"}.items():
        text = text.replace(sign, tex)
    words = [f"${word}$" if "_" in word or word[:1] in "+-" else word for word in text.split(" ")]
    return " ".join(words)
