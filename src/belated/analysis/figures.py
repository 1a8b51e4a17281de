"""Pictures of scores over runs: learning curves, bars, points, profiles.

Functions that take a path write the picture there and return the path. The others return a figure
for `frame.save` or `frame.save_both`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypedDict, Unpack

import numpy as np

from belated.analysis import statistics
from belated.analysis.frame import (
    area_sample,
    as_label,
    in_style,
    label_outer,
    panels_with_legend,
    save,
    short,
    words,
)
from belated.analysis.intervals import Estimate
from belated.analysis.looks import DOTS, INK, Look, looks
from belated.analysis.runs import Curve, Floats, Run, by_task
from belated.analysis.statistics import Strata

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


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
    figure, panels = panels_with_legend(len(tasks), styles if legend else {}, caption)
    with in_style():
        for axes, (task, methods) in zip(panels, tasks.items(), strict=True):
            for name in [name for name in styles if name in methods]:
                curves = [Curve(curve.steps / unit, curve.values) for curve in methods[name]]
                # The more bands there are, the fainter: they lie on one another.
                alpha = 0.6 / max(4, len(methods))
                _draw_method(axes, curves, styles[name], statistic, level, alpha)
            _frame_lines(axes)
            _draw_levels(axes, hline or {})
            axes.set_title(short(task))
        label_outer(panels, across, up)
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


_FEWEST_FOR_A_BAND = 4
"""Those of fewer, 4 standard errors and more on each side, hide everything else."""
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
    alpha: float,
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
        axes.fill_between(steps, low, high, color=look.colour, alpha=alpha, linewidth=0, zorder=1)
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
        axes.axhline(value, color="#8a8a8a", linewidth=0.9, linestyle=(0, DOTS), zorder=1.5)
        axes.annotate(
            short(name), (0.99, value), xycoords=("axes fraction", "data"), xytext=(0, 1.5),
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
    figure, (axes,) = panels_with_legend(
        1, styles if legend else {}, sample=area_sample, wide=len(values) * len(styles) > 8
    )
    width = 0.8 / len(styles)
    with in_style():
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
        axes.set_xticks(range(len(values)), list(map(short, values)))
        axes.grid(visible=False, axis="x")
        axes.axhline(0, color=INK, linewidth=0.7)
        axes.spines["bottom"].set_visible(False)
        label_outer([axes], "", label)
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
    figure, (axes,) = panels_with_legend(1, styles if legend else {})
    numbers = sorted({number for own in values.values() for number in own})
    # Set side by side, so that intervals at the same number do not cover one another.
    place_of, number_at = (np.log, np.exp) if log else (np.asarray, np.asarray)
    ends = place_of(np.array([numbers[0], numbers[-1]]))
    apart = 0.008 * (ends[1] - ends[0])
    with in_style():
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
        axes.set_title(short(title))
        label_outer([axes], x, label)
        axes.set_xticks(numbers, [as_label(number) for number in numbers])
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
    figure, (axes,) = panels_with_legend(
        1, styles if legend else {}, "Bands: pointwise 95% intervals."
    )
    every = np.concatenate([np.ravel(task) for strata in scores.values() for task in strata])
    margin = 0.05 * float(np.ptp(every)) or 1.0
    thresholds = np.linspace(every.min() - margin, every.max() + margin, 400)
    with in_style():
        for method, look in styles.items():
            share, low, high = statistics.performance_profile(scores[method], thresholds)
            axes.fill_between(thresholds, low, high, color=look.colour, alpha=0.12, linewidth=0)
            axes.plot(thresholds, share, color=look.colour, linestyle=look.linestyle, linewidth=1.7)
        axes.set_ylim(-0.02, 1.02)
        axes.margins(x=0)
        label_outer([axes], label, "share of runs above")
    return figure
