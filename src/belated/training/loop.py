"""The loop of learning: one step in each environment, then the updates that are due."""

from __future__ import annotations

from typing import Any

import numpy as np

from belated.experience.base import Experience, Metrics
from belated.experience.choices import random_actions
from belated.experience.lanes import Lanes
from belated.experience.step import Array, Floats, Step
from belated.methods import Method
from belated.training.learner import Learner, LearningError


class Loop:
    """Environments, what is learned from them, and how actions are chosen.

    Args:
        method: how to learn.
        learner: what learns.
        lanes: the environments.
        experience: where their steps go.
        exploration: draws random actions and the noise of the policy's.
    """

    def __init__(
        self,
        method: Method,
        learner: Learner,
        lanes: Lanes,
        experience: Experience,
        exploration: np.random.Generator,
    ) -> None:
        self.lanes = lanes
        self.experience = experience
        self.metrics: Metrics = {}
        """Those of the last update."""
        self.in_update = False
        """Whether an update is under way, or was when an error came."""
        self.env_failed = False
        """Whether the last step was not taken because of an error of an environment."""
        self.episodes = EpisodeStatistics(len(lanes.observation))
        self._learner = learner
        self._exploration = exploration
        self._random_steps = method.training.learning_starts
        self._needs_dense = "dense_reward" in method.backbone.needs

    def step(self, steps: int) -> int:
        """Take one step in each environment and learn; return how many steps there are now.

        Args:
            steps: how many were taken before.
        """
        taken = self._take_steps(steps)
        self.in_update = True
        due = 0
        for lane, step in taken:
            self.experience.add(step, lane)
            self.episodes.add(step, lane)
            steps += 1
            due += steps > self._random_steps
        self.metrics = self.experience.learn(self._learner, due) or self.metrics
        self.in_update = False
        return steps

    def _take_steps(self, steps: int) -> list[tuple[int, Step]]:
        """Step every environment; after an error all is as it was, but for the environments."""
        drawn = self._exploration.bit_generator.state
        try:
            taken = self.lanes.step(self._actions(steps))
            if self._needs_dense and any(np.isnan(step.dense_reward) for _, step in taken):
                raise ValueError(
                    'This method learns from info["dense_reward"], which the environment does not '
                    "give. Choose a method that learns from the revealed reward."
                )
        except BaseException as error:
            self._exploration.bit_generator.state = drawn
            self.env_failed = True
            error.add_note(f"This was step {steps + 1} of the run.")
            raise
        return taken

    def _actions(self, steps: int) -> Floats:
        observation = self.lanes.observation
        if steps < self._random_steps:
            return random_actions(self._exploration, observation, self.lanes.shape)
        size = (len(observation), self.lanes.shape.action_size)
        noise = self._exploration.standard_normal(size, np.float32)
        actions = self._learner.act(observation, noise)
        if not np.isfinite(actions).all():
            raise LearningError(
                "The policy's actions are NaN or infinite. Look at td_loss and value_largest; a "
                "smaller learning_rate or smaller rewards may help."
            )
        return actions

    def rebuild(self) -> None:
        """Make the environments anew after one of them failed, and start new episodes."""
        self.lanes.rebuild()
        self._forget_open_episodes()
        self.env_failed = False
        self.lanes.start()

    def start(self) -> None:
        """Start the first episodes or, after an error in the middle of a step, new ones."""
        if self.in_update or self.env_failed:
            self.lanes.give_up()
            self._forget_open_episodes()
            self.in_update = self.env_failed = False
        self.lanes.start()

    def _forget_open_episodes(self) -> None:
        for lane in range(len(self.lanes.observation)):
            self.experience.start_episode(lane)
            self.episodes.start_episode(lane)

    def state(self) -> dict[str, Array]:
        """Everything there is to save, as arrays by name."""
        return self.experience.state() | self.lanes.state() | self.episodes.state()

    def restore(self, state: dict[str, Array]) -> None:
        """Take over what `state` returned, but for the environments."""
        self.experience.restore(state)
        self.episodes.restore(state)

    def restore_environments(self, state: dict[str, Array]) -> None:
        """Bring the environments to where they were.

        Raises:
            RepeatError: if that leads somewhere else.
        """
        if not self.lanes.restore(state):
            self._forget_open_episodes()


class EpisodeStatistics:
    """Returns and lengths of training episodes since they were last asked for."""

    def __init__(self, lanes: int) -> None:
        self.largest_reward = 0.0
        """The largest size of a revealed reward so far."""
        self.shortest_step = 1.0
        """The shortest duration of a step so far, if one took less than a unit of time."""
        self._open = np.zeros((lanes, 3))  # revealed return, dense return, length
        self._finished: list[Any] = []  # rows like those

    def add(self, step: Step, lane: int) -> None:
        """Count a step."""
        row = self._open[lane]
        self.largest_reward = max(self.largest_reward, abs(step.reward))
        self.shortest_step = min(self.shortest_step, step.duration)
        row[0] += step.reward
        row[1] += step.dense_reward
        row[2] += 1
        if step.episode_end:
            self._finished.append(row.copy())
            row[:] = 0

    def start_episode(self, lane: int) -> None:
        """Forget the open episode."""
        self._open[lane] = 0

    def summary(self) -> dict[str, float]:
        """The means over the episodes that ended since the last call, if any did."""
        if not self._finished:
            return {}
        revealed, dense, length = np.mean(self._finished, axis=0)
        count, self._finished = len(self._finished), []
        return {
            "train_return_mean": revealed if np.isnan(dense) else dense,
            "train_revealed_return_mean": revealed,
            "train_length_mean": length,
            "train_episodes": count,
        }

    def state(self) -> dict[str, Array]:
        """Everything there is to save, as arrays by name."""
        finished = np.array(self._finished).reshape(-1, 3)
        largest = np.array(self.largest_reward)
        return {
            "episodes.open": self._open,
            "episodes.finished": finished,
            "episodes.largest_reward": largest,
        }

    def restore(self, state: dict[str, Array]) -> None:
        """Take over what `state` returned."""
        if state["episodes.open"].shape != self._open.shape:
            raise ValueError("the open episodes are those of another number of environments.")
        self._open = state["episodes.open"]
        self.largest_reward = float(state["episodes.largest_reward"])
        self._finished = list(state["episodes.finished"].reshape(-1, 3))
