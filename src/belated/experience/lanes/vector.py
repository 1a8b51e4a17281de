"""Gymnasium's vector environments: its own, whose lanes can be seeded, and any other."""

from __future__ import annotations

import contextlib
import multiprocessing
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv, VectorEnv

from belated.envs.rules import IntervalRules, refuse
from belated.experience.choices import random_actions
from belated.experience.lanes.base import (
    SeededLanes,
    closed,
    episode_seed,
    refuse_time_limit,
    rules_for,
)
from belated.experience.spaces import Spaces
from belated.experience.step import Array, Floats, Step


def can_be_seeded(envs: VectorEnv[Any, Any, Any]) -> bool:
    """Whether single lanes can be reset with seeds, and nobody is misled by that.

    Wrappers are: they take the reset of a lane for one of all. And an asynchronous one without
    shared memory resets a lane once more if it does that by itself in the next step.
    """
    if isinstance(envs, AsyncVectorEnv):
        return envs.shared_memory or _autoreset_mode(envs) is not AutoresetMode.NEXT_STEP
    return isinstance(envs, SyncVectorEnv)


class VectorLanes(SeededLanes):
    """One of Gymnasium's own vector environments, in any autoreset mode.

    Whatever it does at the end of an episode, the lane is then reset once more, with a seed.
    """

    def __init__(self, envs: VectorEnv[Any, Any, Any], seed: int) -> None:
        super().__init__(Spaces.of(envs), envs.num_envs, seed)
        self.envs = envs
        self._mode = _autoreset_mode(envs)
        self._patience: float | None = None

    def wait_at_most(self, seconds: float | None) -> None:
        """Raise an error if a step takes longer; environments must be in processes of their own."""
        if not isinstance(self.envs, AsyncVectorEnv):
            super().wait_at_most(seconds)
        self._patience = seconds

    def _start_episodes(self, fresh: npt.NDArray[np.bool_]) -> None:
        seeds: list[int | None] = [self._seed(lane) for lane in range(len(fresh))]
        how: dict[str, Any] = {} if fresh.all() else {"options": {"reset_mask": fresh}}
        observation: Any
        if self._patience is not None and isinstance(self.envs, AsyncVectorEnv):
            self.envs.reset_async(seed=seeds, **how)
            with self._ended_if_late():
                observation, _ = self.envs.reset_wait(timeout=self._patience)
        else:
            observation, _ = self.envs.reset(seed=seeds, **how)  # type: ignore[arg-type]
        for lane in np.flatnonzero(fresh).tolist():
            self._show(lane, observation[lane])

    @contextlib.contextmanager
    def _ended_if_late(self) -> Iterator[None]:
        """End environments that hang: their answers would come in the wrong place later."""
        try:
            yield
        except multiprocessing.TimeoutError as error:
            self.envs.close(terminate=True)
            error.add_note("The environments were ended: make new ones to go on.")
            raise

    def _step(self, actions: Floats) -> list[tuple[int, Step]]:
        return self._step_some(actions, np.ones(len(actions), bool))

    def _step_some(self, actions: Floats, counted: npt.NDArray[np.bool_]) -> list[tuple[int, Step]]:
        """Step every lane; what those do that are not counted is forgotten."""
        outcome: Any
        if self._patience is not None and isinstance(self.envs, AsyncVectorEnv):
            self.envs.step_async(self._spaces.to_env(actions))
            with self._ended_if_late():
                outcome = self.envs.step_wait(timeout=self._patience)
        else:
            outcome = self.envs.step(self._spaces.to_env(actions))
        lanes = np.flatnonzero(counted).tolist()
        steps = [
            (lane, _transition(lane, self._mode, self.observation, actions, outcome, rules))
            for lane, rules in ((lane, self._rules[lane]) for lane in lanes)
        ]
        self.observation[:] = outcome[0]
        for lane, step in steps:
            self._taken[lane].append(actions[lane])
            self._episodes[lane] += step.episode_end
        ended = outcome[2] | outcome[3]
        if ended.any():
            self._start_episodes(ended)
        return steps

    def _play(self, actions: list[Array]) -> None:
        """Start each lane's episode so late that all are where they were after the same step."""
        lengths = np.array([len(own) for own in actions])
        rng = np.random.default_rng(0)
        self._start_episodes(np.ones(len(actions), bool))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of intervals that are left in the middle
            for time in range(lengths.max()):
                place = (time - (lengths.max() - lengths)).tolist()  # in each lane's episode
                fresh = np.array(place) == 0
                if time > 0 and fresh.any():
                    self._start_episodes(fresh)
                anything = random_actions(rng, self.observation, self.shape)  # that is allowed
                lanes = zip(actions, place, anything, strict=True)
                these = np.stack([own[at] if at >= 0 else other for own, at, other in lanes])
                self._step_some(these, np.array(place) >= 0)
            late = lengths == 0
            if late.any():
                self._start_episodes(late)


