"""Figure 3: Point Reach, its learning curves and its heatmaps."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from belated.analysis.agent_figures import draw_heatmaps
from belated.analysis.summary import Summary
from belated.envs.tasks import POINT_REACH
from belated.experiments.grid import Contender, LateTask
from belated.experiments.reproduce.base import Experiment
from belated.experiments.reproduce.regulariser import WITHOUT
from belated.training.run import load_run

if TYPE_CHECKING:
    from matplotlib.figure import Figure

HEATMAPS = ("hc-singleton", f"hc-singleton-{WITHOUT}")


class PointReach(Experiment):
    """Steps to the target in Point Reach, and what hc-singleton finds a step to earn (Figure 3).

    The paper: hc-singleton finds the shortest way, the baselines do not; b(s, a) highlights that
    way, with and without the regulariser.
    """

    name = "point-reach"
    tasks = (POINT_REACH,)
    methods = ("hc-singleton", "rrd", "ircr", "sac")
    steps = 100_000
    seeds = 10
    primary = ("hc-singleton", "sac")
    metric = "length_mean"
    label = "steps to the target (500: not reached)"

    def late(self, env: str) -> Iterable[LateTask]:
        """It is late already."""
        yield LateTask(env)

    def contend(self, method: str) -> Iterable[Contender]:
        """hc-singleton also without the regulariser."""
        yield Contender(method)
        if method == "hc-singleton":
            yield Contender(method, name=HEATMAPS[1], set={"regularizer": 0.0})

    def draw(self, summary: Summary) -> dict[str, Figure]:
        """Learning curves, and the heatmaps of the seeds that reach the target soonest."""
        figures = super().draw(summary)
        agents = {}
        for group in summary.groups:
            if group.method in HEATMAPS:
                soonest = min(group.runs, key=lambda run: run.score(self.metric))
                agents[group.method] = load_run(soonest.folder)
        if agents:
            figures["-heatmaps"] = draw_heatmaps(agents)
        return figures
