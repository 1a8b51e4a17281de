"""More environments of the same kind."""

from __future__ import annotations

import copy
from typing import Any

import gymnasium as gym
from gymnasium.envs.registration import EnvSpec

from belated.envs.intervals import AnyEnv
from belated.envs.layers import has_time_limit_outside_intervals


def copies_of(env: AnyEnv, count: int) -> list[AnyEnv]:
    """Make independent environments like ``env``.

    Raises:
        ValueError: if the environment cannot be made again.
    """
    if count == 0:
        return []
    try:
        if env.spec is None:
            raise ValueError("it has no spec")
        return [_like(env) for _ in range(count)]
    except Exception as error:
        raise ValueError(
            f"Cannot make another {env} ({error}). Make it with gym.make from a registered id, or "
            "pass a second environment where one is needed."
        ) from error


def _like(env: AnyEnv) -> AnyEnv:
    assert env.spec is not None
    return gym.make(env.spec) if has_time_limit_outside_intervals(env) else made_from(env.spec)


def made_from(spec: EnvSpec, **kwargs: Any) -> AnyEnv:
    """Make an environment whose time limit, if it has one, is inside its intervals.

    Args:
        spec: that of the environment.
        **kwargs: passed on to ``gym.make``.
    """
    made: AnyEnv = gym.make(spec, **kwargs)
    if not has_time_limit_outside_intervals(made):
        return made
    # Its entry point puts on a time limit, inside the intervals; Gymnasium adds one more.
    made.close()
    spec = copy.deepcopy(spec)
    spec.max_episode_steps = None
    return gym.make(spec, **kwargs)
