"""A list of single environments."""

from __future__ import annotations

import contextlib

import numpy as np
import numpy.typing as npt

from belated.envs.copies import copies_of
from belated.envs.intervals import AnyEnv
from belated.envs.rules import refuse
from belated.experience.lanes.base import SeededLanes
from belated.experience.spaces import Spaces
from belated.experience.step import Array, Floats, Step


class EnvLanes(SeededLanes):
    """A list of single environments."""

    def __init__(self, envs: list[AnyEnv], seed: int) -> None:
        super().__init__(Spaces.of(envs[0]), len(envs), seed)
        self.envs = envs

    def _start_episodes(self, fresh: npt.NDArray[np.bool_]) -> None:
        for lane in np.flatnonzero(fresh).tolist():
            observation, _ = self.envs[lane].reset(seed=self._seed(lane))
            self._show(lane, observation)

    def _step(self, actions: Floats) -> list[tuple[int, Step]]:
        return [(lane, self._step_one(lane, action)) for lane, action in enumerate(actions)]

    def _step_one(self, lane: int, action: Floats) -> Step:
        outcome = self.envs[lane].step(self._spaces.to_env(action))
        observation, reward, terminated, truncated, info = outcome
        refuse(self._rules[lane].step(observation, reward, terminated, truncated, info))
        step = Step.of(self.observation[lane].copy(), action, outcome)
        self.observation[lane] = observation
        self._taken[lane].append(action)
        if step.episode_end:
            self._episodes[lane] += 1
            self._start_episodes(np.arange(len(self.envs)) == lane)
        return step

    def rebuild(self) -> None:
        """Make the environments anew and leave the open episodes."""
        fresh = copies_of(self.envs[0], len(self.envs))
        for env in self.envs:
            with contextlib.suppress(Exception):  # it is broken
                env.close()
        self.envs[:] = fresh
        self.give_up()

    def _play(self, actions: list[Array]) -> None:
        self._start_episodes(np.ones(len(self.envs), bool))
        for lane, own in enumerate(actions):
            for action in own:
                self._step_one(lane, action)
