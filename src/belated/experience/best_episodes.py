"""The best episodes so far, to be sampled beside the replay."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import numpy as np

from belated.experience.batch import OPTIONAL, IntervalBatch, Needs, join
from belated.experience.replay import IntervalReplay, replay_of
from belated.experience.step import Array, ProblemShape, Step


class _Kept(NamedTuple):
    score: float  # its revealed return
    steps: list[Step]
    replay: IntervalReplay  # holds just this episode


class BestEpisodes:
    """Keeps the episodes with the highest revealed returns.

    Args:
        count: how many.
        shape: the problem's sizes.
        lanes: how many environments write into it.
        needs: which optional fields batches are to have.
    """

    def __init__(
        self, count: int, shape: ProblemShape, lanes: int, needs: Needs = OPTIONAL
    ) -> None:
        self.count = count
        self._shape = shape
        self._needs = needs
        self._kept: list[_Kept] = []  # the best first; of equals, the older one
        self._open: list[list[Step]] = [[] for _ in range(lanes)]

    def __len__(self) -> int:
        """How many steps can be sampled."""
        return sum(len(episode.replay) for episode in self._kept)

    def add(self, step: Step, lane: int) -> None:
        """Record a step of an environment."""
        if self.count == 0:
            return
        self._open[lane].append(step)
        if step.episode_end:
            self._keep(self._open[lane])
            self._open[lane] = []

    def start_episode(self, lane: int) -> None:
        """Start an episode although the last one did not end."""
        self._open[lane] = []

    def _keep(self, steps: list[Step]) -> None:
        score = sum(step.reward for step in steps)
        if len(self._kept) == self.count and score <= self._kept[-1].score:
            return
        replay = replay_of(steps, self._shape, self._needs)
        self._kept.append(_Kept(score, steps, replay))
        self._kept.sort(key=lambda episode: -episode.score)
        del self._kept[self.count :]

    def sample(self, generator: np.random.Generator, batch_size: int) -> IntervalBatch:
        """Draw steps uniformly, with replacement."""
        sizes = np.array([len(episode.replay) for episode in self._kept])
        counts = generator.multinomial(batch_size, sizes / sizes.sum())
        return join(
            [
                episode.replay.sample(generator, count)
                for episode, count in zip(self._kept, counts.tolist(), strict=True)
            ]
        )

    def state(self) -> dict[str, Array]:
        """Everything there is to save, as arrays by name."""
        if self.count == 0:
            return {}
        episodes = [episode.steps for episode in self._kept] + self._open
        return {
            f"best.{index}.{name}": np.array([getattr(step, name) for step in steps])
            for index, steps in enumerate(episodes)
            for name in Step._fields
        }

    def restore(self, state: dict[str, Array]) -> None:
        """Take over what `state` returned."""
        if self.count == 0:
            return
        total = sum(bool(re.fullmatch(r"best\.\d+\.reward", name)) for name in state)
        episodes = []
        for index in range(total):
            first = state[f"best.{index}.reward"]
            columns = [
                state.get(
                    f"best.{index}.{name}", np.ones(len(first))
                )  # (once there was no duration)
                for name in Step._fields
            ]
            episodes.append([_step(values) for values in zip(*columns, strict=True)])
        finished = total - len(self._open)
        for steps in episodes[:finished]:
            self._keep(steps)
        self._open = episodes[finished:]


def _step(values: tuple[Any, ...]) -> Step:
    """A step out of saved arrays, with plain numbers where it had them."""
    plain: list[Any] = [value if np.ndim(value) else value.item() for value in values]
    return Step(*plain)
