"""Rollouts of random intervals."""

from __future__ import annotations

from typing import Any

import numpy as np
from episodes import random_episode, shape_of

from belated.experience.rollout import Rollout, empty_rollout, write_step
from belated.experience.step import Step


def random_lane(rng: np.random.Generator, steps: int, max_length: int, **how: Any) -> list[Step]:
    """At least this many steps of random episodes, to the end of an interval."""
    lane: list[Step] = []
    while len(lane) < steps:
        lane += random_episode(rng, max_length, **how)
    end = next(time for time in range(steps - 1, len(lane)) if lane[time].interval_end)
    return lane[: end + 1]


def random_rollout(
    seed: int = 0, lanes: int = 2, steps: int = 30, max_length: int = 5, **how: Any
) -> Rollout:
    """A rollout of random lanes, padded to one common length."""
    rng = np.random.default_rng(seed)
    rollout = empty_rollout(steps + max_length - 1, lanes, shape_of(max_length))
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
