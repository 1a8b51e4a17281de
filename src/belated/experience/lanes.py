"""Environments side by side: whatever kind they are, one step gives one list of transitions."""

from __future__ import annotations

import contextlib
import copy
import multiprocessing
import warnings
from abc import abstractmethod
from collections.abc import Iterator
from typing import Any, Protocol

import gymnasium as gym
import numpy as np
import numpy.typing as npt
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv, VectorEnv

from belated.envs.intervals import AnyEnv, IntervalSpec
from belated.envs.layers import has_time_limit_outside_intervals
from belated.envs.rules import IntervalRules, RuleError, refuse
from belated.experience.spaces import Spaces
from belated.experience.step import Array, Floats, ProblemShape, Step


def episode_seed(*numbers: int) -> int:
    """A seed for an episode, from a run's seed and whatever tells the episode from others."""
    return int(np.random.SeedSequence(numbers).generate_state(1)[0])


class RepeatError(ValueError):
    """An open episode could not be played again as it was."""


class Lanes(Protocol):
    """Environments that are stepped together; lane i is the i-th."""

    shape: ProblemShape
    observation: Floats
    """What each environment shows now: (lanes, D)."""

    def start(self) -> None:
        """Start the first episodes, unless they were started already."""

    def give_up(self) -> None:
        """Leave the open episodes; `start` begins new ones."""

    def rebuild(self) -> None:
        """Make the environments anew and leave the open episodes.

        Raises:
            ValueError: if they cannot be made again.
        """

    def wait_at_most(self, seconds: float | None) -> None:
        """Raise an error if a step takes longer.

        Raises:
            ValueError: if it could not be stopped.
        """

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
    return VectorLanes(env, seed) if _can_be_seeded(env) else UnseededLanes(env, seed)


def _can_be_seeded(envs: VectorEnv[Any, Any, Any]) -> bool:
    """Whether single lanes can be reset with seeds, and nobody is misled by that.

    Wrappers are: they take the reset of a lane for one of all. And an asynchronous one without
    shared memory resets a lane once more if it does that by itself in the next step.
    """
    if isinstance(envs, AsyncVectorEnv):
        return envs.shared_memory or _autoreset_mode(envs) is not AutoresetMode.NEXT_STEP
    return isinstance(envs, SyncVectorEnv)


