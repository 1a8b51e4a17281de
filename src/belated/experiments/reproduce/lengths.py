"""Ours: how late may a reward be?"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import gymnasium as gym

from belated.analysis.figures import points_against
from belated.analysis.intervals import Estimate
from belated.analysis.summary import Summary
from belated.experiments.grid import Contender, LateTask
from belated.experiments.reproduce.base import Experiment, delayed

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LENGTHS = (5, 20, 50, 100, 200, 500)
WHOLE_EPISODE = 1_000
"""How long an episode is taken to be where Gymnasium does not say."""
GAMMA = 0.999
"""With the usual 0.99 what comes at the end of a long interval would count next to nothing."""


class Lengths(Experiment):
    """A sum every 5 to 500 steps, and only at the end of an episode.

    Not in the paper, whose intervals have up to 20 steps.
    """

    name = "lengths"
    tasks = ("Hopper",)
    methods = ("hc-singleton", "rrd", "sac", "oracle")
    seeds = 3
    primary = ("hc-singleton", "sac")

    def late(self, env: str) -> Iterable[LateTask]:
        """The sum, with each length that an episode has room for, and over whole episodes."""
        whole = gym.spec(env).max_episode_steps or WHOLE_EPISODE
        for length in (*(n for n in LENGTHS if n < whole), whole):
            yield delayed(env, str(length))

    def contend(self, method: str) -> Iterable[Contender]:
        """With a discount that looks as far ahead as the rewards are late."""
        yield Contender(method, set={"gamma": GAMMA})

    def draw(self, summary: Summary) -> dict[str, Figure]:
        """Learning curves, and for each environment the scores against the length."""
        figures = super().draw(summary)
        for env in sorted({task.rpartition("-n")[0] for task in summary.tasks}):
            points = _scores(summary, env)
            figures[f"-{env}"] = points_against(
                points, x="steps between rewards", title=env, log=True
            )
        return figures


def _scores(summary: Summary, env: str) -> dict[str, dict[float, Estimate]]:
    points: dict[str, dict[float, Estimate]] = {}
    for group in summary.groups:
        name, _, length = group.task.rpartition("-n")
        if name == env:
            points.setdefault(group.method, {})[float(length)] = group.mean
    return points
