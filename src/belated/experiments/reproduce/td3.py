"""The paper's remark that SAC is the better backbone."""

from __future__ import annotations

from belated.experiments.reproduce.base import LOCOMOTION, Experiment

ON_SAC = ("hc-singleton", "hc-pairwise-1", "hc-rnn", "sac")


class TD3(Experiment):
    """Methods on TD3 beside the same on SAC, a sum every 20 steps.

    The paper (Section 4.1): the SAC variants are above the TD3 variants.
    """

    name = "td3"
    tasks = LOCOMOTION
    methods = (*ON_SAC, *("td3" if name == "sac" else f"td3-{name}" for name in ON_SAC))
    primary = ("hc-pairwise-1", "td3-hc-pairwise-1")
