"""Random episodes whose every number is known."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from belated.experience.step import ProblemShape, Step

OBSERVATION, ACTION = 4, 2


def shape_of(max_length: int, overlap: int = 0) -> ProblemShape:
    return ProblemShape(OBSERVATION, ACTION, max_length, overlap)


def planned_lengths(rng: np.random.Generator, total: int, max_length: int) -> Iterator[int]:
    """Lengths of random intervals; the last one may be longer than what is left of the episode."""
    while total > 0:
        length = int(rng.integers(1, max_length + 1))
        yield length
        total -= length


def random_episode(
    rng: np.random.Generator,
    max_length: int,
    *,
    reveal_tails: bool = True,
    terminate: bool | None = None,
) -> list[Step]:
    """An episode of random numbers; its last interval may be cut, and is then perhaps a tail."""
    total = int(rng.integers(1, 4 * max_length))
    observations = rng.normal(size=(total + 1, OBSERVATION)).astype(np.float32)
    terminated = bool(rng.integers(2)) if terminate is None else terminate
    steps: list[Step] = []
    for planned in planned_lengths(rng, total, max_length):
        length = min(planned, total - len(steps))
        for position in range(length):
            time, end = len(steps), position == length - 1
            last = time == total - 1
            observations[time, -1] = position / max_length
            observations[time + 1, -1] = 0 if end else (position + 1) / max_length
            revealed = end and (length == planned or reveal_tails)
            steps.append(
                Step(
                    observation=observations[time],
                    action=rng.normal(size=ACTION).astype(np.float32),
                    reward=float(rng.normal()) if revealed else 0.0,
                    next_observation=observations[time + 1],
                    terminated=last and terminated,
                    truncated=last and not terminated,
                    position=position,
                    interval_end=end,
                    revealed=revealed,
                    dense_reward=float(rng.normal()),
                )
            )
    return steps
