"""Learning from rollouts: steps are collected, learned from all at once, and forgotten."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np

from belated.experience.base import Learns, Log, Metrics
from belated.experience.rollout import Rollout, empty_rollout, rollout_of, write_step
from belated.experience.step import Array, ProblemShape, Step
from belated.parts import register


class RollsOut(Protocol):
    """What a rollout needs to know of a backbone."""

    @property
    def rollout_steps(self) -> int:
        """How many steps a rollout has at least, shared evenly among the lanes."""


@register
@dataclass(frozen=True)
class RolloutTraining:
    """For backbones that learn from rollouts. How long one is, is a setting of the backbone."""

    learning_starts: ClassVar[int] = 0  # it can only learn from its own actions
    precision: ClassVar[str] = "float32"
    normalize_observations: ClassVar[bool] = False  # (backbones on rollouts do it themselves)
    policy_average: ClassVar[int] = 0

    def experience(
        self, backbone: RollsOut, shape: ProblemShape, lanes: int, rng: np.random.Generator
    ) -> OnPolicy:
        """Make an empty rollout for a backbone; nothing is drawn from it."""
        return OnPolicy(backbone.rollout_steps, shape, lanes)

    def in_order(
        self, backbone: RollsOut, shape: ProblemShape, steps: Sequence[Step]
    ) -> Iterator[Rollout]:
        """Yield an episode as one rollout."""
        yield rollout_of(steps, shape)


class OnPolicy:
    """A rollout, which is learned from as soon as it is full.

    An interval whose reward is not yet known is of no use, so that none is cut: each lane goes on
    until the first interval end at or after its share of the steps. What a lane does while it waits
    for the others, and the rest of an interval that it is in when the next rollout begins, is
    dropped.

    Args:
        steps: how many steps a rollout has at least, shared evenly among the lanes.
        shape: the problem's sizes.
        lanes: how many environments there are.
    """

    def __init__(self, steps: int, shape: ProblemShape, lanes: int) -> None:
        self.shape = shape
        self.share = -(-steps // lanes)
        self.rollout = self._empty(lanes)
        self._count = np.zeros(lanes, np.int64)  # steps in the rollout
        self._open_steps = np.zeros(lanes, np.int64)  # in the interval that has not ended yet
        self._dropping = np.zeros(lanes, bool)  # whether the open interval is left out

    def _empty(self, lanes: int) -> Rollout:
        return empty_rollout(self.share + self.shape.max_length - 1, lanes, self.shape)

    def add(self, step: Step, lane: int) -> None:
        """Record a step, or drop it if its lane is full."""
        if step.position == 0:
            self._dropping[lane] = self._full[lane]
        if not self._dropping[lane]:
            write_step(self.rollout, self._count[lane], lane, step)
            self._count[lane] += 1
        self._open_steps[lane] = 0 if step.interval_end else step.position + 1

    @property
    def _full(self) -> Array:
        """Which lanes have their share and no open interval in the rollout."""
        open_interval = (self._open_steps > 0) & ~self._dropping
        return (self._count >= self.share) & ~open_interval

    def learn(self, learner: Learns, steps: int) -> Metrics:
        """Learn from the rollout if it is full; return the metrics, if any."""
        if self._count.min() < self.share or not self._full.all():
            return {}
        metrics = learner.update(self.rollout)
        # New arrays: the update may still be reading the old ones.
        self.rollout = self._empty(len(self._count))
        self._count[:] = 0
        return metrics

    def start_episode(self, lane: int) -> None:
        """Start an episode although the last one did not end; its open interval is left out."""
        if not self._dropping[lane]:
            kept = self._count[lane] - self._open_steps[lane]
            for array in self.rollout:
                array[kept:, lane] = 0
            if kept > 0:
                self.rollout.episode_end[kept - 1, lane] = 1
            self._count[lane] = kept
        self._open_steps[lane] = 0

    @property
    def logs(self) -> Sequence[Log]:
        """There are none: a rollout is forgotten."""
        return ()

    _COUNTERS = ("_count", "_open_steps", "_dropping")

    def state(self) -> dict[str, Array]:
        """Everything there is to save, as arrays by name."""
        rows = {f"rollout.{name}": array for name, array in self.rollout._asdict().items()}
        return rows | {f"rollout.{name}": getattr(self, name) for name in self._COUNTERS}

    def restore(self, state: dict[str, Array]) -> None:
        """Take over what `state` returned."""
        # Once there was no duration.
        state = {"rollout.duration": np.ones_like(self.rollout.duration)} | state
        for name, array in self.state().items():
            if state[name].shape != array.shape or state[name].dtype != array.dtype:
                raise ValueError(f"{name} has another shape or type than it should.")
        self.rollout = Rollout(*(state[f"rollout.{name}"] for name in Rollout._fields))
        for name in self._COUNTERS:
            setattr(self, name, state[f"rollout.{name}"])
