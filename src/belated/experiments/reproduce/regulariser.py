"""Figure 1 (b) and its appendix: what the regulariser on H is worth."""

from __future__ import annotations

from collections.abc import Iterable

from belated.experiments.grid import Contender
from belated.experiments.reproduce.base import HC_METHODS, LOCOMOTION, Experiment

WITHOUT = "no-regulariser"


class Regulariser(Experiment):
    """Every form of H with its λ and with λ = 0, a sum every 15 to 20 steps (Figure 1b).

    The paper: it matters on HalfCheetah and Ant, and for the complex forms of H.
    """

    name = "regulariser"
    tasks = LOCOMOTION
    interval = "15:20"
    methods = HC_METHODS
    primary = ("hc-rnn", f"hc-rnn-{WITHOUT}")

    def contend(self, method: str) -> Iterable[Contender]:
        """With and without."""
        yield Contender(method)
        yield Contender(method, name=f"{method}-{WITHOUT}", set={"regularizer": 0.0})
