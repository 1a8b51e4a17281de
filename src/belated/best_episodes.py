"""The best episodes so far, to be sampled beside the replay."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from belated.envs.intervals import IntervalSpec
from belated.replay import Array, IntervalBatch, IntervalReplay, Step, join


class _Episode(NamedTuple):
    score: float  # its revealed return
    steps: list[Step]
    replay: IntervalReplay  # holds just this episode


class BestEpisodes:
    """Keeps the episodes with the highest revealed returns.

    Args:
        count: how many.
        observation_size: D, phase included.
        action_size: A.
        spec: the environment's intervals.
        lanes: how many environments write into it.
    """

    def __init__(
        self, count: int, observation_size: int, action_size: int, spec: IntervalSpec, lanes: int
    ) -> None:
        self.count = count
        self._sizes = (observation_size, action_size)
        self._spec = spec
        self._kept: list[_Episode] = []  # the best first; of equals, the older one
        self._open: list[list[Step]] = [[] for _ in range(lanes)]

    def __len__(self) -> int:
        """How many steps can be sampled."""
        return sum(len(episode.replay) for episode in self._kept)

    def add(self, step: Step, lane: int) -> None:
        """Record a step of an environment."""
        self._open[lane].append(step)
        if step.terminated or step.truncated:
            self._keep(self._open[lane])
            self._open[lane] = []

    def start_episode(self, lane: int) -> None:
        """Start an episode although the last one did not end."""
        self._open[lane] = []

    def _keep(self, steps: list[Step]) -> None:
        score = sum(step.reward for step in steps)
        if len(self._kept) == self.count and score <= self._kept[-1].score:
            return
        rows = len(steps) + self._spec.max_length + self._spec.overlap + 2
        replay = IntervalReplay(rows, *self._sizes, self._spec)
        for step in steps:
            replay.add(step)
        self._kept.append(_Episode(score, steps, replay))
        self._kept.sort(key=lambda episode: -episode.score)
        del self._kept[self.count :]

    def sample(
        self, generator: np.random.Generator, batch_size: int, *, windows: bool
    ) -> IntervalBatch:
        """Draw steps uniformly, with replacement."""
        sizes = np.array([len(episode.replay) for episode in self._kept])
        counts = generator.multinomial(batch_size, sizes / sizes.sum())
        return join(
            [
                episode.replay.sample(generator, count, windows=windows)
                for episode, count in zip(self._kept, counts.tolist(), strict=True)
            ]
        )

    def state(self) -> dict[str, Array]:
        """Everything there is to save, as arrays by name."""
        episodes = [episode.steps for episode in self._kept] + self._open
        return {
            f"best.{index}.{name}": np.array([getattr(step, name) for step in steps])
            for index, steps in enumerate(episodes)
            for name in Step._fields
        }

    def restore(self, state: dict[str, Array]) -> None:
        """Take over what `state` returned."""
        total = sum(name.startswith("best.") for name in state) // len(Step._fields)
        episodes = []
        for index in range(total):
            columns = [state[f"best.{index}.{name}"] for name in Step._fields]
            episodes.append([_step(values) for values in zip(*columns, strict=True)])
        finished = total - len(self._open)
        for steps in episodes[:finished]:
            self._keep(steps)
        self._open = episodes[finished:]


def _step(values: tuple[Any, ...]) -> Step:
    """A step out of saved arrays, with plain numbers where it had them."""
    plain: list[Any] = [value if np.ndim(value) else value.item() for value in values]
    return Step(*plain)
