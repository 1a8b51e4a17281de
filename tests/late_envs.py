"""Environments whose reward is late by itself."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import numpy.typing as npt

LENGTH = 5
"""Of the intervals; episodes have six of them."""


class LabEnv(gym.Env[Any, Any]):
    """Two random numbers and an action in each step; a lab reports on five steps at a time.

    Args:
        kind: what it reports: the "sum" of its steps' terms, "noise", a sum in which later steps
            weigh more ("place"), "max", or products of "neighbours".
    """

    observation_space = gym.spaces.Box(-1, 1, (2,), np.float32)
    action_space: gym.Space[Any] = gym.spaces.Box(-1, 1, (1,), np.float32)

    def __init__(self, kind: str = "sum") -> None:
        self.kind = kind
        self.terms: list[float] = []
        self.time = 0
        self.seen: npt.NDArray[Any] = np.zeros(2)

    def observe(self) -> Any:
        self.seen = self.np_random.uniform(-1, 1, 2).astype(np.float32)
        return self.seen

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.terms, self.time = [], 0
        return self.observe(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.terms.append(float(self.seen[0] + np.ravel(action)[0] ** 2))
        self.time += 1
        end = self.time % LENGTH == 0
        reward = self.report() if end else 0.0
        self.terms = [] if end else self.terms
        info = {"lab_report": end}
        return self.observe(), reward, False, self.time == 6 * LENGTH, info

    def report(self) -> float:
        terms = np.array(self.terms)
        if self.kind == "sum":
            return float(terms.sum())
        if self.kind == "place":
            return float(terms @ np.linspace(-1, 1, LENGTH))
        if self.kind == "max":
            return float(terms.max())
        if self.kind == "neighbours":
            return float(terms[1:] @ terms[:-1])
        return float(self.np_random.normal()) if self.kind == "noise" else 1.0


class MaskedLabEnv(LabEnv):
    """The same with two actions, of which one is forbidden now and then."""

    action_space = gym.spaces.Discrete(2)

    def mask(self) -> Any:
        return np.array([1, self.np_random.integers(2)], np.int8)

    def reset(self, **kwargs: Any) -> tuple[Any, dict[str, Any]]:
        observation, info = super().reset(**kwargs)
        return observation, info | {"action_mask": self.mask()}

    def step(self, action: Any) -> Any:
        *outcome, info = super().step(action)
        return *outcome, info | {"action_mask": self.mask()}


def reported(reward: float, info: dict[str, Any]) -> bool:
    return bool(info["lab_report"])


if "Lab-v0" not in gym.registry:
    gym.register("Lab-v0", entry_point="late_envs:LabEnv")
    gym.register("MaskedLab-v0", entry_point="late_envs:MaskedLabEnv")
