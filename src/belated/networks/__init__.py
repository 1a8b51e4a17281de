"""Plain building blocks: perceptrons, recurrent units, policies, running moments."""

from belated.networks.lstm import ReducedLSTM
from belated.networks.mlp import MLP, Linear, TanhMLP
from belated.networks.moments import Moments
from belated.networks.policies import (
    DeterministicPolicy,
    GaussianPolicy,
    NormalizedPolicy,
    UnsquashedPolicy,
)
from belated.networks.reader import Reader

__all__ = [
    "MLP",
    "DeterministicPolicy",
    "GaussianPolicy",
    "Linear",
    "Moments",
    "NormalizedPolicy",
    "Reader",
    "ReducedLSTM",
    "TanhMLP",
    "UnsquashedPolicy",
]
