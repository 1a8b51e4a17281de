"""Interval replay: every observation is stored once, windows are gathered by index.

Each lane (one for each environment) is a ring of rows. A step at time t takes one row: its
observation and action side by side, and a few numbers. An episode of T steps takes T + 1 rows; the
last one holds the final observation alone. The row after a step therefore always holds the
observation that followed it.

Rows are counted from the lane's beginning and never reset; row number n lives in slot n mod size.
Steps become available when their interval ends, and an interval is retired as a whole as soon as
any row of its window, overlap included, is overwritten. Both happen in order of time, so the
available steps of a lane are a queue.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from belated.envs.intervals import IntervalSpec

Array = npt.NDArray[Any]
BatchArray = Any
"""A NumPy array on the host, a JAX array once it is inside a jitted function."""


class Step(NamedTuple):
    """One step of an environment, as the learner records it."""

    observation: Array
    action: Array
    reward: float
    next_observation: Array
    terminated: bool
    truncated: bool
    interval_end: bool
    revealed: bool
    dense_reward: float = float("nan")


class IntervalBatch(NamedTuple):
    """Sampled steps with the windows τ_{t_i−c : t_i+n_i} that they belong to.

    B is the batch size, W = c + n_max the window's width (0 if no windows were asked for), D and A
    the sizes of observations (phase included) and actions. Windows have time first: a critic that
    looks at neighbouring steps then works on contiguous memory.
    """

    observation: BatchArray  # (B, D)
    action: BatchArray  # (B, A)
    reward: BatchArray  # (B,) R_t as experienced
    dense_reward: BatchArray  # (B,) the hidden per-step reward, NaN where there is none
    next_observation: BatchArray  # (B, D)
    terminated: BatchArray  # (B,) 1.0 where the episode terminated, so that nothing follows
    position: BatchArray  # (B,) t − t_i
    length: BatchArray  # (B,) n_i
    interval_reward: BatchArray  # (B,) r(τ_i)
    revealed: BatchArray  # (B,) 1.0 where r(τ_i) was revealed
    reward_bounds: BatchArray  # (2,) the lowest and the highest r(τ_i) in the replay
    mean_reward_bounds: BatchArray  # (2,) the same of r(τ_i)/n_i
    window: BatchArray  # (W, B, D + A) from t_i − c on; the phase counts from t_i throughout
    window_mask: BatchArray  # (W, B) 1.0 for steps of the window, 0.0 for padding
    window_end: BatchArray  # (B, D) what was observed after the window's last step


class IntervalReplay:
    """A replay of the last ``capacity`` rows.

    Args:
        capacity: how many rows there are, shared evenly among the lanes.
        observation_size: D, phase included.
        action_size: A.
        spec: the environment's intervals.
        lanes: how many environments write into it.
    """

    def __init__(
        self,
        capacity: int,
        observation_size: int,
        action_size: int,
        spec: IntervalSpec,
        lanes: int = 1,
    ) -> None:
        self.spec = spec
        self.observation_size = observation_size
        size = capacity // lanes
        smallest = spec.overlap + spec.max_length + 2
        if size < smallest:
            raise ValueError(
                f"A replay of {capacity} rows for {lanes} environments cannot hold one window of "
                f"{spec.max_length} steps with an overlap of {spec.overlap}: it needs at least "
                f"{smallest * lanes} rows."
            )
        self._lanes = [
            _Lane(size, observation_size + action_size, observation_size, spec)
            for _ in range(lanes)
        ]
        # What the phase reads in each place of a window: (j − t_i)/n_max, negative in the overlap.
        self._offsets = np.arange(-spec.overlap, spec.max_length)[:, None]  # (W, 1)
        self._window_phase = (self._offsets / spec.max_length).astype(np.float32)

    def __len__(self) -> int:
        """How many steps can be sampled."""
        return sum(lane.available for lane in self._lanes)

    @property
    def nbytes(self) -> int:
        """The memory that the rows take."""
        return sum(array.nbytes for lane in self._lanes for array in lane.arrays().values())

    def add(self, step: Step, lane: int = 0) -> None:
        """Record a step of an environment."""
        self._lanes[lane].add(step)

    def start_episode(self, lane: int = 0) -> None:
        """Start an episode although the last one did not end."""
        self._lanes[lane].start_episode()

    def sample(
        self, generator: np.random.Generator, batch_size: int, *, windows: bool = True
    ) -> IntervalBatch:
        """Draw available steps uniformly, with replacement.

        Args:
            generator: where the randomness comes from.
            batch_size: B.
            windows: whether to gather the windows; the markov critic does not need them.
        """
        picks = generator.integers(len(self), size=batch_size)
        if len(self._lanes) == 1:
            lane = self._lanes[0]
            return self._gather(lane, lane.slots_of(picks), windows)
        ends = np.cumsum([lane.available for lane in self._lanes])
        lanes = np.searchsorted(ends, picks, side="right")
        parts = []
        for index, lane in enumerate(self._lanes):
            own = picks[lanes == index] - (ends[index] - lane.available)
            parts.append(self._gather(lane, lane.slots_of(own), windows))
        return join(parts)

    def in_order(self, batch_size: int) -> Iterator[IntervalBatch]:
        """Yield every available step once, oldest first, lane by lane."""
        for lane in self._lanes:
            for start in range(0, lane.available, batch_size):
                picks = np.arange(start, min(start + batch_size, lane.available))
                yield self._gather(lane, lane.slots_of(picks), windows=True)

    def _gather(self, lane: _Lane, slots: Array, windows: bool) -> IntervalBatch:
        width = self.observation_size
        position, length = lane.position.take(slots), lane.length.take(slots)
        start = slots - position  # the slot of t_i
        last = start + length - 1
        here = _rows_of(lane, slots)
        if windows:
            window = _rows_of(lane, start + self._offsets)  # (W, B, D + A)
            # Padding: places before the episode's start, and places after the interval's end.
            time_of_start = lane.time.take(slots) - position
            mask = (self._offsets >= -time_of_start) & (self._offsets < length)
            window[:, :, width - 1] = self._window_phase
            if not mask.all():
                window *= mask[:, :, None]
            end = _rows_of(lane, last + 1)[:, :width]
        else:
            window = np.zeros((0, len(slots), lane.rows.shape[1]), np.float32)
            mask = np.zeros((0, len(slots)), bool)
            end = np.zeros((0, width), np.float32)
        return IntervalBatch(
            observation=here[:, :width],
            action=here[:, width:],
            reward=lane.reward.take(slots),
            dense_reward=lane.dense_reward.take(slots),
            next_observation=_rows_of(lane, slots + 1)[:, :width],
            terminated=lane.terminated.take(slots).astype(np.float32),
            position=position,
            length=length,
            interval_reward=lane.reward.take(last, mode="wrap"),
            revealed=lane.revealed.take(last, mode="wrap").astype(np.float32),
            reward_bounds=lane.reward_extremes.bounds(),
            mean_reward_bounds=lane.mean_reward_extremes.bounds(),
            window=window,
            window_mask=mask.astype(np.float32),
            window_end=end,
        )

    def state(self) -> dict[str, Array]:
        """Everything there is to save, as arrays by name."""
        return {
            f"{index}.{name}": array
            for index, lane in enumerate(self._lanes)
            for name, array in lane.saved().items()
        }

    def restore(self, state: dict[str, Array]) -> None:
        """Take over what `state` returned."""
        for index, lane in enumerate(self._lanes):
            prefix = f"{index}."
            lane.load(
                {
                    name.removeprefix(prefix): array
                    for name, array in state.items()
                    if name.startswith(prefix)
                }
            )


def _rows_of(lane: _Lane, slots: Array) -> Array:
    """Copy rows; slots are taken modulo the ring's size, which `take` does faster than indexing."""
    return lane.rows.take(slots, axis=0, mode="wrap")


