"""Looking through an environment's stack of wrappers."""

from __future__ import annotations

from collections.abc import Iterator

import gymnasium as gym
from gymnasium.wrappers import TimeLimit

from belated.envs.intervals import AnyEnv


def layers(env: AnyEnv) -> Iterator[AnyEnv]:
    """Yield an environment's wrappers, outermost first, and then the environment itself."""
    yield env
    while isinstance(env, gym.Wrapper):
        env = env.env
        yield env


def has_time_limit(env: AnyEnv) -> bool:
    """Whether a TimeLimit is anywhere in the stack."""
    return any(isinstance(layer, TimeLimit) for layer in layers(env))


def has_time_limit_outside_intervals(env: AnyEnv) -> bool:
    """Whether a TimeLimit is outside the layer that counts intervals, which misses its cuts."""
    for layer in layers(env):
        if isinstance(layer, TimeLimit):
            return True
        if "interval_spec" in vars(layer) or hasattr(type(layer), "interval_spec"):
            return False
    return False
