"""Figure 2, last picture, and its appendix: rewards of overlapping intervals."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from belated.analysis.comparison import ratio
from belated.analysis.figures import points_against
from belated.analysis.intervals import Estimate
from belated.analysis.summary import Summary, is_oracle, offset_of
from belated.experiments.grid import LateTask
from belated.experiments.reproduce.base import Experiment, delayed

if TYPE_CHECKING:
    from matplotlib.figure import Figure

OVERLAPS = (0, 5, 10)
ORACLE = "oracle"


class Overlap(Experiment):
    """Rewards that come another 0, 5 and 10 steps later, and returns relative to the oracle's.

    The paper (Figure 2 and Appendix C): the hc methods are the best for each overlap. RAP, the
    relative average performance, is the return over the oracle's, averaged over tasks.
    """

    name = "overlap"
    methods = ("hc-pairwise-1", "hc-rnn", "ircr", "rudder", "lirpg", "sac", "oracle")
    primary = ("hc-pairwise-1", "sac")

    def late(self, env: str) -> Iterable[LateTask]:
        """The sum every 20 steps, with each overlap."""
        for c in OVERLAPS:
            yield delayed(env, self.interval, overlap=c)

    def draw(self, summary: Summary) -> dict[str, Figure]:
        """Learning curves, and RAP against the overlap."""
        figures = super().draw(summary)
        points = relative_performances(summary)
        if points:
            label = "return relative to the oracle's"
            figures["-rap"] = points_against(points, x="overlap c (steps)", label=label)
        return figures


def relative_performances(summary: Summary) -> dict[str, dict[float, Estimate]]:
    """RAP of each method for each overlap, over the tasks that all methods have.

    Tasks whose oracle has no positive return are left out: a share of a loss means nothing.
    """
    points: dict[str, dict[float, Estimate]] = {}
    for c in OVERLAPS:
        own = [task for task in summary.tasks if _overlap_of(task) == c]
        tasks = [task for task in own if _has_all_shares(summary, task)]
        for method in summary.methods if tasks else ():
            if not is_oracle(method):
                points.setdefault(method, {})[c] = ratio(
                    [_shifted(summary, task, method) for task in tasks],
                    [_shifted(summary, task, ORACLE) for task in tasks],
                )
    return points


def _has_all_shares(summary: Summary, task: str) -> bool:
    groups = [summary.group(task, method) for method in (ORACLE, *summary.methods)]
    return all(group is not None and group.relative is not None for group in groups)


def _shifted(summary: Summary, task: str, method: str) -> list[float]:
    group = summary.group(task, method)
    assert group is not None
    return [score + offset_of(task) for score in group.scores]


def _overlap_of(task: str) -> int:
    _, marker, text = task.rpartition("-c")
    return int(text) if marker and text.isdigit() else 0
