"""Ours: how much of the difference between methods is the position in the interval?"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from belated.analysis.figures import bars
from belated.analysis.summary import Summary
from belated.experiments.grid import Contender
from belated.experiments.reproduce.base import LOCOMOTION, Experiment

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BLIND = "nophase"


class Phase(Experiment):
    """Each method with and without the phase in its observations, a sum every 20 steps.

    The paper adds the phase to "our algorithm"; whether its baselines had it is not said.
    """

    name = "phase"
    tasks = LOCOMOTION
    methods = ("hc-singleton", "rrd", "ircr", "sac")
    primary = ("sac", f"sac-{BLIND}")

    def contend(self, method: str) -> Iterable[Contender]:
        """Told and not told."""
        yield Contender(method)
        yield Contender(method, name=f"{method}-{BLIND}", phase=False)

    def draw(self, summary: Summary) -> dict[str, Figure]:
        """Learning curves, and the scores side by side."""
        scores = {
            task: {g.method: g.mean for g in summary.groups if g.task == task}
            for task in summary.tasks
        }
        return super().draw(summary) | {"-scores": bars(scores)}
