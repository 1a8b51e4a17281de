"""The steps of one environment in a ring of rows.

A step at time t takes one row: its observation and action side by side, and a few numbers. An
episode of T steps takes T + 1 rows; the last one holds the final observation alone. The row after a
step therefore always holds the observation that followed it.

Rows are counted from the beginning and never reset; row number n lives in slot n mod size. Steps
become available when their interval ends, and an interval is retired as a whole as soon as any row
of its window, overlap included, is overwritten. Both happen in order of time, so the available
steps are a queue.

A row changes no more once its interval has ended: it is settled. To save a ring is to append the
rows that were settled since the last time, and to write the few others anew.
"""

from __future__ import annotations

from collections import deque
from typing import Any, NamedTuple

import numpy as np

from belated.experience.batch import Needs
from belated.experience.step import Array, ProblemShape, Step


class Interval(NamedTuple):
    """An interval that can be sampled, by the numbers of its rows."""

    window: int  # where its window starts, overlap included
    start: int
    length: int


class Extremes:
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


class Ring:
    """The ring of one environment.

    Args:
        size: how many rows it has.
        shape: the problem's sizes.
        needs: whether to keep the bounds of the intervals' rewards, of their means, or neither.
    """

    def __init__(self, size: int, shape: ProblemShape, needs: Needs) -> None:
        self.size = size
        self.shape = shape
        self.rows = np.zeros((size, shape.step_size), np.float32)
        self.reward = np.zeros(size, np.float32)
        self.dense_reward = np.zeros(size, np.float32)
        self.duration = np.zeros(size, np.float32)
        self.terminated = np.zeros(size, bool)
        self.revealed = np.zeros(size, bool)
        self.position = np.zeros(size, np.int32)  # t − t_i
        self.length = np.zeros(size, np.int32)  # n_i
        self.time = np.zeros(size, np.int32)  # t, counted from the episode's start
        self.queue = np.zeros(size, np.int32)  # slots of available steps, oldest first
        self.head = 0  # the queue's first entry, counted from the beginning
        self.available = 0
        self.written = 0  # the number of the next row
        self.settled = 0  # the number of the first row that may still change
        self.put_back = 0  # how many rows came from a file
        self.timed = False  # whether a step ever took another time than 1
        self.episode_step = 0
        self.intervals: deque[Interval] = deque()
        self.extremes: dict[str, Extremes] = {
            name: Extremes() for name in ("reward_bounds", "mean_reward_bounds") if name in needs
        }

    def add(self, step: Step) -> None:
        """Record a step."""
        size, slot = self.shape.observation_size, self._next_slot()
        self.rows[slot, :size] = step.observation
        self.rows[slot, size:] = step.action
        self.reward[slot] = step.reward
        self.dense_reward[slot] = step.dense_reward
        self.duration[slot] = step.duration
        self.timed |= step.duration != 1
        self.terminated[slot] = step.terminated
        self.revealed[slot] = step.revealed
        self.position[slot] = step.position
        self.length[slot] = 0  # not known yet
        self.time[slot] = self.episode_step
        self.written += 1
        self.episode_step += 1
        if step.interval_end:
            # The interval's last step can be sampled from now on: what followed must be there,
            # although the next step, if there is one, will write it once more.
            slot = self._next_slot()
            self.rows[slot, :size] = step.next_observation
            self.rows[slot, size:] = 0
            self.length[slot] = 0
            self._close_interval(step.position + 1)
        if step.episode_end:
            self.start_episode()

    def start_episode(self) -> None:
        """Start an episode; whatever was left of an open interval is never sampled."""
        if self.episode_step > 0:
            slot = self._next_slot()
            self.length[slot] = 0
            self.duration[slot] = 1
            self.written += 1  # keep the row of the final observation
        self.settled = self.written
        self.episode_step = 0

    def _next_slot(self) -> int:
        """Retire what the next row overwrites and return its slot."""
        overwritten = self.written - self.size
        while self.intervals and self.intervals[0].window <= overwritten:
            retired = self.intervals.popleft()
            self.head += retired.length
            self.available -= retired.length
            for extremes in self.extremes.values():
                extremes.retire(retired.start)
        return self.written % self.size

    def _close_interval(self, length: int) -> None:
        """Make the steps of the interval just finished available."""
        first = self.written - length
        slots = np.arange(first, first + length) % self.size
        self.length[slots] = length
        tail = self.head + self.available
        self.queue[np.arange(tail, tail + length) % self.size] = slots
        self.available += length
        self.settled = self.written
        reach = min(self.shape.overlap, self.episode_step - length)
        self._make_available(Interval(first - reach, first, length))

    def _make_available(self, interval: Interval) -> None:
        self.intervals.append(interval)
        last = (interval.start + interval.length - 1) % self.size
        if self.revealed[last]:
            reward = float(self.reward[last])
            for name, extremes in self.extremes.items():
                value = reward if name == "reward_bounds" else reward / interval.length
                extremes.push(interval.start, value)

    def slots_of(self, picks: Array) -> Array:
        """The slots of the available steps with these places in the queue."""
        slots: Array = self.queue[(self.head + picks) % self.size]
        return slots

    def rows_of(self, slots: Array) -> Array:
        """Copy rows; slots are taken modulo the size, which `take` does faster than indexing."""
        return self.rows.take(slots, axis=0, mode="wrap")

    @property
    def nbytes(self) -> int:
        """The memory that it takes."""
        return sum(value.nbytes for value in vars(self).values() if isinstance(value, np.ndarray))

    @property
    def record_type(self) -> np.dtype[Any]:
        """What is kept of a row, in a file."""
        return np.dtype(
            [(name, getattr(self, name).dtype, getattr(self, name).shape[1:]) for name in _COLUMNS]
        )

    @property
    def oldest(self) -> int:
        """The number of the oldest row that may still be there."""
        return max(0, self.written - self.size)

    def records(self, first: int, end: int) -> Array:
        """Copy the rows with these numbers."""
        slots = np.arange(first, end) % self.size
        records = np.empty(len(slots), self.record_type)
        for name in _COLUMNS:
            records[name] = getattr(self, name)[slots]
        return records

    def put(self, first: int, records: Array) -> None:
        """Write rows to where they were."""
        slots = np.arange(first, first + len(records)) % self.size
        for name in _COLUMNS:
            getattr(self, name)[slots] = records[name]
        self.put_back += len(records)

    def state(self) -> dict[str, Array]:
        """What is to be saved beside the settled rows."""
        # The row of what follows an interval is there before it is counted.
        rest = self.records(self.settled, self.written + 1)
        return {
            "counters": np.array([getattr(self, name) for name in _COUNTERS], np.int64),
            "rest": rest.view(np.uint8).reshape(len(rest), -1),
            **({"duration": self.duration} if self.timed else {}),
        }

    def restore(self, state: dict[str, Array]) -> None:
        """Take over what `state` returned; the settled rows were put back already."""
        there = self.written + self.put_back
        for name, value in zip(_COUNTERS, state["counters"], strict=True):
            setattr(self, name, int(value))
        unsettled = self.written + 1 - self.settled
        in_range = 0 <= self.available <= self.size and 0 < unsettled <= self.size
        if not in_range or min(self.head, self.settled, self.episode_step) < 0:
            raise ValueError("a replay's counters contradict each other.")
        if self.settled - self.oldest > there:  # (before memory is taken for them)
            raise ValueError("rows of a replay are missing.")
        rest = np.ascontiguousarray(state["rest"]).view(self.record_type).reshape(-1)
        if len(rest) != unsettled:
            raise ValueError(f"a replay has {len(rest)} open rows instead of {unsettled}.")
        self.put(self.settled, rest)
        self.timed = "duration" in state
        if self.timed:
            duration = state["duration"]
            if duration.shape != self.duration.shape or duration.dtype != self.duration.dtype:
                raise ValueError("the durations of a replay's steps are those of another one.")
            self.duration = duration
        else:
            self.duration[: self.written] = 1
        self._find_intervals()

    def _find_intervals(self) -> None:
        """Line up the intervals that can be sampled: the last ones, as many as there were."""
        numbers = np.arange(self.oldest, self.settled)
        slots = numbers % self.size
        starts = numbers[(self.position[slots] == 0) & (self.length[slots] > 0)]
        lengths = self.length[starts % self.size].astype(np.int64)
        missing = self.available - np.cumsum(lengths[::-1])[::-1]  # before each of them
        starts, lengths = starts[missing >= 0], lengths[missing >= 0]
        if lengths.sum() != self.available or (lengths > self.shape.max_length).any():
            raise ValueError("rows of a replay are missing.")
        steps = np.concatenate([np.arange(0), *map(np.arange, starts, starts + lengths)])
        self.queue[(self.head + np.arange(len(steps))) % self.size] = steps % self.size
        reach = np.minimum(self.shape.overlap, self.time[starts % self.size])
        for interval in zip(starts - reach, starts, lengths, strict=True):
            self._make_available(Interval(*map(int, interval)))


_COLUMNS = (
    "rows", "reward", "dense_reward", "terminated", "revealed", "position", "length", "time",
)  # fmt: skip
_COUNTERS = ("head", "available", "written", "settled", "episode_step")
