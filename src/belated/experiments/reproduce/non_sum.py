"""The appendix's rewards that are no sums, and two that others use."""

from __future__ import annotations

from collections.abc import Iterable

from belated.experiments.grid import LateTask
from belated.experiments.reproduce.base import HC_METHODS, LOCOMOTION, Experiment, delayed

REWARDS = ("max", "square", "sum-square", "square-sum")


class NonSum(Experiment):
    """Rewards that are not the sum of per-step rewards: max, square, and two that others use.

    The paper (Appendix C): the hc methods are above q-rnn and sac on all tasks.
    """

    name = "non-sum"
    tasks = LOCOMOTION
    methods = (*HC_METHODS, "q-rnn", "rrd", "sac")
    primary = ("hc-pairwise-1", "sac")

    def late(self, env: str) -> Iterable[LateTask]:
        """Each of the rewards, every 20 steps."""
        for reward in REWARDS:
            yield delayed(env, self.interval, reward)
