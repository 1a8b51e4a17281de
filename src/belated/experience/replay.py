"""Interval replay: every observation is stored once, windows are gathered by index."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from belated.experience.batch import OPTIONAL, IntervalBatch, Needs, join
from belated.experience.ring import Ring
from belated.experience.step import Array, ProblemShape, Step


class IntervalReplay:
    """A replay of the last ``capacity`` rows.

    Args:
        capacity: how many rows there are, shared evenly among the lanes.
        shape: the problem's sizes.
        lanes: how many environments write into it.
        needs: which optional fields batches are to have.
    """

    def __init__(
        self, capacity: int, shape: ProblemShape, lanes: int = 1, needs: Needs = OPTIONAL
    ) -> None:
        if not needs <= OPTIONAL:
            unknown, known = (", ".join(sorted(names)) for names in (needs - OPTIONAL, OPTIONAL))
            raise ValueError(f"A batch cannot have {unknown}; a part may ask for {known}.")
        self.shape = shape
        self.needs = needs
        size = capacity // lanes
        smallest = shape.window_size + 2
        if size < smallest:
            raise ValueError(
                f"A replay of {capacity} rows for {lanes} environments cannot hold one window of "
                f"{shape.max_length} steps with an overlap of {shape.overlap}: it needs at least "
                f"{smallest * lanes} rows."
            )
        self.rings = [Ring(size, shape, needs) for _ in range(lanes)]
        """One for each lane."""
        self._offsets = np.arange(-shape.overlap, shape.max_length)[:, None]  # (W, 1)
        # What the phase reads in each place of a window: negative in the overlap, 0 if it is off.
        self._window_phase = shape.phases(-shape.overlap, shape.max_length)

    def __len__(self) -> int:
        """How many steps can be sampled."""
        return sum(ring.available for ring in self.rings)

    @property
    def nbytes(self) -> int:
        """The memory that the rows take."""
        return sum(ring.nbytes for ring in self.rings)

    def add(self, step: Step, lane: int = 0) -> None:
        """Record a step of an environment."""
        self.rings[lane].add(step)

    def start_episode(self, lane: int = 0) -> None:
        """Start an episode although the last one did not end."""
        self.rings[lane].start_episode()

    def sample(self, generator: np.random.Generator, batch_size: int) -> IntervalBatch:
        """Draw available steps uniformly, with replacement."""
        picks = generator.integers(len(self), size=batch_size)
        if len(self.rings) == 1:
            ring = self.rings[0]
            return self._gather(ring, ring.slots_of(picks))
        ends = np.cumsum([ring.available for ring in self.rings])
        lanes = np.searchsorted(ends, picks, side="right")
        parts = []
        for lane, ring in enumerate(self.rings):
            own = picks[lanes == lane] - (ends[lane] - ring.available)
            parts.append(self._gather(ring, ring.slots_of(own)))
        return join(parts)

    def in_order(self, batch_size: int) -> Iterator[IntervalBatch]:
        """Yield every available step once, oldest first, lane by lane."""
        for ring in self.rings:
            for start in range(0, ring.available, batch_size):
                picks = np.arange(start, min(start + batch_size, ring.available))
                yield self._gather(ring, ring.slots_of(picks))

    def _gather(self, ring: Ring, slots: Array) -> IntervalBatch:
        position, length = ring.position.take(slots), ring.length.take(slots)
        last = slots - position + length - 1  # the slot of the interval's last step
        observation, action = self.shape.split(ring.rows_of(slots))
        next_observation, _ = self.shape.split(ring.rows_of(slots + 1))
        return IntervalBatch(
            observation=observation,
            action=action,
            reward=ring.reward.take(slots),
            next_observation=next_observation,
            terminated=ring.terminated.take(slots).astype(np.float32),
            position=position,
            length=length,
            interval_reward=ring.reward.take(last, mode="wrap"),
            revealed=ring.revealed.take(last, mode="wrap").astype(np.float32),
            duration=ring.duration.take(slots),
            **self._optional(ring, slots, position, length),
        )

    def _optional(
        self, ring: Ring, slots: Array, position: Array, length: Array
    ) -> dict[str, Array]:
        """The fields that a part asked for."""
        found: dict[str, Array] = {
            name: extremes.bounds() for name, extremes in ring.extremes.items()
        }
        start = slots - position  # the slot of t_i
        if "window" in self.needs:
            window = ring.rows_of(start + self._offsets)  # (W, B, D + A)
            # Padding: places before the episode's start, and places after the interval's end.
            time_of_start = ring.time.take(slots) - position
            mask = (self._offsets >= -time_of_start) & (self._offsets < length)
            window[:, :, self.shape.phase_place] = self._window_phase
            if not mask.all():
                window *= mask[:, :, None]
            found |= {"window": window, "window_mask": mask.astype(np.float32)}
        if "window_end" in self.needs:
            found["window_end"] = self.shape.split(ring.rows_of(start + length))[0]
        if "dense_reward" in self.needs:
            found["dense_reward"] = ring.dense_reward.take(slots)
        return found

    def state(self) -> dict[str, Array]:
        """What is to be saved beside the rings' settled rows, as arrays by name."""
        return {
            f"{lane}.{name}": array
            for lane, ring in enumerate(self.rings)
            for name, array in ring.state().items()
        }

    def restore(self, state: dict[str, Array]) -> None:
        """Take over what `state` returned."""
        for lane, ring in enumerate(self.rings):
            prefix = f"{lane}."
            names = [name for name in state if name.startswith(prefix)]
            ring.restore({name.removeprefix(prefix): state[name] for name in names})


def replay_of(steps: Sequence[Step], shape: ProblemShape, needs: Needs) -> IntervalReplay:
    """Make a replay that holds just these steps."""
    replay = IntervalReplay(len(steps) + shape.window_size + 2, shape, needs=needs)
    for step in steps:
        replay.add(step)
    return replay
