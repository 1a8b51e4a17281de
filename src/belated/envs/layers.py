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
    outside = limited = False
    for layer in layers(env):
        limited = limited or isinstance(layer, TimeLimit)
        # The innermost one that declares intervals counts them; others, such as `IntervalPhase`,
        # only say more about them.
        if "interval_spec" in vars(layer) or hasattr(type(layer), "interval_spec"):
            outside = limited
    return outside
