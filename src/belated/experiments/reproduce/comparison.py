"""Figure 3: the paper's methods beside others'."""

from __future__ import annotations

from belated.experiments.reproduce.base import HC_METHODS, Experiment


class Comparison(Experiment):
    """All methods, a sum every 20 steps, five tasks, with sac on dense rewards as the oracle.

    The paper (Figure 3): hc-pairwise-1 and hc-rnn come near the oracle and leave LIRPG, RUDDER and
    IRCR behind on all tasks. Its figure has those five; the rest is ours.
    """

    name = "comparison"
    methods = (*HC_METHODS, "q-rnn", "rrd", "ircr", "rudder", "lirpg", "ppo", "sac", "oracle")
    primary = ("hc-pairwise-1", "ircr")
