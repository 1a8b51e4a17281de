"""Backbones: pure update functions for any critic and credit rule."""

from belated.backbones.sac import SAC
from belated.backbones.td3 import TD3

Backbone = SAC | TD3

__all__ = ["SAC", "TD3", "Backbone"]
