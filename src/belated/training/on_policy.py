"""Learning from rollouts: steps are collected, learned from all at once, and forgotten."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from belated.backbones import PPO
from belated.critics import ProblemShape
from belated.methods import Method
from belated.replay import Array, Step
from belated.rollout import Rollout, empty_rollout, write_step
from belated.training.learner import Learner


class OnPolicy:
    """A rollout, which is learned from as soon as it is full.

    An interval whose reward is not yet known is of no use, so that none is cut: each lane goes on
    until the first interval end at or after its share of the steps. What a lane does while it waits
    for the others, and the rest of an interval that it is in when the next rollout begins, is
    dropped.

    Args:
        method: says how many steps a rollout has at least, shared evenly among the lanes.
        shape: the problem's sizes.
        lanes: how many environments there are.
    """

    def __init__(self, method: Method, shape: ProblemShape, lanes: int) -> None:
        assert isinstance(method.backbone, PPO)
        self.shape = shape
        self.share = -(-method.backbone.rollout_steps // lanes)
        self.rollout = self._empty(lanes)
        self._count = np.zeros(lanes, np.int64)  # steps in the rollout
        self._interval_step = np.zeros(lanes, np.int64)  # steps since the last interval end
        self._dropping = np.zeros(lanes, bool)  # whether the open interval is left out

    def _empty(self, lanes: int) -> Rollout:
        length = self.share + self.shape.max_length - 1
        return empty_rollout(length, lanes, self.shape.observation_size, self.shape.action_size)

    def add(self, step: Step, lane: int) -> None:
        """Record a step, or drop it if its lane is full."""
        if self._interval_step[lane] == self.shape.max_length:
            raise ValueError(
                f"An interval has more than the declared {self.shape.max_length} steps. Raise "
                "max_length in the environment's interval_spec; belated.check_delayed_env tells "
                "more."
            )
        if self._interval_step[lane] == 0:
            self._dropping[lane] = self._full[lane]
        self._interval_step[lane] += 1
        if not self._dropping[lane]:
            write_step(self.rollout, self._count[lane], lane, step)
            self._count[lane] += 1
        if step.interval_end or step.terminated or step.truncated:
            self._interval_step[lane] = 0

    @property
    def _full(self) -> Array:
        """Which lanes have their share and no open interval in the rollout."""
        open_interval = (self._interval_step > 0) & ~self._dropping
        return (self._count >= self.share) & ~open_interval

    def learn(self, learner: Learner, steps: int) -> dict[str, jax.Array]:
        """Learn from the rollout if it is full; return the metrics, if any."""
        if not self._full.all():
            return {}
        metrics = learner.update(self.rollout)
        # New arrays: the update may still be reading the old ones.
        self.rollout = self._empty(len(self._count))
        self._count[:] = 0
        return metrics

    def start_episode(self, lane: int) -> None:
        """Start an episode although the last one did not end; its open interval is left out."""
        if not self._dropping[lane]:
            kept = self._count[lane] - self._interval_step[lane]
            for array in self.rollout:
                array[kept:, lane] = 0
            if kept > 0:
                self.rollout.episode_end[kept - 1, lane] = 1
            self._count[lane] = kept
        self._interval_step[lane] = 0

    def counters(self) -> dict[str, Any]:
        """The small part of what there is to save."""
        return {}

    def arrays(self) -> dict[str, Array]:
        """The large part of what there is to save."""
        rows = {f"rollout.{name}": array for name, array in self.rollout._asdict().items()}
        return rows | {f"lanes.{name}": getattr(self, f"_{name}") for name in self._LANES}

    _LANES = ("count", "interval_step", "dropping")

    def restore(self, counters: dict[str, Any], arrays: dict[str, Array] | None) -> None:
        """Take over what was saved."""
        if arrays is None:
            return
        self.rollout = Rollout(*(arrays[f"rollout.{name}"] for name in Rollout._fields))
        for name in self._LANES:
            setattr(self, f"_{name}", arrays[f"lanes.{name}"])
