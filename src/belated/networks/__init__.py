"""Plain building blocks: perceptrons, recurrent units, policies, running moments."""

from belated.networks.lstm import ReducedLSTM
from belated.networks.mlp import MLP, Linear, TanhMLP
from belated.networks.moments import Moments
from belated.networks.normalization import NormalizedMLP
from belated.networks.policies import (
    BatchNormPolicy,
    ChoicePolicy,
    DeterministicPolicy,
    NormalizedPolicy,
    StochasticPolicy,
    UnsquashedPolicy,
)
from belated.networks.reader import Reader

__all__ = [
    "MLP",
    "BatchNormPolicy",
    "ChoicePolicy",
    "DeterministicPolicy",
    "Linear",
    "Moments",
    "NormalizedMLP",
    "NormalizedPolicy",
    "Reader",
    "ReducedLSTM",
    "StochasticPolicy",
    "TanhMLP",
    "UnsquashedPolicy",
]
