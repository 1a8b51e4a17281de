"""Ours: return against wall-clock time, beside other libraries."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from belated.analysis.figures import draw_curves
from belated.analysis.runs import Run
from belated.analysis.summary import Group, Summary
from belated.experiments.grid import Contender
from belated.experiments.peers import PEERS, is_peer
from belated.experiments.reproduce.base import Cells, Experiment

if TYPE_CHECKING:
    from matplotlib.figure import Figure

GOALS = (2_000, 3_000)


class Clock(Experiment):
    """Return against the time spent learning, beside Stable-Baselines3's and SBX's SAC.

    One core for each run. The others run as their users would run them: on the revealed reward and
    without the phase. They need the extra ``bench``.
    """

    name = "clock"
    tasks = ("HalfCheetah",)
    methods = ("crossq-hc-singleton", "hc-singleton", "sac", *PEERS)
    steps = 300_000
    seeds = 3
    primary = ("crossq-hc-singleton", "sb3-sac")

    def contend(self, method: str) -> Iterable[Contender]:
        """Other libraries know nothing of a phase."""
        yield Contender(method, phase=False if is_peer(method) else None)

    def draw(self, summary: Summary) -> dict[str, Figure]:
        """Curves over time."""
        return {"": draw_curves(summary.runs, x="wall_time")}

    def table(self, summary: Summary) -> Cells:
        """How long it took to reach some returns, and how many times as long the peer took.

        Both are medians over the seeds. A peer that did not get there would have taken longer than
        it ran for.
        """
        peer = self.primary[1]
        compared = any(group.method == peer for group in summary.groups)
        header = ["task", "method", "seeds", "steps/s"]
        header += [f"minutes to {goal:,}" for goal in GOALS]
        header += [f"{peer} takes, to {goal:,}" for goal in GOALS if compared]
        rows = []
        for group in summary.groups:
            row = [group.task, group.method, str(len(group.runs)), f"{group.speed:,.0f}"]
            row += [_median_minutes(group.runs, goal) for goal in GOALS]
            theirs = summary.group(group.task, peer)
            if compared:
                row += [times_as_long(theirs, group, goal) for goal in GOALS]
            rows.append(row)
        return header, rows


def seconds_to(run: Run, goal: float) -> float:
    """The time spent learning until an evaluation reached a return; infinite if none did."""
    for row in run.rows:
        if row.get("return_mean", -np.inf) >= goal:
            return row["wall_time"]
    return float("inf")


def times_as_long(theirs: Group | None, own: Group, goal: float) -> str:
    """How many times as long as a method another one took to reach a return."""
    ours = float(np.median([seconds_to(run, goal) for run in own.runs]))
    if theirs is None or theirs is own or not np.isfinite(ours):
        return ""
    times = [seconds_to(run, goal) for run in theirs.runs]
    at_least = [
        min(t, run.rows[-1]["wall_time"]) for t, run in zip(times, theirs.runs, strict=True)
    ]
    longer = "" if np.isfinite(np.median(times)) else "more than "
    return f"{longer}{np.median(at_least) / ours:.1f} times as long"


def _median_minutes(runs: Iterable[Run], goal: float) -> str:
    times = [seconds_to(run, goal) for run in runs]
    reached = sum(np.isfinite(times))
    if reached == 0:
        return "not reached"
    median = float(np.median(times)) / 60
    text = f"{median:.1f}" if np.isfinite(median) else "more"
    return text if reached == len(times) else f"{text} (reached by {reached} of {len(times)})"
