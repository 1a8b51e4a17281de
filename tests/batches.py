"""Batches of random intervals."""

from __future__ import annotations

from typing import Any

import numpy as np
from episodes import random_episode, shape_of

from belated.experience.batch import IntervalBatch
from belated.experience.replay import IntervalReplay
from belated.experience.step import ProblemShape, Step


def fill(
    replay: IntervalReplay,
    rng: np.random.Generator,
    *,
    episodes: int = 6,
    lane: int = 0,
    **how: Any,
) -> list[list[Step]]:
    """Write random episodes into a replay and return their steps."""
    written = [random_episode(rng, replay.shape.max_length, **how) for _ in range(episodes)]
    for steps in written:
        for step in steps:
            replay.add(step, lane)
    return written


def random_batch(
    max_length: int = 5, overlap: int = 0, size: int = 16, seed: int = 0, **how: Any
) -> tuple[IntervalBatch, ProblemShape]:
    """A batch of random steps, and the shape of the problem it belongs to."""
    rng = np.random.default_rng(seed)
    shape = shape_of(max_length, overlap)
    replay = IntervalReplay(2_000, shape)
    fill(replay, rng, **how)
    return replay.sample(rng, size), shape
