"""The appendix's comparison over interval lengths."""

from __future__ import annotations

from collections.abc import Iterable

from belated.experiments.grid import LateTask
from belated.experiments.reproduce.base import HC_METHODS, LOCOMOTION, Experiment, delayed

LENGTHS = ("20", "15:20", "10:20")


class Intervals(Experiment):
    """Every form of H beside q-rnn and sac, with lengths 20, U(15, 20) and U(10, 20).

    The paper (Appendix C): the order of the methods is the same for all three.
    """

    name = "intervals"
    tasks = LOCOMOTION
    methods = (*HC_METHODS, "q-rnn", "sac")
    primary = ("hc-pairwise-1", "sac")

    def late(self, env: str) -> Iterable[LateTask]:
        """The sum, with each of the lengths."""
        for interval in LENGTHS:
            yield delayed(env, interval)
