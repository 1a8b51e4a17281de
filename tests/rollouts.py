"""Rollouts whose every number is known."""

from __future__ import annotations

from typing import Any

import numpy as np

from belated.replay import Step
from belated.rollout import Rollout, empty_rollout, write_step

OBSERVATION, ACTION = 4, 2


def random_lane(
    rng: np.random.Generator, steps: int, max_length: int, *, reveal_tails: bool = True
) -> list[Step]:
    """At least this many steps of random episodes, to the end of an interval."""
    lane: list[Step] = []
    while len(lane) < steps:
        length = int(rng.integers(1, 4 * max_length))
        observations = rng.normal(size=(length + 1, OBSERVATION)).astype(np.float32)
        terminated = bool(rng.integers(2))
        position, planned = 0, int(rng.integers(1, max_length + 1))
        for time in range(length):
            last = time == length - 1
            end = position + 1 == planned or last
            observations[time, -1] = position / max_length
            revealed = end and (position + 1 == planned or reveal_tails)
            lane.append(
                Step(
                    observation=observations[time],
                    action=rng.normal(size=ACTION).astype(np.float32),
                    reward=float(rng.normal()) if revealed else 0.0,
                    next_observation=observations[time + 1],
                    terminated=last and terminated,
                    truncated=last and not terminated,
                    interval_end=end,
                    revealed=revealed,
                    dense_reward=float(rng.normal()),
                )
            )
            position = 0 if end else position + 1
            if end:
                planned = int(rng.integers(1, max_length + 1))
                if len(lane) >= steps:
                    return lane
    return lane


def random_rollout(
    seed: int = 0, lanes: int = 2, steps: int = 30, max_length: int = 5, **how: Any
) -> Rollout:
    """A rollout of random lanes, padded to one common length."""
    rng = np.random.default_rng(seed)
    rollout = empty_rollout(steps + max_length - 1, lanes, OBSERVATION, ACTION)
    for lane in range(lanes):
        for time, step in enumerate(random_lane(rng, steps, max_length, **how)):
            write_step(rollout, time, lane, step)
    return rollout


def intervals_of(rollout: Rollout) -> list[tuple[int, int, int]]:
    """(lane, first, last) of every interval."""
    found = []
    for lane in range(rollout.mask.shape[1]):
        first = 0
        for time in np.flatnonzero(rollout.interval_end[:, lane]):
            found.append((lane, first, int(time)))
            first = int(time) + 1
    return found
