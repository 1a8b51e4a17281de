"""Pictures of runs, in one look: a method has the same colour and line in all of them.

Functions that take a path write the picture there and return the path. The others return a figure
for `save` or `save_both`.
"""

from __future__ import annotations

import math
import textwrap
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias, TypedDict, Unpack

import matplotlib
import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle
from matplotlib.ticker import FuncFormatter, MaxNLocator

from belated.analysis import statistics
from belated.analysis.runs import Curve, Floats, Run, by_task
from belated.analysis.statistics import Estimate, Strata
from belated.envs.point_reach import COLUMN_WIDTH, SIZE, TARGET_HIGH, TARGET_LOW, scale_position
from belated.training.agent import Agent
from belated.training.evaluation import Episode

Dashes: TypeAlias = tuple[float, ...]

INK, GRID = "#000000", "#d8d8d8"

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


# Looks


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


_LONG, _DOTS, _DASH_DOT = (5.0, 1.5), (1.0, 1.2), (4.0, 1.2, 1.0, 1.2)
_DASHES, _DASH_DOT_DOT = (2.5, 1.2), (3.0, 1.2, 1.0, 1.2, 1.0, 1.2)
_DASH_DASH_DOT = (3.0, 1.2, 3.0, 1.2, 1.0, 1.2)
_HATCHES: dict[Dashes, str] = {
    (): "",
    _DASHES: "////",
    _DOTS: "....",
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
_BACKBONES: dict[str, Dashes] = {"": (), "crossq": _LONG, "td3": _DOTS}


def _known_looks() -> dict[str, Look]:
    looks = {"oracle": Look(INK, _DASHES), "ppo-oracle": Look("#8a8a8a", _DASH_DOT)}
    for backbone, dashes in _BACKBONES.items():
        for rule, colour in list(_COLOURS.items())[:8]:
            looks["-".join(filter(None, (backbone, rule))) or "sac"] = Look(colour, dashes)
        if backbone:
            looks[f"{backbone}-oracle"] = Look("#8a8a8a", dashes)
    return looks | {
        "ircr-original": Look(_COLOURS["ircr"], _DASH_DOT_DOT),
        "ppo": Look(_COLOURS[""], _DASH_DOT),
        "rudder": Look(_COLOURS["rudder"], _DASH_DOT),
        "lirpg": Look(_COLOURS["lirpg"], _DASH_DOT),
        "sb3-sac": Look(_COLOURS[""], _DASH_DOT_DOT),
        "sbx-sac": Look(_COLOURS[""], _DASH_DASH_DOT),
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
    start = zlib.crc32(name.encode(errors="replace"))  # (hash() differs between processes)
    parent = _parent(name)
    if parent is None:
        pool = [Look(each, dashes) for dashes in _OTHER_LINES for each in _COLOURS.values()]
    else:
        pool = [Look(LOOKS[parent].colour, dashes) for dashes in _OTHER_LINES]
        pool = [look for look in pool if look not in LOOKS.values()] or pool
    start %= len(pool)
    return pool[start:] + pool[:start]


# Learning curves


class CurveOptions(TypedDict, total=False):
    """What `learning_curves` and `draw_curves` can be told.

    Attributes:
        column: which column of ``progress.csv`` to draw.
        label: what it is, in words.
        statistic: what the bold lines are, over seeds.
        x: the horizontal axis: steps, or the time spent learning.
        smooth: how many evaluations of a run are averaged, an odd number; the label says so.
        level: how often intervals like the bands should hold the truth.
        hline: values to draw across all panels, by what they are.
        styles: the looks of all methods (default: those of `looks`).
        legend: whether to draw the legend.
    """

    column: str
    label: str
    statistic: Literal["iqm", "mean"]
    x: Literal["step", "wall_time"]
    smooth: int
    level: float
    hline: Mapping[str, float]
    styles: Mapping[str, Look]
    legend: bool


def learning_curves(runs: Sequence[Run], path: Path, **options: Unpack[CurveOptions]) -> Path:
    """Draw learning curves, a panel for each task, and write the picture.

    Args:
        runs: the runs.
        path: the picture to write.
        **options: see `CurveOptions` and `draw_curves`.
    """
    return save(draw_curves(runs, **options), path)


def draw_curves(
    runs: Sequence[Run],
    *,
    column: str = "return_mean",
    label: str = "",
    statistic: Literal["iqm", "mean"] = "iqm",
    x: Literal["step", "wall_time"] = "step",
    smooth: int = 1,
    level: float = 0.95,
    hline: Mapping[str, float] | None = None,
    styles: Mapping[str, Look] | None = None,
    legend: bool = True,
) -> Figure:
    """Learning curves, a panel for each task: `CurveOptions` explains the arguments.

    Each method has a bold line over its seeds where all of them have data, its interval as a band,
    and a thin line for each seed: some results are two clusters, which no interval shows.
    """
    runs = [run for run in runs if np.isfinite(run.curve(column).values).any()]
    if not runs:
        raise ValueError(f"No run has a {column} to draw.")
    styles = styles or looks(run.method for run in runs)
    tasks = {
        task: {name: [_curve(run, column, x, smooth) for run in own] for name, own in each.items()}
        for task, each in by_task(runs).items()
    }
    unit, across = _unit(tasks, x)
    up = (label or words(column)) + (f"\n(mean of {smooth} evaluations)" * (smooth > 1))
    caption = describe_curves(runs, statistic, level)
    figure, panels = _panels(len(tasks), styles if legend else {}, caption)
    with matplotlib.rc_context(STYLE):
        for axes, (task, methods) in zip(panels, tasks.items(), strict=True):
            for name in [name for name in styles if name in methods]:
                curves = [Curve(curve.steps / unit, curve.values) for curve in methods[name]]
                _draw_method(axes, curves, styles[name], statistic, level)
            _frame_lines(axes)
            _draw_levels(axes, hline or {})
            axes.set_title(_short(task))
        _label_outer(panels, across, up)
    return figure


def describe_curves(
    runs: Sequence[Run], statistic: Literal["iqm", "mean"] = "iqm", level: float = 0.95
) -> str:
    """What bold lines, bands and thin lines are, in a sentence."""
    seeds = {len(own) for methods in by_task(runs).values() for own in methods.values()}
    if max(seeds) == 1:
        return "One seed each."
    count = str(max(seeds)) if len(seeds) == 1 else f"{min(seeds)} to {max(seeds)}"
    bold = {"iqm": "interquartile mean", "mean": "mean"}[statistic]
    band = f" Bands: its {level:.0%} interval." * (max(seeds) >= _FEWEST_FOR_A_BAND)
    if band and min(seeds) < _FEWEST_FOR_A_BAND:
        band = band[:-1] + f", from {_FEWEST_FOR_A_BAND} seeds on."
    return f"Bold: {bold} of {count} seeds.{band} Thin: single seeds."


_FEWEST_FOR_A_BAND = 3
"""The interval of two seeds is so wide, 13 standard errors, that it would hide everything."""
_RESAMPLES = 500
"""For bands: enough to see them, and quick."""


def _unit(
    tasks: Mapping[str, Mapping[str, Sequence[Curve]]], x: Literal["step", "wall_time"]
) -> tuple[float, str]:
    """What to divide the horizontal axis by, and what to call it then."""
    each = (curve for methods in tasks.values() for own in methods.values() for curve in own)
    largest = max(curve.steps[-1] for curve in each)
    if x == "step":
        return (1_000, "steps (thousands)") if largest >= 2_000 else (1, "steps")
    if largest < 120:
        return 1, "seconds of learning"
    return (60, "minutes of learning") if largest < 7_200 else (3_600, "hours of learning")


def _curve(run: Run, column: str, x: Literal["step", "wall_time"], smooth: int) -> Curve:
    curve = run.curve(column)
    finite = np.isfinite(curve.values)
    steps, values = curve.steps[finite], curve.values[finite]
    values = statistics.smoothed(values, smooth)
    if x == "step":
        return Curve(steps, values)
    times = run.curve("wall_time")
    if not len(times.steps):
        raise ValueError(f"{run.name} has no wall_time in its progress.csv; draw x=step.")
    return Curve(times.at(steps), values)


def aligned(curves: Sequence[Curve]) -> tuple[Floats, Floats]:
    """Put curves on common steps, by straight lines, where all of them have data.

    Returns:
        The steps and the values, of shapes (steps,) and (curves, steps).
    """
    low = max(curve.steps[0] for curve in curves)
    high = min(curve.steps[-1] for curve in curves)
    steps = np.unique(np.concatenate([curve.steps for curve in curves]))
    steps = steps[(low <= steps) & (steps <= high)]
    return steps, np.array([curve.at(steps) for curve in curves])


def _draw_method(
    axes: Axes,
    curves: Sequence[Curve],
    look: Look,
    statistic: Literal["iqm", "mean"],
    level: float,
) -> None:
    if len(curves) > 1:
        for curve in curves:
            axes.plot(
                curve.steps, curve.values, color=look.colour, linewidth=0.6, alpha=0.4, zorder=2
            )
    steps, values = aligned(curves)
    of = {"iqm": statistics.iqm, "mean": statistics.mean}[statistic]
    middle = np.array([of([scores]) for scores in values.T])
    if len(curves) >= _FEWEST_FOR_A_BAND:
        _, low, high = np.array(
            [
                statistics.estimate([scores], of, level=level, resamples=_RESAMPLES)
                for scores in values.T
            ]
        ).reshape(-1, 3).T  # fmt: skip
        axes.fill_between(steps, low, high, color=look.colour, alpha=0.15, linewidth=0, zorder=1)
    axes.plot(
        steps, middle, color=look.colour, linestyle=look.linestyle, linewidth=1.7, zorder=3,
        marker="o" if len(steps) == 1 else "", markersize=3.2,
    )  # fmt: skip


def _frame_lines(axes: Axes) -> None:
    """Limit the axes to the lines: a wide band may leave the picture, it would squeeze the rest."""
    values = np.concatenate([np.asarray(line.get_ydata(), float) for line in axes.lines])
    low, high = float(values.min()), float(values.max())
    margin = 0.05 * (high - low) or 0.05 * abs(high) or 1.0
    axes.set_ylim(low - margin, high + margin)
    axes.margins(x=0.01)


def _draw_levels(axes: Axes, levels: Mapping[str, float]) -> None:
    low, high = axes.get_ylim()
    for name, value in levels.items():
        axes.axhline(value, color="#8a8a8a", linewidth=0.9, linestyle=(0, _DOTS), zorder=1.5)
        axes.annotate(
            _short(name), (0.99, value), xycoords=("axes fraction", "data"), xytext=(0, 1.5),
            textcoords="offset points", ha="right", va="bottom", fontsize=6.5, color="#6a6a6a",
        )  # fmt: skip
    axes.set_ylim(min([low, *levels.values()]), max([high, *levels.values()]))


# Other pictures of scores


def bars(
    values: Mapping[str, Mapping[str, Estimate]], *, label: str = "return", legend: bool = True
) -> Figure:
    """Draw a bar with an interval for each task and method.

    Args:
        values: by task, then by method.
        label: what they are, in words.
        legend: whether to draw the legend.
    """
    styles = looks(method for methods in values.values() for method in methods)
    figure, (axes,) = _panels(
        1, styles if legend else {}, sample=_area, wide=len(values) * len(styles) > 8
    )
    width = 0.8 / len(styles)
    with matplotlib.rc_context(STYLE):
        for place, (method, look) in enumerate(styles.items()):
            own = {at: each[method] for at, each in enumerate(values.values()) if method in each}
            at = np.array(list(own)) + (place - (len(styles) - 1) / 2) * width
            middle, low, high = np.array(list(own.values())).T
            axes.bar(
                at, middle, 0.9 * width, color=look.colour, hatch=look.hatch, edgecolor="white",
                linewidth=0,
            )  # fmt: skip
            axes.errorbar(
                at, middle, _arms(middle, low, high), fmt="none", ecolor=INK, elinewidth=0.9
            )
        axes.set_xticks(range(len(values)), list(map(_short, values)))
        axes.grid(visible=False, axis="x")
        axes.axhline(0, color=INK, linewidth=0.7)
        axes.spines["bottom"].set_visible(False)
        _label_outer([axes], "", label)
        axes.tick_params(axis="x", length=0)
    return figure


def points_against(
    values: Mapping[str, Mapping[float, Estimate]],
    *,
    x: str,
    label: str = "return",
    title: str = "",
    log: bool = False,
    legend: bool = True,
) -> Figure:
    """Draw how scores depend on a number, such as an interval's length: a line for each method.

    Args:
        values: by method, then by the number.
        x: what the number is, in words.
        label: what the scores are.
        title: the picture's title.
        log: whether the number's axis is logarithmic.
        legend: whether to draw the legend.
    """
    styles = looks(values)
    figure, (axes,) = _panels(1, styles if legend else {})
    numbers = sorted({number for own in values.values() for number in own})
    # Set side by side, so that intervals at the same number do not cover one another.
    place_of, number_at = (np.log, np.exp) if log else (np.asarray, np.asarray)
    ends = place_of(np.array([numbers[0], numbers[-1]]))
    apart = 0.008 * (ends[1] - ends[0])
    with matplotlib.rc_context(STYLE):
        for place, (method, look) in enumerate(styles.items()):
            at = np.array(sorted(values[method]))
            middle, low, high = np.array([values[method][number] for number in at]).T
            axes.errorbar(
                number_at(place_of(at) + (place - (len(styles) - 1) / 2) * apart),
                middle, _arms(middle, low, high),
                color=look.colour, linestyle=look.linestyle, linewidth=1.5, elinewidth=0.9,
                marker="o", markersize=3.2,
            )  # fmt: skip
        if log:
            axes.set_xscale("log")
        axes.set_title(_short(title))
        _label_outer([axes], x, label)
        axes.set_xticks(numbers, [_number(number) for number in numbers])
        axes.set_xticks([], minor=True)
    return figure


def _arms(middle: Floats, low: Floats, high: Floats) -> Floats:
    """How far intervals reach, of shape (2, values); none where there is no interval."""
    return np.asarray(np.nan_to_num([middle - low, high - middle]))


def profiles(
    scores: Mapping[str, Strata],
    *,
    label: str = "share of the oracle's return",
    legend: bool = True,
) -> Figure:
    """Draw performance profiles: the share of runs above each score, pooled over tasks.

    Args:
        scores: by method, one sequence of scores per task; with several tasks, on one scale.
        label: what the scores are, in words.
        legend: whether to draw the legend.
    """
    styles = looks(scores)
    figure, (axes,) = _panels(1, styles if legend else {}, "Bands: pointwise 95% intervals.")
    every = np.concatenate([np.ravel(task) for strata in scores.values() for task in strata])
    margin = 0.05 * float(np.ptp(every)) or 1.0
    thresholds = np.linspace(every.min() - margin, every.max() + margin, 400)
    with matplotlib.rc_context(STYLE):
        for method, look in styles.items():
            share, low, high = statistics.performance_profile(scores[method], thresholds)
            axes.fill_between(thresholds, low, high, color=look.colour, alpha=0.12, linewidth=0)
            axes.plot(thresholds, share, color=look.colour, linestyle=look.linestyle, linewidth=1.7)
        axes.set_ylim(-0.02, 1.02)
        axes.margins(x=0)
        _label_outer([axes], label, "share of runs above")
    return figure


# Credit and Point Reach


def credit_chart(episode: Episode, credit: npt.NDArray[np.float64], path: Path) -> Path:
    """Draw the credit of each step of an episode and the rewards revealed."""
    return save(
        draw_credit(
            credit,
            dense=np.array([step.dense_reward for step in episode.steps]),
            rewards=np.array([step.reward for step in episode.steps]),
            ends=[time for time, step in enumerate(episode.steps) if step.interval_end],
        ),
        path,
    )


def draw_credit(credit: Floats, *, dense: Floats, rewards: Floats, ends: Sequence[int]) -> Figure:
    """The credit of each step, the revealed rewards, and the hidden ones where they are known.

    Args:
        credit: of each step.
        dense: the hidden reward of each step; NaN where there is none.
        rewards: what was revealed at each step.
        ends: the last steps of intervals.
    """
    chart = [
        ("revealed reward", rewards, "#6c5460"),
        ("credit of each step", credit, _COLOURS["hc-pairwise-1"]),
    ]
    if not np.isnan(dense).any():
        chart.append(("hidden reward of each step", dense, _COLOURS["rudder"]))
    edges = np.arange(len(credit) + 1) - 0.5
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(PAGE, 1.15 * len(chart) + 0.3), layout="constrained")
        panels = np.atleast_1d(figure.subplots(len(chart), 1, sharex=True))
        for axes, (title, values, colour) in zip(panels, chart, strict=True):
            # (One outline for all steps: a bar for each makes pictures of a thousand steps large.)
            axes.stairs(np.nan_to_num(values), edges, fill=True, color=colour, linewidth=0.4)
            axes.axhline(0, color=INK, linewidth=0.6)
            axes.grid(visible=False, axis="x")
            axes.set_title(title)
            axes.margins(x=0)
            if len(ends) <= 60:
                whole = axes.get_xaxis_transform()
                lines = np.array(ends) + 0.5
                axes.vlines(lines, 0, 1, color=GRID, linewidth=0.6, zorder=0, transform=whole)
        _label_outer([panels[-1]], "step", "")
        for axes in panels:
            _format(axes.yaxis)
    return figure


def point_reach_heatmap(agent: Agent, path: Path, *, title: str = "") -> Path:
    """Draw what one step earns in Point Reach, and the way that is taken: see `draw_heatmaps`."""
    return save(draw_heatmaps({title: agent}), path)


def draw_heatmaps(agents: Mapping[str, Agent]) -> Figure:
    """What one step earns, b(s, a), over Point Reach's grid, with the path taken.

    s is the centre of each 10×10 cell, a is sampled from π(·|s, 0), and the phase is 0.

    Args:
        agents: by title; each has its own colours, because each scales its rewards on its own.
    """
    width = COLUMN if len(agents) == 1 else min(PAGE, 3.0 * len(agents))
    with matplotlib.rc_context(STYLE | {"axes.grid": False}):
        figure = Figure(figsize=(width, 0.9 * width / len(agents)), layout="compressed")
        panels = np.atleast_1d(figure.subplots(1, len(agents)))
        for axes, (title, agent) in zip(panels, agents.items(), strict=True):
            image = axes.imshow(
                _step_values(agent), origin="lower", extent=(0, SIZE, 0, SIZE), cmap="viridis"
            )
            walked = np.array([step.observation[:2] for step in agent.play().steps])
            axes.plot(*((walked + 1) * SIZE / 2).T, color="white", linewidth=1.5)
            left, bottom = TARGET_LOW
            size = TARGET_HIGH - TARGET_LOW
            axes.add_patch(
                Rectangle((left, bottom), *size, fill=False, edgecolor="#e8684a", linewidth=2)
            )
            axes.set_title(textwrap.fill(title, 34))
            figure.colorbar(image, ax=axes, label="b(s, a)" if axes is panels[-1] else "")
    return figure


def _step_values(agent: Agent) -> Floats:
    centres = np.arange(COLUMN_WIDTH / 2, SIZE, COLUMN_WIDTH)
    x, y = np.meshgrid(centres, centres)
    positions = scale_position(np.stack([x.ravel(), y.ravel()], axis=1))
    observations = np.column_stack([positions, np.zeros(len(positions), np.float32)])
    noise = np.random.default_rng(0).standard_normal((len(positions), 2), np.float32)
    actions = agent.learner.act(observations, noise)
    steps = np.concatenate([observations, actions], axis=1)[None]
    mask = np.ones((1, len(actions)), np.float32)
    values = np.mean([c.history.value(steps, mask) for c in agent.learner.state.critics], axis=0)
    return np.asarray(values, np.float64).reshape(x.shape)


# Files and frames


def save(figure: Figure, path: Path) -> Path:
    """Write a picture, in the format of the path's suffix."""
    path.parent.mkdir(parents=True, exist_ok=True)
    undated: dict[str, Any] = {"metadata": {"Date": None}} if path.suffix == ".svg" else {}
    with matplotlib.rc_context(STYLE):  # ticks are made when they are drawn
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


def _line(look: Look) -> Line2D:
    return Line2D([], [], color=look.colour, linestyle=look.linestyle, linewidth=1.7)


def _area(look: Look) -> Patch:
    return Patch(facecolor=look.colour, hatch=look.hatch, edgecolor="white", linewidth=0)


def _panels(
    count: int,
    styles: Mapping[str, Look],
    caption: str = "",
    *,
    sample: Callable[[Look], Line2D | Patch] = _line,
    wide: bool = False,
) -> tuple[Figure, list[Axes]]:
    """A figure with some panels, and a legend below them if there are looks to explain."""
    columns = 2 if count == 4 else min(count, 3)
    rows = math.ceil(count / columns)
    width = PAGE if wide or columns > 1 else COLUMN
    longest = max((len(_short(name)) for name in styles), default=1)
    entries = max(1, min(len(styles), int(width / (0.068 * longest + 0.42))))
    height = rows * (2.3 if columns == 1 else 2.2 if columns == 2 else 1.9)
    lines = textwrap.wrap(caption, int(width / 0.055)) if styles else []
    below = 0.16 * math.ceil(len(styles) / entries) + 0.13 * len(lines)
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(width, height + below), layout="constrained")
        grid = figure.subplots(rows, columns, squeeze=False).ravel()
        for empty in grid[count:]:
            empty.remove()
        if styles:
            legend = figure.legend(
                list(map(sample, styles.values())),
                list(map(_short, styles)),
                loc="outside lower center", ncols=entries, borderaxespad=0.2, borderpad=0.2,
                handlelength=2.6, columnspacing=1.2, handletextpad=0.5, labelspacing=0.3,
                title="\n".join(lines), title_fontsize=6.5,
            )  # fmt: skip
            legend.get_title().set(color="#5a5a5a", multialignment="center")
    return figure, list(grid[:count])


