"""Environments side by side: whatever kind they are, one step gives one list of transitions."""

from __future__ import annotations

import copy
from typing import Any, Protocol

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv

from belated.envs.intervals import AnyEnv, IntervalSpec
from belated.envs.layers import has_time_limit_outside_intervals
from belated.envs.rules import IntervalRules, refuse
from belated.experience.spaces import Spaces
from belated.experience.step import Array, Floats, ProblemShape, Step


def episode_seed(*numbers: int) -> int:
    """A seed for an episode, from a run's seed and whatever tells the episode from others."""
    return int(np.random.SeedSequence(numbers).generate_state(1)[0])


class Lanes(Protocol):
    """Environments that are stepped together; lane i is the i-th."""

    shape: ProblemShape
    observation: Floats
    """What each environment shows now: (lanes, D)."""

    def start(self) -> None:
        """Start the first episodes, unless they were started already."""

    def give_up(self) -> None:
        """Leave the open episodes; `start` begins new ones."""

    def step(self, actions: Floats) -> list[tuple[int, Step]]:
        """Take actions in [−1, 1], shape (lanes, A), and return (lane, step) of each transition."""

    def state(self) -> dict[str, Array]:
        """Everything there is to save, as arrays by name."""

    def restore(self, state: dict[str, Array]) -> bool:
        """Take over what `state` returned; return whether the open episodes go on."""


def lanes_of(env: AnyEnv | VectorEnv[Any, Any, Any], num_envs: int, seed: int) -> Lanes:
    """Make lanes out of one environment and copies of it, or out of a vector environment."""
    if not isinstance(env, VectorEnv):
        return EnvLanes([env, *copies_of(env, num_envs - 1)], seed)
    if num_envs != 1:
        raise ValueError("num_envs is for single environments; a vector has its own.")
    return VectorLanes(env, seed)


class EnvLanes:
    """A list of single environments.

    Every episode is seeded from (run seed, lane, episode number). With the actions of the open
    episodes that makes a run resumable at any step, without serialising an environment.
    """

    def __init__(self, envs: list[AnyEnv], seed: int) -> None:
        self.envs = envs
        self.seed = seed
        self._spaces = Spaces.of(envs[0])
        self.shape = self._spaces.shape
        self.observation = np.zeros((len(envs), self.shape.observation_size), np.float32)
        self._episodes = [0] * len(envs)  # finished so far
        self._taken: list[list[Floats]] = [[] for _ in envs]  # actions in the open episodes
        self._rules = [_rules_for(self.shape) for _ in envs]
        self._started = False

    def start(self) -> None:
        """Start the first episodes, unless they were started already."""
        if not self._started:
            for lane in range(len(self.envs)):
                self._start_episode(lane)
            self._started = True

    def give_up(self) -> None:
        """Leave the open episodes; `start` begins new ones."""
        self._episodes = [count + 1 for count in self._episodes]
        self._started = False

    def _start_episode(self, lane: int) -> None:
        seed = episode_seed(self.seed, lane, self._episodes[lane])
        observation, _ = self.envs[lane].reset(seed=seed)
        self._rules[lane].episode = self._episodes[lane]
        refuse(self._rules[lane].reset(observation))
        self.observation[lane] = observation
        self._taken[lane] = []

    def step(self, actions: Floats) -> list[tuple[int, Step]]:
        """Step every environment; those whose episode ended start the next one.

        After an error the lanes are as they were before, although the environments are not.
        """
        observation, episodes = self.observation.copy(), self._episodes.copy()
        taken = [(actions, len(actions)) for actions in self._taken]
        lane = 0
        try:
            steps = []
            for lane, action in enumerate(actions):
                steps.append((lane, self._step(lane, action)))
        except BaseException as error:
            self.observation, self._episodes = observation, episodes
            self._taken = [actions[:count] for actions, count in taken]
            self._explain(error, lane)
            raise
        return steps

    def _explain(self, error: BaseException, lane: int) -> None:
        """Say how to see an error again."""
        seed = episode_seed(self.seed, lane, self._episodes[lane])
        error.add_note(
            f"It came in environment {lane}, episode {self._episodes[lane]}, after "
            f"{len(self._taken[lane])} steps. reset(seed={seed}) and the same actions bring it "
            "back, if the environment repeats itself."
        )

    def _step(self, lane: int, action: Floats) -> Step:
        outcome = self.envs[lane].step(self._spaces.to_env(action))
        observation, reward, terminated, truncated, info = outcome
        refuse(self._rules[lane].step(observation, reward, terminated or truncated, info))
        step = Step.of(self.observation[lane].copy(), action, outcome)
        self.observation[lane] = observation
        self._taken[lane].append(action)
        if step.episode_end:
            self._episodes[lane] += 1
            self._start_episode(lane)
        return step

    def state(self) -> dict[str, Array]:
        """The seeds and actions of the open episodes, and where they led."""
        if not self._started:
            return {}
        nothing = np.zeros((0, self.shape.action_size), np.float32)
        taken = {
            f"lanes.taken.{lane}": np.stack(actions) if actions else nothing
            for lane, actions in enumerate(self._taken)
        }
        episodes = np.array(self._episodes)
        return {"lanes.episodes": episodes, "lanes.observation": self.observation} | taken

    def restore(self, state: dict[str, Array]) -> bool:
        """Bring the environments to where they were by playing the open episodes again.

        Raises:
            RuntimeError: if that leads somewhere else: then the environment is not deterministic.
        """
        if "lanes.episodes" not in state:
            return True  # nothing was open
        self._episodes = state["lanes.episodes"].tolist()
        if "lanes.observation" not in state:  # of a vector environment: that cannot be brought back
            self.give_up()
            return False
        self._started = True
        for lane in range(len(self.envs)):
            self._start_episode(lane)
            for action in state[f"lanes.taken.{lane}"]:
                self._step(lane, action)
        if not np.array_equal(self.observation, state["lanes.observation"]):
            raise RuntimeError(
                "Playing the open episode again led to another observation: the environment does "
                "not repeat itself for the same seed and actions, or it is another one. "
                "belated.check_delayed_env says more."
            )
        return True


