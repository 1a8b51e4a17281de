"""Learning from a replay: every step brings updates on batches of earlier ones."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from belated.best_episodes import BestEpisodes
from belated.critics import ProblemShape
from belated.envs.intervals import IntervalSpec
from belated.methods import Method
from belated.replay import Array, IntervalBatch, IntervalReplay, Step, join
from belated.training.learner import Learner


class OffPolicy:
    """A replay, and how often it is learned from.

    Args:
        method: says how often, and what a batch must hold.
        shape: the problem's sizes.
        lanes: how many environments there are.
        rng: samples the batches.
    """

    def __init__(
        self, method: Method, shape: ProblemShape, lanes: int, rng: np.random.Generator
    ) -> None:
        self.method = method
        self.replay = replay_for(method.replay_size, shape, lanes)
        self.best = best_episodes_for(method.best_episodes, shape, lanes)
        self._rng = rng
        self._windows = method.critic.uses_windows or method.credit.uses_windows
        self._updates_due = 0

    def add(self, step: Step, lane: int) -> None:
        """Record a step."""
        self.replay.add(step, lane)
        if self.best is not None:
            self.best.add(step, lane)

    def learn(self, learner: Learner, steps: int) -> dict[str, jax.Array]:
        """Run the updates that some more steps bring; return the last one's metrics, if any."""
        method = self.method
        self._updates_due += steps * method.updates_per_step
        metrics: dict[str, jax.Array] = {}
        while (
            self._updates_due >= method.updates_per_dispatch
            and len(self.replay) >= method.batch_size
        ):
            batches = [self.sample() for _ in range(method.updates_per_dispatch)]
            metrics = learner.update_many(batches)
            self._updates_due -= method.updates_per_dispatch
        return metrics

    def sample(self) -> IntervalBatch:
        """Draw a batch, with windows if the method looks at them.

        If the method keeps its best episodes, half of the batch comes from those.
        """
        size, windows = self.method.batch_size, self._windows
        if self.best is None or len(self.best) == 0:
            return self.replay.sample(self._rng, size, windows=windows)
        return join(
            [
                self.replay.sample(self._rng, size - size // 2, windows=windows),
                self.best.sample(self._rng, size // 2, windows=windows),
            ]
        )

    def start_episode(self, lane: int) -> None:
        """Start an episode although the last one did not end."""
        self.replay.start_episode(lane)
        if self.best is not None:
            self.best.start_episode(lane)

    def counters(self) -> dict[str, int]:
        """The small part of what there is to save."""
        return {"updates_due": self._updates_due}

    def arrays(self) -> dict[str, Array]:
        """The large part of what there is to save."""
        return self.replay.state() | ({} if self.best is None else self.best.state())

    def restore(self, counters: dict[str, Any], arrays: dict[str, Array] | None) -> None:
        """Take over what was saved."""
        self._updates_due = counters.get("updates_due", 0)
        if arrays is not None:
            self.replay.restore(arrays)
            if self.best is not None:
                self.best.restore(arrays)


def best_episodes_for(count: int, shape: ProblemShape, lanes: int) -> BestEpisodes | None:
    """Make a place for the best episodes, if there are to be any."""
    if count == 0:
        return None
    spec = IntervalSpec(shape.max_length, shape.overlap)
    return BestEpisodes(count, shape.observation_size, shape.action_size, spec, lanes)


def replay_for(size: int, shape: ProblemShape, lanes: int = 1) -> IntervalReplay:
    """Make a replay of ``size`` rows for a problem."""
    spec = IntervalSpec(shape.max_length, shape.overlap)
    return IntervalReplay(size, shape.observation_size, shape.action_size, spec, lanes)