class SeededLanes:
    """Lanes whose episodes are all seeded, from (run seed, lane, episode number).

    With the actions of the open episodes that makes a run resumable at any step, without
    serialising an environment.
    """

    def __init__(self, spaces: Spaces, lanes: int, seed: int) -> None:
        self.seed = seed
        self.shape = spaces.shape
        self.observation = np.zeros((lanes, self.shape.observation_size), np.float32)
        self._spaces = spaces
        self._episodes = [0] * lanes  # finished so far
        self._taken: list[list[Floats]] = [[] for _ in range(lanes)]  # in the open episodes
        self._rules = [_rules_for(self.shape) for _ in range(lanes)]
        self._started = False

    def start(self) -> None:
        """Start the first episodes, unless they were started already."""
        if not self._started:
            self._start_episodes(np.ones(len(self._episodes), bool))
            self._started = True

    def give_up(self) -> None:
        """Leave the open episodes; `start` begins new ones."""
        self._episodes = [count + 1 for count in self._episodes]
        self._started = False

    def _seed(self, lane: int) -> int:
        """The seed of a lane's open episode."""
        return episode_seed(self.seed, lane, self._episodes[lane])

    @abstractmethod
    def _start_episodes(self, fresh: npt.NDArray[np.bool_]) -> None:
        """Reset some lanes, each with its seed, and `_show` what they observe."""

    @abstractmethod
    def _step(self, actions: Floats) -> list[tuple[int, Step]]:
        """Step every lane; those whose episode ended start the next one."""

    def _show(self, lane: int, observation: Any) -> None:
        """Take over what a lane shows at the start of an episode."""
        self._rules[lane].episode = self._episodes[lane]
        refuse(self._rules[lane].reset(observation))
        self.observation[lane] = observation
        self._taken[lane] = []

    def step(self, actions: Floats) -> list[tuple[int, Step]]:
        """Take actions in [−1, 1], shape (lanes, A), and return (lane, step) of each transition.

        After an error the lanes are as they were before, although the environments are not.
        """
        observation, episodes = self.observation.copy(), self._episodes.copy()
        taken = [(own, len(own)) for own in self._taken]
        try:
            return self._step(actions)
        except BaseException as error:
            self.observation, self._episodes = observation, episodes
            self._taken = [own[:count] for own, count in taken]
            self._explain(error)
            raise

    def _explain(self, error: BaseException) -> None:
        """Say how to see an error again."""
        for lane, (count, own) in enumerate(zip(self._episodes, self._taken, strict=True)):
            error.add_note(
                f"Environment {lane} was in episode {count}, after {len(own)} steps: reset(seed="
                f"{self._seed(lane)}) and the same actions lead there, if it repeats itself."
            )

    def state(self) -> dict[str, Array]:
        """The seeds and actions of the open episodes, and where they led."""
        if not self._started:
            return _closed(self._episodes)
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
            RepeatError: if that leads somewhere else: then the environment is not deterministic.
        """
        if "lanes.episodes" not in state:
            return True  # nothing was open
        lanes = len(self._episodes)
        if state["lanes.episodes"].shape != (lanes,) or state["lanes.episodes"].dtype.kind != "i":
            raise RepeatError("The open episodes are those of other environments.")
        self._episodes = state["lanes.episodes"].tolist()
        if "lanes.observation" not in state:  # none was open, or they are not seeded
            self.give_up()
            return False
        nothing = np.zeros((0, self.shape.action_size), np.float32)
        taken = [state.get(f"lanes.taken.{lane}", nothing) for lane in range(lanes)]
        if any(own.ndim != 2 or own.shape[1] != self.shape.action_size for own in taken):
            raise RepeatError("The actions of the open episodes are those of other environments.")
        self._started = True
        try:
            self._play(taken)
        except RuleError as error:
            raise RepeatError(f"{_ANOTHER} {error}") from error
        if not np.array_equal(self.observation, state["lanes.observation"]):
            raise RepeatError(_ANOTHER)
        return True

    @abstractmethod
    def _play(self, actions: list[Array]) -> None:
        """Start the open episodes again and take their actions, (n, A) for each lane."""

    def rebuild(self) -> None:
        """Make the environments anew and leave the open episodes.

        Raises:
            ValueError: if they cannot be made again.
        """
        raise ValueError('on_env_error="rebuild" is for single environments.')

    def wait_at_most(self, seconds: float | None) -> None:
        """Raise an error if a step takes longer.

        Raises:
            ValueError: if it could not be stopped.
        """
        refuse_time_limit(seconds)


_ANOTHER = (
    "Playing the open episode again led to another observation: the environment does not repeat "
    "itself for the same seed and actions, or it is another one. belated.check_delayed_env says "
    "more."
)


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
        refuse(self._rules[lane].step(observation, reward, terminated or truncated, info))
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
        for lane, step in steps:
            self.observation[lane] = outcome[0][lane]
            self._taken[lane].append(actions[lane])
            self._episodes[lane] += step.episode_end
        ended = outcome[2] | outcome[3]
        if ended.any():
            self._start_episodes(ended)
        return steps

    def _play(self, actions: list[Array]) -> None:
        """Start each lane's episode so late that all are where they were after the same step."""
        lengths = np.array([len(own) for own in actions])
        nothing = np.zeros(self.shape.action_size, np.float32)
        self._start_episodes(np.ones(len(actions), bool))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of intervals that are left in the middle
            for time in range(lengths.max()):
                place = (time - (lengths.max() - lengths)).tolist()  # in each lane's episode
                fresh = np.array(place) == 0
                if time > 0 and fresh.any():
                    self._start_episodes(fresh)
                pairs = zip(actions, place, strict=True)
                these = np.stack([own[at] if at >= 0 else nothing for own, at in pairs])
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
        self._show(after, np.flatnonzero(ended))
        self._ended = ended
        return steps

    def state(self) -> dict[str, Array]:
        """How many episodes there were; the open ones cannot be brought back."""
        if not self._started:
            return _closed(self._episodes)
        return {"lanes.episodes": np.array(self._episodes)}

    def restore(self, state: dict[str, Array]) -> bool:
        """Go on with the episodes after the open ones."""
        if "lanes.episodes" not in state:
            return True
        self._episodes = state["lanes.episodes"].tolist()
        self.give_up()
        return False


def _closed(episodes: list[int]) -> dict[str, Array]:
    """What there is to save when no episode is open: restoring leaves one more behind."""
    return {"lanes.episodes": np.array(episodes) - 1} if any(episodes) else {}


def refuse_time_limit(seconds: float | None) -> None:
    """Refuse a limit for environments that could not be stopped.

    Raises:
        ValueError: if there is one.
    """
    if seconds is not None:
        raise ValueError(
            "step_timeout needs a gymnasium.vector.AsyncVectorEnv: what hangs in this process "
            "cannot be stopped from it."
        )


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
    refuse(rules.step(following, rewards[lane], ended, info))
    own = (following.copy(), rewards[lane], terminated[lane], truncated[lane], info)
    return Step.of(before[lane].copy(), actions[lane], own)


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