def _label_outer(panels: Sequence[Axes], across: str, up: str) -> None:
    """Label the lowest panel of each column and the first of each row, and write numbers well."""
    for place, axes in enumerate(panels):
        spec = axes.get_subplotspec()
        columns = 1 if spec is None else spec.get_gridspec().ncols
        if place + columns >= len(panels):
            axes.set_xlabel(across)
        if place % columns == 0:
            axes.set_ylabel(up)
        _format(axes.yaxis)
        if across:  # otherwise there are names
            axes.xaxis.set_major_formatter(_NUMBERS)


def _format(axis: Axis) -> None:
    axis.set_major_locator(MaxNLocator(5))
    axis.set_major_formatter(_NUMBERS)


def _number(value: float) -> str:
    """A tick's label.

    >>> _number(12_500.0), _number(-0.25)
    ('12,500', '−0.25')
    """
    text = f"{value:,.0f}" if abs(value) >= 1_000 else f"{value:.6g}"
    return text.replace("-", "−")


_NUMBERS = FuncFormatter(lambda value, _: _number(value))


def _short(name: str) -> str:
    """A name as far as it fits: names come from files, and may be anything."""
    name = "".join(letter if letter.isprintable() else " " for letter in name).strip()
    return name if len(name) <= 40 else f"{name[:39]}…"
