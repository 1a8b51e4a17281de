"""Agents that learn within moments, on an environment of random numbers."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np

import belated
from belated import Agent
from belated.experience.on_policy import RolloutTraining
from belated.methods import as_method

REPLAY: dict[str, Any] = {
    "hidden": (8, 8), "batch_size": 8, "learning_starts": 30, "replay_size": 500,
}  # fmt: skip
ROLLOUT: dict[str, Any] = {"hidden": (8, 8), "rollout_steps": 24, "epochs": 2, "minibatches": 4}

if "scripted/Random-v0" not in gym.registry:
    gym.register("scripted/Random-v0", entry_point="scripted_envs:RandomEnv")


def delayed(interval: Any = "2:5", **how: Any) -> gym.Env[Any, Any]:
    return belated.delay(gym.make("scripted/Random-v0"), interval=interval, **how)


def vector_of(count: int, mode: Any, vectorization: str = "sync", **how: Any) -> Any:
    return gym.make_vec(
        "scripted/Random-v0",
        num_envs=count,
        vectorization_mode=vectorization,
        vector_kwargs={"autoreset_mode": mode},
        wrappers=[lambda env: belated.delay(env, interval="2:5", **how)],  # type: ignore[list-item, return-value]
    )


def small_agent(method: Any = "hc-singleton", env: Any = None, **changes: Any) -> Agent:
    found = as_method(method)
    small = ROLLOUT if found.backbone.learns_from is RolloutTraining else REPLAY
    return Agent(found, delayed() if env is None else env, **small | changes)


def weights(agent: Agent) -> list[Any]:
    return [np.asarray(leaf) for leaf in agent.learner.leaves]


def assert_same_weights(first: Agent, second: Agent) -> None:
    for a, b in zip(weights(first), weights(second), strict=True):
        np.testing.assert_array_equal(a, b)
