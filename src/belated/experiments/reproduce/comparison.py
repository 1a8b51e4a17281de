"""Figure 2: the paper's methods beside others'."""

from __future__ import annotations

from statistics import fmean
from typing import TYPE_CHECKING

from belated.analysis.figures import profiles
from belated.analysis.statistics import relative_performance
from belated.analysis.summary import Summary, offset_of
from belated.experiments.reproduce.base import HC_METHODS, Experiment

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Comparison(Experiment):
    """All methods, a sum every 20 steps, five tasks, with sac on dense rewards as the oracle.

    The paper (Figure 2): hc-pairwise-1 and hc-rnn come near the oracle and leave LIRPG, RUDDER and
    IRCR behind on all tasks. Its figure has those five; the rest is ours.
    """

    name = "comparison"
    methods = (*HC_METHODS, "q-rnn", "rrd", "ircr", "rudder", "lirpg", "ppo", "sac", "oracle")
    primary = ("hc-pairwise-1", "ircr")

    def draw(self, summary: Summary) -> dict[str, Figure]:
        """Learning curves and, where the oracle earns something, performance profiles."""
        figures = super().draw(summary)
        shares = shares_of_oracle(summary)
        if shares:
            figures["-profiles"] = profiles(shares)
        return figures


def shares_of_oracle(summary: Summary) -> dict[str, list[list[float]]]:
    """Each method's scores as shares of the oracle's mean: a list for each task that has both."""
    shares: dict[str, list[list[float]]] = {}
    for group in summary.groups:
        oracle = summary.group(group.task, "oracle")
        if oracle is not None and group.relative is not None:
            best, offset = fmean(oracle.scores), offset_of(group.task)
            own = [relative_performance(score, best, offset=offset) for score in group.scores]
            shares.setdefault(group.method, []).append(own)
    return shares
