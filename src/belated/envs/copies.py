"""More environments of the same kind."""

from __future__ import annotations

import copy

import gymnasium as gym

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
    made = gym.make(env.spec)
    if has_time_limit_outside_intervals(made) and not has_time_limit_outside_intervals(env):
        # Its entry point puts on a time limit, inside the intervals; Gymnasium adds one more.
        spec = copy.deepcopy(env.spec)
        spec.max_episode_steps = None
        made = gym.make(spec)
    return made
