"""What all pictures share: style, panels with a legend below them, ticks and files.

matplotlib is imported where it is used: commands that draw nothing should not wait for it.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from belated.analysis.looks import GRID, INK, Look

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

STYLE: dict[Any, Any] = {
    # Sizes in points, for pictures that are printed as wide as they are made.
    "font.size": 8,
    "axes.titlesize": 8,
    "axes.labelsize": 8,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "legend.fontsize": 7.5,
    "axes.linewidth": 0.7,
    "axes.edgecolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlelocation": "left",
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": GRID,
    "grid.linewidth": 0.5,
    "xtick.major.width": 0.7,
    "ytick.major.width": 0.7,
    "xtick.major.size": 2.5,
    "ytick.major.size": 2.5,
    "lines.solid_capstyle": "round",
    "legend.frameon": False,
    "text.parse_math": False,  # names come from files, and a $ in them is a $
    "svg.hashsalt": "belated",  # the same picture is the same file
}

COLUMN, PAGE = 3.4, 6.9
"""The widths of pictures, in inches."""


def in_style(more: Mapping[Any, Any] | None = None) -> AbstractContextManager[None]:
    """Whatever is drawn or written within it has the style of all pictures.

    Args:
        more: settings of matplotlib besides.
    """
    import matplotlib

    return matplotlib.rc_context(STYLE | dict(more or {}))


def blank_figure(
    width: float, height: float, layout: Literal["constrained", "compressed"] = "constrained"
) -> Figure:
    """An empty figure; sizes are in inches."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout=layout)


def save(figure: Figure, path: Path) -> Path:
    """Write a picture, in the format of the path's suffix."""
    path.parent.mkdir(parents=True, exist_ok=True)
    undated: dict[str, Any] = {"metadata": {"Date": None}} if path.suffix == ".svg" else {}
    with in_style():  # ticks are made when they are drawn
        figure.savefig(path, dpi=250, **undated)
    return path


def save_both(figure: Figure, stem: Path) -> tuple[Path, Path]:
    """Write a picture as STEM.png and as STEM.svg."""
    # (with_suffix would take a part of names such as n1.5)
    png, svg = (stem.with_name(stem.name + suffix) for suffix in (".png", ".svg"))
    return save(figure, png), save(figure, svg)


def words(column: str) -> str:
    """What a column of ``progress.csv`` is called on axes.

    >>> words("return_mean"), words("td_loss")
    ('return', 'td loss')
    """
    return column.removesuffix("_mean").replace("_", " ")


def line_sample(look: Look) -> Line2D:
    """A method's line, for a legend."""
    from matplotlib.lines import Line2D

    return Line2D([], [], color=look.colour, linestyle=look.linestyle, linewidth=1.7)


def area_sample(look: Look) -> Patch:
    """A method's colour and hatch, for a legend."""
    from matplotlib.patches import Patch

    return Patch(facecolor=look.colour, hatch=look.hatch, edgecolor="white", linewidth=0)


def panels_with_legend(
    count: int,
    styles: Mapping[str, Look],
    caption: str = "",
    *,
    sample: Callable[[Look], Line2D | Patch] = line_sample,
    wide: bool = False,
) -> tuple[Figure, list[Axes]]:
    """A figure with some panels, and a legend below them if there are looks to explain."""
    columns = 2 if count == 4 else min(count, 3)
    rows = math.ceil(count / columns)
    width = PAGE if wide or columns > 1 else COLUMN
    longest = max((len(short(name)) for name in styles), default=1)
    entries = max(1, min(len(styles), int(width / (0.068 * longest + 0.42))))
    height = rows * (2.3 if columns == 1 else 2.2 if columns == 2 else 1.9)
    lines = textwrap.wrap(caption, int(width / 0.055)) if styles else []
    below = 0.16 * math.ceil(len(styles) / entries) + 0.13 * len(lines)
    with in_style():
        figure = blank_figure(width, height + below)
        grid = figure.subplots(rows, columns, squeeze=False).ravel()
        for empty in grid[count:]:
            empty.remove()
        if styles:
            legend = figure.legend(
                list(map(sample, styles.values())),
                list(map(short, styles)),
                loc="outside lower center", ncols=entries, borderaxespad=0.2, borderpad=0.2,
                handlelength=2.6, columnspacing=1.2, handletextpad=0.5, labelspacing=0.3,
                title="\n".join(lines), title_fontsize=6.5,
            )  # fmt: skip
            legend.get_title().set(color="#5a5a5a", multialignment="center")
    return figure, list(grid[:count])


def label_outer(panels: Sequence[Axes], across: str, up: str) -> None:
    """Label the lowest panel of each column and the first of each row, and write numbers well."""
    for place, axes in enumerate(panels):
        spec = axes.get_subplotspec()
        columns = 1 if spec is None else spec.get_gridspec().ncols
        if place + columns >= len(panels):
            axes.set_xlabel(across)
        if place % columns == 0:
            axes.set_ylabel(up)
        format_numbers(axes.yaxis)
        if across:  # otherwise there are names
            axes.xaxis.set_major_formatter(_at_tick)


def format_numbers(axis: Axis) -> None:
    """Put a few ticks on an axis, at round numbers."""
    from matplotlib.ticker import MaxNLocator

    axis.set_major_locator(MaxNLocator(5))
    axis.set_major_formatter(_at_tick)


def as_label(value: float) -> str:
    """A tick's label.

    >>> as_label(12_500.0), as_label(-0.25)
    ('12,500', '−0.25')
    """
    text = f"{value:,.0f}" if abs(value) >= 1_000 else f"{value:.6g}"
    return text.replace("-", "−")


def _at_tick(value: float, place: float) -> str:
    return as_label(value)


def short(name: str) -> str:
    """A name as far as it fits: names come from files, and may be anything."""
    name = "".join(letter if letter.isprintable() else " " for letter in name).strip()
    return name if len(name) <= 40 else f"{name[:39]}…"
