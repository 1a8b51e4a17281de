"""Steps played with random actions in a delayed environment, in one table."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
import numpy.typing as npt

from belated.envs.actions import flat_mask, options_of, sample
from belated.envs.delay_reward import DelayReward
from belated.envs.intervals import AnyEnv, IntervalSpec, find_interval_spec
from belated.envs.rules import allowed_in

_MIN_STEPS = 5_000
"""How many steps to play, unless five windows of the largest size need more."""
_MOST_STEPS = 50_000
"""How many steps to record at most."""


class PlayedStep(NamedTuple):
    """A step as played, with what splicing needs to know about it."""

    observation: npt.NDArray[Any]  # like the action, 0 if the reward does not look at it
    action: npt.NDArray[Any]
    reward: float
    features: npt.NDArray[Any]  # the observation as a vector
    interval_length: int  # on an interval's last step; 0 before


@dataclass(frozen=True)
class StepTable:
    """The steps of all episodes, one row each. c rows of padding precede each episode.

    Attributes:
        overlap: c.
        steps: what happened; zeros for padding.
        remaining: how many rows the episode has from this row on.
        padding: how many of those are padding.
        features: (rows, size), standardised observations.
        intervals: the row of each interval's first step after the overlap, and its length.
    """

    overlap: int
    steps: list[PlayedStep]
    remaining: npt.NDArray[np.int64]
    padding: npt.NDArray[np.int64]
    features: npt.NDArray[np.float32]
    intervals: list[tuple[int, int]]

    @cached_property
    def paddings(self) -> set[int]:
        """How many rows of padding windows begin with."""
        return {int(self.padding[row - self.overlap]) for row, _ in self.intervals}

    def splittable(self) -> list[tuple[int, int, int]]:
        """Return the intervals that have a history: row, length and the earliest split.

        A split is the number of the interval's steps that are history; it is negative inside the
        overlap. Continuations begin with a step, not with padding.
        """
        found = []
        can_be_full = min(self.paddings, default=0) < self.overlap
        for row, length in self.intervals:
            padded = int(self.padding[row - self.overlap])
            earliest = max(padded, 1) - self.overlap
            if padded == self.overlap and not can_be_full:
                earliest = 1  # before it there is never anything but padding
            if earliest < length:
                found.append((row, length, earliest))
        return found


def play_randomly(env: DelayReward, seed: int, generator: np.random.Generator) -> StepTable:
    """Play random actions, with the episodes and intervals that a learner would see."""
    overlap, needs_steps = env.interval_spec.overlap, env.interval_reward.needs_steps
    count = max(_MIN_STEPS, 5 * (env.interval_spec.max_length + overlap))
    episodes: list[list[PlayedStep]] = []
    # Not with the seed itself: the actions would repeat the environment's random numbers.
    env.action_space.seed(int(generator.integers(2**31)))
    options = options_of(env.action_space)
    done = True
    for _ in range(count):
        if done:
            observation, info = env.reset(seed=seed + len(episodes))
            episodes.append([])
        masked = options if "action_mask" in info else ()
        action = sample(env.action_space, flat_mask(info, options) if masked else None)
        # Copied before the step: environments may reuse their buffers.
        features = _flatten(env, observation)
        kept = [np.array(x) for x in ((observation, action) if needs_steps else (0, 0))]
        observation, _, terminated, truncated, info = env.step(action)
        interval_length = info["interval"]["length"] if info["interval"]["end"] else 0
        step = PlayedStep(kept[0], kept[1], info["dense_reward"], features, interval_length)
        episodes[-1].append(step)
        done = terminated or truncated
    _leave(env, seed)
    return _line_up(episodes, overlap)


class RecordedInterval(NamedTuple):
    """The window of an interval, and what was revealed for it."""

    steps: npt.NDArray[np.float32]  # (steps, size): observation, action, and place as the last
    reward: float


def record_intervals(env: AnyEnv, count: int, seed: int) -> tuple[list[RecordedInterval], int]:
    """Play random actions until so many rewards were revealed, or 50,000 steps have passed.

    Args:
        env: an environment with a phase, which is left out of the records: the place in the
            interval stands for it, negative in the overlap.
        count: how many intervals.
        seed: seeds the environment and the actions.

    Returns:
        The intervals, and how many steps were played.
    """
    spec = find_interval_spec(env)
    assert spec is not None
    env.action_space.seed(seed + 2**30)  # (not the environment's seed, as above)
    recorded: list[RecordedInterval] = []
    played: list[npt.NDArray[Any]] = []  # in this episode
    done, start, episodes, total = True, 0, 0, 0
    while len(recorded) < count and total < min(count * spec.max_length, _MOST_STEPS):
        if done:
            observation, _ = env.reset(seed=seed + episodes)
            played, start, episodes = [], 0, episodes + 1
        action = sample(env.action_space, allowed_in(env, observation))
        flat: Any = gym.spaces.flatten(env.action_space, action)
        played.append(np.concatenate([observation[:-1], flat], dtype=np.float32))
        observation, reward, terminated, truncated, info = env.step(action)
        total, done = total + 1, terminated or truncated
        if info["interval"]["revealed"]:
            recorded.append(RecordedInterval(_window(played, start, spec), float(reward)))
        if info["interval"]["end"]:
            start = len(played)
    _leave(env, seed)
    return recorded, total


def _window(
    played: list[npt.NDArray[Any]], start: int, spec: IntervalSpec
) -> npt.NDArray[np.float32]:
    """The steps of an interval that began at ``start`` and of its overlap, with their places."""
    first = max(0, start - spec.overlap)
    place = (np.arange(first, len(played), dtype=np.float32) - start) / spec.max_length
    return np.column_stack([np.stack(played[first:]), place])


def _leave(env: AnyEnv, seed: int) -> None:
    """Leave an environment ready for use."""
    with warnings.catch_warnings():
        # The run stops mid-episode, which wrappers may rightly warn about.
        warnings.simplefilter("ignore")
        env.reset(seed=seed)


def _flatten(env: AnyEnv, observation: Any) -> npt.NDArray[Any]:
    space = env.observation_space
    if not space.is_np_flattenable:
        return np.zeros(1)  # nothing to compare: all pieces fit equally well
    return np.array(gym.spaces.flatten(space, observation), np.float32)


def _line_up(episodes: list[list[PlayedStep]], overlap: int) -> StepTable:
    observation, action, _, vector, _ = episodes[0][0]
    nothing, no_action, zeros = map(np.zeros_like, (observation, action, vector))
    padding = PlayedStep(nothing, no_action, 0.0, zeros, interval_length=0)
    steps = [step for episode in episodes for step in [padding] * overlap + episode]
    sizes = np.array([overlap + len(episode) for episode in episodes])
    position = np.concatenate([np.arange(size) for size in sizes])
    features = np.stack([step.features for step in steps])
    played = features[position >= overlap]
    deviation = played.std(axis=0)
    return StepTable(
        overlap=overlap,
        steps=steps,
        remaining=np.repeat(sizes, sizes) - position,
        padding=np.maximum(overlap - position, 0),
        features=(features - played.mean(axis=0)) / np.where(deviation > 0, deviation, 1),
        intervals=[
            (row + 1 - step.interval_length, step.interval_length)
            for row, step in enumerate(steps)
            if step.interval_length
        ],
    )
