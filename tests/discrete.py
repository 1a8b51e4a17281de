"""Batches and environments with discrete actions."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
from episodes import OBSERVATION, random_episode
from scripted_envs import RandomEnv

from belated.experience.batch import IntervalBatch
from belated.experience.choices import encode
from belated.experience.replay import IntervalReplay
from belated.experience.step import ProblemShape, Step


def discrete_shape(
    choices: tuple[int, ...], masked: bool = False, max_length: int = 5, overlap: int = 0
) -> ProblemShape:
    size = OBSERVATION + (sum(choices) if masked else 0)
    return ProblemShape(size, sum(choices), max_length, overlap, True, choices, masked)


def random_mask(rng: np.random.Generator, choices: tuple[int, ...]) -> Any:
    """One option of each component is allowed, and half of the others."""
    picks = encode([rng.integers(size) for size in choices], choices)
    return np.maximum(picks, rng.random(len(picks)) < 0.5).astype(np.float32)


def random_choice(rng: np.random.Generator, allowed: Any, choices: tuple[int, ...]) -> Any:
    parts = np.split(allowed, np.cumsum(choices)[:-1])
    return encode([rng.choice(np.flatnonzero(part)) for part in parts], choices)


def discrete_episode(rng: np.random.Generator, shape: ProblemShape) -> list[Step]:
    """A random episode with discrete actions, which its observations allow."""
    steps = random_episode(rng, shape.max_length)
    masks = [random_mask(rng, shape.choices) for _ in range(len(steps) + 1)]

    def told(observation: Any, mask: Any) -> Any:
        own, phase = observation[:-1], observation[-1:]
        return np.concatenate([own, mask, phase]) if shape.masked else observation

    anything = np.ones(shape.action_size, np.float32)
    return [
        step._replace(
            observation=told(step.observation, masks[time]),
            next_observation=told(step.next_observation, masks[time + 1]),
            action=random_choice(rng, masks[time] if shape.masked else anything, shape.choices),
            duration=float(rng.integers(1, 4)),
        )
        for time, step in enumerate(steps)
    ]


def discrete_batch(shape: ProblemShape, size: int = 16, seed: int = 0) -> IntervalBatch:
    """A batch of random steps."""
    rng = np.random.default_rng(seed)
    replay = IntervalReplay(2_000, shape)
    for _ in range(8):
        for step in discrete_episode(rng, shape):
            replay.add(step)
    return replay.sample(rng, size)


class ChoiceEnv(RandomEnv):
    """A `RandomEnv` with discrete actions that refuses those which it does not allow."""

    def __init__(self, space: gym.Space[Any], masked: bool, choices: tuple[int, ...]) -> None:
        super().__init__()
        self.action_space = space
        self.masked = masked
        self.choices = choices
        self.allowed = np.ones(sum(choices), np.float32)

    def _info(self) -> dict[str, Any]:
        if not self.masked:
            return {}
        self.allowed = random_mask(self.np_random, self.choices)
        parts = np.split(self.allowed.astype(np.int8), np.cumsum(self.choices)[:-1])
        return {"action_mask": parts[0] if len(parts) == 1 else tuple(parts)}

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        observation, _ = super().reset(seed=seed)
        return observation, self._info()

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        assert self.action_space.contains(action), action
        if isinstance(self.action_space, gym.spaces.Discrete):
            assert hash(action) == hash(int(action))  # environments may look it up
        first = getattr(self.action_space, "start", 0)
        picks = np.reshape(np.asarray(action) - first, -1)
        assert (encode(picks, self.choices) <= self.allowed).all(), (action, self.allowed)
        *outcome, _ = super().step(float(picks[0]))
        return *outcome, self._info()  # type: ignore[return-value]