def join(parts: Sequence[IntervalBatch]) -> IntervalBatch:
    """Put batches side by side; bounds become those of all."""
    columns = dict(zip(IntervalBatch._fields, zip(*parts, strict=True), strict=True))
    time_first = ("window", "window_mask")
    joined = {
        name: np.concatenate(arrays, axis=1 if name in time_first else 0)
        for name, arrays in columns.items()
    }
    for name in ("reward_bounds", "mean_reward_bounds"):
        low, high = np.transpose(columns[name])
        joined[name] = np.array([low.min(), high.max()], np.float32)
    return IntervalBatch(**joined)


class _Interval(NamedTuple):
    """An interval that can be sampled, by the numbers of its rows."""

    window: int  # where its window starts, overlap included
    start: int
    length: int


class _Extremes:
    """The smallest and the largest value of a queue, without looking at all of it."""

    def __init__(self) -> None:
        # Values that later ones have not outdone, with their numbers.
        self._low: deque[tuple[int, float]] = deque()
        self._high: deque[tuple[int, float]] = deque()

    def push(self, number: int, value: float) -> None:
        """Append a value; numbers rise."""
        while self._low and self._low[-1][1] >= value:
            self._low.pop()
        while self._high and self._high[-1][1] <= value:
            self._high.pop()
        self._low.append((number, value))
        self._high.append((number, value))

    def retire(self, number: int) -> None:
        """Drop the values up to this number."""
        for values in (self._low, self._high):
            while values and values[0][0] <= number:
                values.popleft()

    def bounds(self) -> Array:
        """The lowest and the highest value; (inf, −inf) if there is none."""
        if not self._low:
            return np.array([np.inf, -np.inf], np.float32)
        return np.array([self._low[0][1], self._high[0][1]], np.float32)


