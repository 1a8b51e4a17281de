"""Backbones: pure functions that act and learn, each with parts of its own."""

from belated.backbones.base import Backbone
from belated.backbones.crossq import CrossQ
from belated.backbones.dqn import DQN
from belated.backbones.lirpg import LIRPG
from belated.backbones.ppo import PPO
from belated.backbones.sac import SAC
from belated.backbones.td3 import TD3

__all__ = ["DQN", "LIRPG", "PPO", "SAC", "TD3", "Backbone", "CrossQ"]