class UnseededLanes:
    """Any other vector environment: it resets its lanes by itself, and gives them no seeds."""

    def __init__(self, envs: VectorEnv[Any, Any, Any], seed: int) -> None:
        self.envs = envs
        self.seed = seed
        self.mode = _autoreset_mode(envs)
        self._spaces = Spaces.of(envs)
        self.shape = self._spaces.shape
        self.observation = np.zeros((envs.num_envs, self.shape.observation_size), np.float32)
        self._episodes = [0] * envs.num_envs
        self._rules = [rules_for(self.shape) for _ in range(envs.num_envs)]
        self._ended = np.zeros(envs.num_envs, bool)  # with the last step
        self._started = False

    def start(self) -> None:
        """Start the first episodes, unless they were started already."""
        if not self._started:
            observation, _ = self.envs.reset(seed=self._seeds())  # type: ignore[arg-type]
            self._show(observation, range(self.envs.num_envs))
            self._started = True

    def give_up(self) -> None:
        """Leave the open episodes; `start` begins new ones."""
        self._episodes = [count + 1 for count in self._episodes]
        self._ended[:] = False
        self._started = False

    def rebuild(self) -> None:
        """It cannot be made again."""
        raise ValueError('on_env_error="rebuild" is for single environments.')

    def wait_at_most(self, seconds: float | None) -> None:
        """It cannot be stopped."""
        refuse_time_limit(seconds)

    def _seeds(self) -> list[int]:
        return [episode_seed(self.seed, lane, count) for lane, count in enumerate(self._episodes)]

    def _show(self, observation: Floats, fresh: Any) -> None:
        """Take over what the environments show; ``fresh`` lanes have just started an episode."""
        for lane in fresh:
            self._rules[lane].episode = self._episodes[lane]
            refuse(self._rules[lane].reset(observation[lane]))
        self.observation = observation

    def step(self, actions: Floats) -> list[tuple[int, Step]]:
        """Step the vector environment; the step that only resets a lane is no transition."""
        before = self.observation.copy()
        outcome = self.envs.step(self._spaces.to_env(actions))
        after, _, terminated, truncated, _ = outcome
        ended = terminated | truncated
        lanes = [
            lane
            for lane in range(self.envs.num_envs)
            if not (self.mode is AutoresetMode.NEXT_STEP and self._ended[lane])
        ]
        steps = [
            (lane, _transition(lane, self.mode, before, actions, outcome, self._rules[lane]))
            for lane in lanes
        ]
        for lane in lanes:
            self._episodes[lane] += int(ended[lane])
        if self.mode is AutoresetMode.DISABLED and ended.any():
            after, _ = self.envs.reset(
                seed=self._seeds(),  # type: ignore[arg-type]
                options={"reset_mask": ended},
            )
        late = self.mode is AutoresetMode.NEXT_STEP  # then an episode starts a step later
        self._show(after, np.flatnonzero(self._ended if late else ended))
        self._ended = ended
        return steps

    def state(self) -> dict[str, Array]:
        """How many episodes there were; the open ones cannot be brought back."""
        if not self._started:
            return closed(self._episodes)
        return {"lanes.episodes": np.array(self._episodes)}

    def restore(self, state: dict[str, Array]) -> bool:
        """Go on with the episodes after the open ones."""
        if "lanes.episodes" not in state:
            return True
        self._episodes = state["lanes.episodes"].tolist()
        self.give_up()
        return False


def _autoreset_mode(envs: VectorEnv[Any, Any, Any]) -> AutoresetMode:
    return AutoresetMode(envs.metadata.get("autoreset_mode", AutoresetMode.NEXT_STEP))


def _transition(
    lane: int,
    mode: AutoresetMode,
    before: Floats,
    actions: Floats,
    outcome: Any,
    rules: IntervalRules,
) -> Step:
    """The step of one lane, out of a vector environment's arrays."""
    after, rewards, terminated, truncated, infos = outcome
    ended = bool(terminated[lane] or truncated[lane])
    following = after[lane]
    if mode is AutoresetMode.SAME_STEP and ended:
        following, infos = infos["final_obs"][lane], infos["final_info"]
    info = _info_of(infos, lane)
    over = bool(terminated[lane]), bool(truncated[lane])
    refuse(rules.step(following, rewards[lane], *over, info))
    own = (following.copy(), rewards[lane], *over, info)
    return Step.of(before[lane].copy(), actions[lane], own)


def _info_of(infos: dict[str, Any], lane: int) -> dict[str, Any]:
    """What one lane says of its step, out of a vector environment's arrays."""
    interval = infos.get("interval", {})
    info: dict[str, Any] = {
        "interval": {key: values[lane] for key, values in interval.items() if key[0] != "_"}
    }
    for name in ("dense_reward", "duration"):
        if name in infos and infos.get(f"_{name}", np.ones(lane + 1, bool))[lane]:
            info[name] = infos[name][lane]
    return info