class _Lane:
    """The ring of one environment."""

    def __init__(self, size: int, row_size: int, observation_size: int, spec: IntervalSpec) -> None:
        self.size = size
        self.overlap, self.max_length = spec.overlap, spec.max_length
        self.observation_size = observation_size
        self.rows = np.zeros((size, row_size), np.float32)
        self.reward = np.zeros(size, np.float32)
        self.dense_reward = np.zeros(size, np.float32)
        self.terminated = np.zeros(size, bool)
        self.revealed = np.zeros(size, bool)
        self.position = np.zeros(size, np.int32)  # t − t_i
        self.length = np.zeros(size, np.int32)  # n_i
        self.time = np.zeros(size, np.int32)  # t, counted from the episode's start
        self.queue = np.zeros(size, np.int32)  # slots of available steps, oldest first
        self.head = 0  # the queue's first entry, counted from the beginning
        self.available = 0
        self.written = 0  # the number of the next row
        self.episode_step = 0
        self.interval_step = 0
        self.intervals: deque[_Interval] = deque()
        self.reward_extremes = _Extremes()
        self.mean_reward_extremes = _Extremes()

    def add(self, step: Step) -> None:
        if self.interval_step == self.max_length:
            raise ValueError(
                f"An interval has more than the declared {self.max_length} steps. Raise max_length "
                "in the environment's interval_spec; belated.check_delayed_env tells more."
            )
        slot = self._next_slot()
        self.rows[slot, : self.observation_size] = step.observation
        self.rows[slot, self.observation_size :] = step.action
        self.reward[slot] = step.reward
        self.dense_reward[slot] = step.dense_reward
        self.terminated[slot] = step.terminated
        self.revealed[slot] = step.revealed
        self.position[slot] = self.interval_step
        self.time[slot] = self.episode_step
        self.written += 1
        self.episode_step += 1
        self.interval_step += 1

        episode_end = step.terminated or step.truncated
        if step.interval_end or episode_end:
            # The interval's last step can be sampled from now on: what followed must be there,
            # although the next step, if there is one, will write it once more.
            slot = self._next_slot()
            self.rows[slot, : self.observation_size] = step.next_observation
            self.rows[slot, self.observation_size :] = 0
            self._close_interval()
        if episode_end:
            self.start_episode()

    def start_episode(self) -> None:
        """Start an episode; whatever was left of an open interval is never sampled."""
        if self.episode_step > 0 and self.interval_step == 0:
            self.written += 1  # keep the row of the final observation
        self.episode_step = 0
        self.interval_step = 0

    def _next_slot(self) -> int:
        """Retire what the next row overwrites and return its slot."""
        overwritten = self.written - self.size
        while self.intervals and self.intervals[0].window <= overwritten:
            retired = self.intervals.popleft()
            self.head += retired.length
            self.available -= retired.length
            self.reward_extremes.retire(retired.start)
            self.mean_reward_extremes.retire(retired.start)
        return self.written % self.size

    def _close_interval(self) -> None:
        """Make the steps of the interval just finished available."""
        length, self.interval_step = self.interval_step, 0
        first = self.written - length
        slots = np.arange(first, first + length) % self.size
        self.length[slots] = length
        tail = self.head + self.available
        self.queue[np.arange(tail, tail + length) % self.size] = slots
        self.available += length
        reach = min(self.overlap, self.episode_step - length)
        self._make_available(_Interval(first - reach, first, length))

    def _make_available(self, interval: _Interval) -> None:
        self.intervals.append(interval)
        last = (interval.start + interval.length - 1) % self.size
        if self.revealed[last]:
            reward = float(self.reward[last])
            self.reward_extremes.push(interval.start, reward)
            self.mean_reward_extremes.push(interval.start, reward / interval.length)

    def slots_of(self, picks: Array) -> Array:
        """The slots of the available steps with these places in the queue."""
        slots: Array = self.queue[(self.head + picks) % self.size]
        return slots

    def arrays(self) -> dict[str, Array]:
        return {name: value for name, value in vars(self).items() if isinstance(value, np.ndarray)}

    _COUNTERS = ("head", "available", "written", "episode_step", "interval_step")

    def saved(self) -> dict[str, Array]:
        filled = min(self.written + 1, self.size)  # with the row of what follows an interval
        return {name: array[:filled] for name, array in self.arrays().items()} | {
            "counters": np.array([getattr(self, name) for name in self._COUNTERS], np.int64),
            "intervals": np.array(self.intervals, np.int64).reshape(-1, 3),
        }

    def load(self, saved: dict[str, Array]) -> None:
        for name, array in self.arrays().items():
            array[: len(saved[name])] = saved[name]
        for name, value in zip(self._COUNTERS, saved["counters"], strict=True):
            setattr(self, name, int(value))
        for numbers in saved["intervals"].tolist():
            self._make_available(_Interval(*numbers))
