"""Plain building blocks: multilayer perceptrons, a gated recurrent unit, policies."""

from belated.networks.gru import GRU
from belated.networks.mlp import MLP, Linear
from belated.networks.policies import DeterministicPolicy, GaussianPolicy

__all__ = ["GRU", "MLP", "DeterministicPolicy", "GaussianPolicy", "Linear"]