class VectorLanes:
    """A Gymnasium vector environment, in any autoreset mode.

    Where the vector environment resets by itself it gives no seed; only the first episodes are
    seeded then.
    """

    def __init__(self, envs: VectorEnv[Any, Any, Any], seed: int) -> None:
        self.envs = envs
        self.seed = seed
        self.mode = AutoresetMode(envs.metadata.get("autoreset_mode", AutoresetMode.NEXT_STEP))
        self._spaces = Spaces.of(envs)
        self.shape = self._spaces.shape
        self.observation = np.zeros((envs.num_envs, self.shape.observation_size), np.float32)
        self._episodes = [0] * envs.num_envs
        self._rules = [_rules_for(self.shape) for _ in range(envs.num_envs)]
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
        steps = [(lane, self._transition(lane, before, actions, outcome)) for lane in lanes]
        for lane in lanes:
            self._episodes[lane] += int(ended[lane])
        if self.mode is AutoresetMode.DISABLED and ended.any():
            after, _ = self.envs.reset(
                seed=self._seeds(),  # type: ignore[arg-type]
                options={"reset_mask": ended},
            )
        self._show(after, np.flatnonzero(ended))
        self._ended = ended
        return steps

    def _transition(self, lane: int, before: Floats, actions: Floats, outcome: Any) -> Step:
        """The step of one lane, out of a vector environment's arrays."""
        after, rewards, terminated, truncated, infos = outcome
        ended = bool(terminated[lane] or truncated[lane])
        following = after[lane]
        if self.mode is AutoresetMode.SAME_STEP and ended:
            following, infos = infos["final_obs"][lane], infos["final_info"]
        info = _info_of(infos, lane)
        refuse(self._rules[lane].step(following, rewards[lane], ended, info))
        own = (following, rewards[lane], terminated[lane], truncated[lane], info)
        return Step.of(before[lane], actions[lane], own)

    def state(self) -> dict[str, Array]:
        """How many episodes there were; the open ones cannot be brought back."""
        return {"lanes.episodes": np.array(self._episodes)} if self._started else {}

    def restore(self, state: dict[str, Array]) -> bool:
        """Go on with the episodes after the open ones."""
        if "lanes.episodes" not in state:
            return True
        self._episodes = state["lanes.episodes"].tolist()
        self.give_up()
        return False


def _rules_for(shape: ProblemShape) -> IntervalRules:
    spec = IntervalSpec(shape.max_length, shape.overlap, shape.phase)
    return IntervalRules(spec, shape.observation_size)


def _info_of(infos: dict[str, Any], lane: int) -> dict[str, Any]:
    """The interval and the dense reward of one lane, out of a vector environment's arrays."""
    interval = infos.get("interval", {})
    info: dict[str, Any] = {
        "interval": {key: values[lane] for key, values in interval.items() if key[0] != "_"}
    }
    if "dense_reward" in infos:
        info["dense_reward"] = infos["dense_reward"][lane]
    return info


def copies_of(env: AnyEnv, count: int) -> list[AnyEnv]:
    """Make independent environments like ``env``.

    Raises:
        ValueError: if the environment cannot be made again.
    """
    if count == 0:
        return []
    try:
        if env.spec is None:
            raise ValueError("it has no spec")
        return [_like(env) for _ in range(count)]
    except Exception as error:
        raise ValueError(
            f"Cannot make another {env} ({error}). Make it with gym.make from a registered id, or "
            "pass a second environment where one is needed."
        ) from error


def _like(env: AnyEnv) -> AnyEnv:
    assert env.spec is not None
    made = gym.make(env.spec)
    if has_time_limit_outside_intervals(made) and not has_time_limit_outside_intervals(env):
        # Its entry point puts on a time limit, inside the intervals; Gymnasium adds one more.
        spec = copy.deepcopy(env.spec)
        spec.max_episode_steps = None
        made = gym.make(spec)
    return made
