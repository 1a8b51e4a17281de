"""Ours: does a method's credit tell which steps earned the reward?"""

from __future__ import annotations

import math
from functools import cache
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING

from belated.analysis.credit import correlation_with_hidden_reward
from belated.analysis.figures import bars
from belated.analysis.intervals import Estimate
from belated.analysis.statistics import estimate, mean
from belated.analysis.summary import Summary
from belated.analysis.wording import with_interval
from belated.experiments.reproduce.base import HC_METHODS, LOCOMOTION, Cells, Experiment
from belated.training.run import load_run

if TYPE_CHECKING:
    from matplotlib.figure import Figure

EPISODES = 5


class Credit(Experiment):
    """The correlation of each method's credit with the hidden reward, at the end of training.

    Over five episodes of the method's own policy; not in the paper.
    """

    name = "credit"
    tasks = LOCOMOTION
    methods = (*HC_METHODS, "rrd", "ircr", "rudder")
    primary = ("hc-singleton", "rrd")

    def draw(self, summary: Summary) -> dict[str, Figure]:
        """The correlations side by side."""
        label = "correlation with the hidden reward"
        return {"": bars(self._correlations(summary), label=label)}

    def table(self, summary: Summary) -> Cells:
        """The correlations beside the returns."""
        header = ["task", "method", "seeds", "correlation with the hidden reward", "mean return"]
        found = self._correlations(summary)
        rows = []
        for group in summary.groups:
            estimates = found[group.task][group.method], group.mean
            who = [group.task, group.method, str(len(group.runs))]
            rows.append([*who, *map(with_interval, estimates)])
        return header, rows

    def _correlations(self, summary: Summary) -> dict[str, dict[str, Estimate]]:
        found: dict[str, dict[str, Estimate]] = {}
        for group in summary.groups:
            values = [correlation_of(run.folder) for run in group.runs]
            known = [value for value in values if not math.isnan(value)]
            estimated = estimate([known], mean) if known else Estimate(*[math.nan] * 3)
            found.setdefault(group.task, {})[group.method] = estimated
        return found


@cache  # the figure and the table show the same episodes
def correlation_of(folder: Path) -> float:
    """The mean correlation over some episodes of a run's own policy."""
    agent = load_run(folder, trust=True)  # its user has just named what it imports
    episodes = [agent.play(seed=seed, env=agent.env) for seed in range(EPISODES)]
    return fmean(correlation_with_hidden_reward(e, agent.credit(e)) for e in episodes)
