"""Batches of intervals whose every number is known."""

from __future__ import annotations

from typing import Any

import numpy as np

from belated.critics import ProblemShape
from belated.envs.intervals import IntervalSpec
from belated.replay import IntervalBatch, IntervalReplay, Step

OBSERVATION, ACTION = 4, 2


def fill(
    replay: IntervalReplay,
    rng: np.random.Generator,
    *,
    episodes: int = 6,
    lane: int = 0,
    reveal_tails: bool = True,
    terminate: bool | None = None,
) -> list[list[Step]]:
    """Write random episodes into a replay and return their steps."""
    spec, size = replay.spec, replay.observation_size
    written = []
    for _ in range(episodes):
        length = int(rng.integers(1, 4 * spec.max_length))
        observations = rng.normal(size=(length + 1, size)).astype(np.float32)
        terminated = bool(rng.integers(2)) if terminate is None else terminate
        steps, position, planned = [], 0, int(rng.integers(1, spec.max_length + 1))
        observations[0, -1] = 0
        for time in range(length):
            last = time == length - 1
            end = position + 1 == planned or last
            observations[time + 1, -1] = 0 if end else (position + 1) / spec.max_length
            revealed = end and (position + 1 == planned or reveal_tails)
            step = Step(
                observation=observations[time],
                action=rng.uniform(-1, 1, size=ACTION).astype(np.float32),
                reward=float(rng.normal()) if revealed else 0.0,
                next_observation=observations[time + 1],
                terminated=last and terminated,
                truncated=last and not terminated,
                interval_end=end,
                revealed=revealed,
                dense_reward=float(rng.normal()),
            )
            replay.add(step, lane)
            steps.append(step)
            position = 0 if end else position + 1
            if end:
                planned = int(rng.integers(1, spec.max_length + 1))
        written.append(steps)
    return written


def random_batch(
    max_length: int = 5, overlap: int = 0, size: int = 16, seed: int = 0, **how: Any
) -> tuple[IntervalBatch, ProblemShape]:
    """A batch of random steps, and the shape of the problem it belongs to."""
    rng = np.random.default_rng(seed)
    replay = IntervalReplay(2_000, OBSERVATION, ACTION, IntervalSpec(max_length, overlap))
    fill(replay, rng, **how)
    shape = ProblemShape(OBSERVATION, ACTION, max_length, overlap)
    return replay.sample(rng, size), shape
