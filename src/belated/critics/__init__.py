"""Critics: what is learned about values, and how much of the history it depends on."""

from belated.critics.base import AdditiveConfig, Critic, CriticConfig, GreedyConfig
from belated.critics.hc import HC
from belated.critics.histories import Pairwise, Recurrent, Singleton
from belated.critics.markov import Markov
from belated.critics.segment import Segment

__all__ = [
    "HC",
    "AdditiveConfig",
    "Critic",
    "CriticConfig",
    "GreedyConfig",
    "Markov",
    "Pairwise",
    "Recurrent",
    "Segment",
    "Singleton",
]
