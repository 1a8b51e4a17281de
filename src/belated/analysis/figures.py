"""Pictures of runs. Every function writes one file and returns its path."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from belated.envs.point_reach import COLUMN_WIDTH, SIZE, TARGET_HIGH, TARGET_LOW, scale_position
from belated.training.agent import Agent
from belated.training.evaluation import Episode

Rows = Sequence[Mapping[str, float]]

COLOURS = ("#1f6f8b", "#c8553d", "#5b8c5a", "#8d6a9f", "#b58900", "#4a4a4a")


def learning_curves(
    curves: Mapping[str, Sequence[Rows]], path: Path, *, column: str, label: str, title: str = ""
) -> Path:
    """Draw one line for each method: the mean of its runs, each run as a thin line.

    Args:
        curves: the rows of ``progress.csv`` of each run, by method.
        path: the picture to write.
        column: which column to draw.
        label: the label of the y axis.
        title: the picture's title.
    """
    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.subplots()
    for colour, (name, runs) in zip(itertools.cycle(COLOURS), curves.items(), strict=False):
        lines = [[row[column] for row in run] for run in runs]
        steps = [row["step"] for row in min(runs, key=len)]
        mean = np.mean([line[: len(steps)] for line in lines], axis=0)
        axes.plot(steps, mean, color=colour, linewidth=2, label=name)
        if len(runs) > 1:
            for run, line in zip(runs, lines, strict=True):
                axes.plot(
                    [row["step"] for row in run], line, color=colour, linewidth=0.7, alpha=0.6
                )
    axes.set_xlabel("environment steps")
    axes.set_ylabel(label)
    axes.set_title(title, loc="left", fontsize=10)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    return _save(figure, path)


def credit_chart(episode: Episode, credit: npt.NDArray[np.float64], path: Path) -> Path:
    """Draw the credit of each step of an episode and the rewards revealed."""
    dense = np.array([step.dense_reward for step in episode.steps])
    rewards = np.array([step.reward for step in episode.steps])
    ends = [time for time, step in enumerate(episode.steps) if step.interval_end]
    panels = [("revealed reward", rewards), ("credit of each step", credit)]
    if not np.isnan(dense).any():
        panels.append(("hidden reward of each step", dense))
    figure = Figure(figsize=(9, 1.8 * len(panels)), layout="constrained")
    all_axes = np.atleast_1d(figure.subplots(len(panels), 1, sharex=True))
    times = np.arange(len(credit))
    for axes, colour, (title, values) in zip(all_axes, COLOURS, panels, strict=False):
        axes.bar(times, values, width=1.0, color=colour)
        axes.set_title(title, loc="left", fontsize=10)
        axes.axhline(0, color="0.3", linewidth=0.6)
        if len(ends) <= 60:
            axes.vlines(
                np.array(ends) + 0.5, *axes.get_ylim(), color="0.85", linewidth=0.6, zorder=0
            )
    all_axes[-1].set_xlabel("step")
    return _save(figure, path)


def point_reach_heatmap(agent: Agent, path: Path, *, title: str = "") -> Path:
    """Draw what one step earns, b(s, a), over Point Reach's grid, with the path taken.

    s is the centre of each 10×10 cell, a is sampled from π(·|s, 0), and the phase is 0.
    """
    centres = np.arange(COLUMN_WIDTH / 2, SIZE, COLUMN_WIDTH)
    x, y = np.meshgrid(centres, centres)
    positions = scale_position(np.stack([x.ravel(), y.ravel()], axis=1))
    observations = np.column_stack([positions, np.zeros(len(positions), np.float32)])
    noise = np.random.default_rng(0).standard_normal((len(positions), 2), np.float32)
    actions = agent.learner.act(observations, noise)
    steps = np.concatenate([observations, actions], axis=1)[None]
    mask = np.ones((1, len(actions)), np.float32)
    values = np.mean([c.history.value(steps, mask) for c in agent.learner.state.critics], axis=0)
    walked = np.array([step.observation[:2] for step in agent.play().steps])
    walked = (walked + 1) * SIZE / 2

    figure = Figure(figsize=(5.2, 4.4), layout="constrained")
    axes = figure.subplots()
    image = axes.imshow(
        values.reshape(x.shape), origin="lower", extent=(0, SIZE, 0, SIZE), cmap="viridis"
    )
    axes.plot(walked[:, 0], walked[:, 1], color="white", linewidth=1.5)
    left, bottom = TARGET_LOW
    target = Rectangle(
        (left, bottom), *(TARGET_HIGH - TARGET_LOW), fill=False, edgecolor="#e8684a", linewidth=2
    )
    axes.add_patch(target)
    axes.set_title(title, loc="left", fontsize=10)
    figure.colorbar(image, ax=axes, label="b(s, a)")
    return _save(figure, path)


def _save(figure: Figure, path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
    return path
