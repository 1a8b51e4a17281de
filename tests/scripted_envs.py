"""Small environments whose every number is known in advance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gymnasium as gym
import numpy as np
import numpy.typing as npt

Observation = npt.NDArray[np.float64]


class ScriptedEnv(gym.Env[Observation, Observation]):
    """Gives the listed rewards, one a step, and ends with the last of them.

    The observation is (time, a random number, the last action): any disturbance of the
    environment's own randomness shows.
    """

    def __init__(self, rewards: Sequence[float], terminates: bool = True) -> None:
        self.rewards = list(rewards)
        self.terminates = terminates
        self.observation_space = gym.spaces.Box(-1e3, 1e3, (3,), np.float64)
        self.action_space = gym.spaces.Box(-1, 1, (1,), np.float64)
        self.time = 0

    def observe(self, action: float) -> Observation:
        return np.array([self.time, self.np_random.random(), action])

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        super().reset(seed=seed)
        self.time = 0
        return self.observe(0.0), {}

    def step(self, action: Any) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        reward = self.rewards[self.time]
        self.time += 1
        end = self.time == len(self.rewards)
        observation = self.observe(float(np.ravel(action)[0]))
        return observation, reward, end and self.terminates, end and not self.terminates, {}


class RandomEnv(ScriptedEnv):
    """Draws its rewards and the episode's length (at most 30) anew for every episode."""

    def __init__(self) -> None:
        super().__init__([])

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        gym.Env.reset(self, seed=seed)
        length = self.np_random.integers(1, 31)
        self.rewards = self.np_random.normal(size=length).tolist()
        self.terminates = bool(self.np_random.integers(2))
        return super().reset()


def rollout(env: gym.Env[Any, Any], *, seed: int | None = 0) -> list[tuple[Any, ...]]:
    """Play one episode with the actions 0, 0.1, 0.2, ... and return every step's result."""
    steps: list[tuple[Any, ...]] = [env.reset(seed=seed)]
    done = False
    while not done:
        result = env.step(np.full(env.action_space.shape or (1,), 0.1 * (len(steps) % 10)))
        done = bool(result[2] or result[3])
        steps.append(result)
    return steps
