"""Pictures of one agent or of one episode: the credit of steps, and Point Reach."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from belated.analysis.frame import (
    COLUMN,
    PAGE,
    blank_figure,
    format_numbers,
    in_style,
    label_outer,
    save,
)
from belated.analysis.looks import GRID, INK, LOOKS
from belated.analysis.runs import Floats
from belated.envs.point_reach import COLUMN_WIDTH, SIZE, TARGET_HIGH, TARGET_LOW, scale_position
from belated.training.agent import Agent
from belated.training.evaluation import Episode

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def credit_chart(
    episode: Episode, credit: npt.NDArray[np.float64], path: Path, *, title: str = ""
) -> Path:
    """Draw the credit of each step of an episode and the rewards revealed."""
    figure = draw_credit(
        credit,
        dense=np.array([step.dense_reward for step in episode.steps]),
        rewards=np.array([step.reward for step in episode.steps]),
        ends=[time for time, step in enumerate(episode.steps) if step.interval_end],
        title=title,
    )
    return save(figure, path)


def draw_credit(
    credit: Floats, *, dense: Floats, rewards: Floats, ends: Sequence[int], title: str = ""
) -> Figure:
    """The credit of each step, the revealed rewards, and the hidden ones where they are known.

    Args:
        credit: of each step.
        dense: the hidden reward of each step; NaN where there is none.
        rewards: what was revealed at each step.
        ends: the last steps of intervals.
        title: whose credit it is.
    """
    chart = [
        ("revealed reward", rewards, "#6c5460"),
        ("credit of each step", credit, LOOKS["hc-pairwise-1"].colour),
    ]
    if not np.isnan(dense).any():
        chart.append(("hidden reward of each step", dense, LOOKS["rudder"].colour))
    edges = np.arange(len(credit) + 1) - 0.5
    with in_style():
        figure = blank_figure(PAGE, 1.15 * len(chart) + 0.3 + 0.2 * bool(title))
        panels = np.atleast_1d(figure.subplots(len(chart), 1, sharex=True))
        if title:
            figure.suptitle(title, x=0.01, horizontalalignment="left", fontsize=9)
        for axes, (name, values, colour) in zip(panels, chart, strict=True):
            # (One outline for all steps: a bar for each makes pictures of a thousand steps large.)
            axes.stairs(np.nan_to_num(values), edges, fill=True, color=colour, linewidth=0.4)
            axes.axhline(0, color=INK, linewidth=0.6)
            axes.grid(visible=False, axis="x")
            axes.set_title(name)
            axes.margins(x=0)
            if len(ends) <= 60:
                whole = axes.get_xaxis_transform()
                lines = np.array(ends) + 0.5
                axes.vlines(lines, 0, 1, color=GRID, linewidth=0.6, zorder=0, transform=whole)
        label_outer([panels[-1]], "step", "")
        for axes in panels:
            format_numbers(axes.yaxis)
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
    from matplotlib.patches import Rectangle  # (late, as in `frame`)

    width = COLUMN if len(agents) == 1 else min(PAGE, 3.0 * len(agents))
    with in_style({"axes.grid": False}):
        figure = blank_figure(width, 0.9 * width / len(agents), "compressed")
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
            axes.set_xlabel("x")
            figure.colorbar(image, ax=axes, label="b(s, a)" if axes is panels[-1] else "")
        panels[0].set_ylabel("y")
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
    backbone: Any = agent.method.backbone
    if agent.method.training.normalize_observations:
        raise ValueError("What a step earns cannot be drawn for normalised observations.")
    state = agent.learner.state
    tellers = backbone.tellers(state.inner if agent.method.training.policy_average else state)
    values = np.mean([teller.history.value(steps, mask) for teller in tellers], axis=0)
    return np.asarray(values, np.float64).reshape(x.shape)
