"""Plain building blocks: perceptrons, recurrent units, policies, running moments."""

from belated.networks.lstm import ReducedLSTM
from belated.networks.mlp import MLP, Linear, TanhMLP
from belated.networks.moments import Moments
from belated.networks.normalization import NormalizedMLP
from belated.networks.policies import (
    DeterministicPolicy,
    GaussianPolicy,
    NormalizedGaussianPolicy,
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
    "NormalizedGaussianPolicy",
    "NormalizedMLP",
    "NormalizedPolicy",
    "Reader",
    "ReducedLSTM",
    "TanhMLP",
    "UnsquashedPolicy",
]
