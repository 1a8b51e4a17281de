"""Figure 1 (a): which form of H, and does the decomposition help?"""

from __future__ import annotations

from belated.experiments.reproduce.base import HC_METHODS, LOCOMOTION, Experiment


class Design(Experiment):
    """Every form of H beside q-rnn and sac, with a sum every 15 to 20 steps (Figure 1a).

    The paper: methods with the new Q-function are above sac, those with H + C above q-rnn, and
    hc-pairwise-1 is slightly the best.
    """

    name = "design"
    tasks = LOCOMOTION
    methods = (*HC_METHODS, "q-rnn", "sac")
    primary = ("hc-pairwise-1", "sac")
    interval = "15:20"
