"""Environments side by side: whatever kind they are, one step gives one list of transitions."""

from __future__ import annotations

from typing import Any

from gymnasium.vector import VectorEnv

from belated.envs.copies import copies_of
from belated.envs.intervals import AnyEnv
from belated.experience.lanes.base import Lanes, RepeatError, SeededLanes, episode_seed
from belated.experience.lanes.single import EnvLanes
from belated.experience.lanes.vector import UnseededLanes, VectorLanes, can_be_seeded

__all__ = [
    "EnvLanes",
    "Lanes",
    "RepeatError",
    "SeededLanes",
    "UnseededLanes",
    "VectorLanes",
    "episode_seed",
    "lanes_of",
]


def lanes_of(env: AnyEnv | VectorEnv[Any, Any, Any], num_envs: int, seed: int) -> Lanes:
    """Make lanes out of one environment and copies of it, or out of a vector environment."""
    if not isinstance(env, VectorEnv):
        return EnvLanes([env, *copies_of(env, num_envs - 1)], seed)
    if num_envs != 1:
        raise ValueError("num_envs is for single environments; a vector has its own.")
    return VectorLanes(env, seed) if can_be_seeded(env) else UnseededLanes(env, seed)
