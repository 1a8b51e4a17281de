"""Backbones: pure update functions for any critic and credit rule."""

from belated.backbones.lirpg import LIRPG
from belated.backbones.ppo import PPO
from belated.backbones.sac import SAC
from belated.backbones.td3 import TD3

Backbone = SAC | TD3 | PPO | LIRPG

__all__ = ["LIRPG", "PPO", "SAC", "TD3", "Backbone"]
