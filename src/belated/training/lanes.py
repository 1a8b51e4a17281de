"""Environments side by side: whatever kind they are, one step gives one list of transitions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

import gymnasium as gym
import numpy as np
import numpy.typing as npt
from gymnasium.vector import AutoresetMode, VectorEnv

from belated.envs.intervals import AnyEnv, IntervalCounter
from belated.replay import Step

Floats = npt.NDArray[np.float32]


class ActionScale(NamedTuple):
    """Maps the policy's actions in [−1, 1] to the environment's bounds and back."""

    low: Floats
    high: Floats

    def to_env(self, action: Floats) -> Floats:
        """From [−1, 1] to the environment's bounds; what is outside is clipped."""
        scaled = self.low + (action + 1) / 2 * (self.high - self.low)
        return np.clip(scaled, self.low, self.high)


def episode_seed(*numbers: int) -> int:
    """A seed for an episode, from a run's seed and whatever tells the episode from others."""
    return int(np.random.SeedSequence(numbers).generate_state(1)[0])


class _Bookkeeping:
    """Counts the intervals of each lane beside the environment.

    If both disagree, somebody else has stepped or reset the environment, and windows would mix
    what does not belong together.
    """

    def __init__(self, lanes: int) -> None:
        self._counters = [IntervalCounter() for _ in range(lanes)]

    def check(self, lane: int, interval: Mapping[str, Any], episode_end: bool) -> None:
        counter = self._counters[lane]
        expected = counter.count(end=bool(interval["end"]) or episode_end, revealed=False)
        if episode_end:
            counter.reset()
        if (interval["step"], interval["index"]) != (expected["step"], expected["index"]):
            raise RuntimeError(
                f"The environment is at step {interval['step']} of interval {interval['index']}, "
                f"but the agent left it at step {expected['step']} of interval "
                f"{expected['index']}. Was it stepped or reset elsewhere between two calls of "
                "learn()? Use another environment for that. Otherwise belated.check_delayed_env "
                "tells what is wrong with its intervals."
            )


class Lanes(Protocol):
    """Environments that are stepped together; lane i is the i-th."""

    observation: Floats
    """What each environment shows now: (lanes, D)."""
    episodes: list[int]
    """How many episodes each lane has finished."""

    def start(self) -> None:
        """Start the first episodes."""

    def step(self, actions: Floats) -> list[tuple[int, Step]]:
        """Take actions in [−1, 1], shape (lanes, A), and return (lane, step) of each transition."""


class EnvLanes:
    """A list of single environments.

    Every episode is seeded from (run seed, lane, episode number). With the actions of the open
    episodes that makes a run resumable at any step, without serialising an environment.
    """

    def __init__(self, envs: list[AnyEnv], scale: ActionScale, seed: int) -> None:
        self.envs = envs
        self.scale = scale
        self.seed = seed
        space = envs[0].observation_space
        assert space.shape is not None
        self.observation = np.zeros((len(envs), *space.shape), np.float32)
        self.episodes = [0] * len(envs)
        self._intervals = _Bookkeeping(len(envs))
        self.taken: list[list[Floats]] = [[] for _ in envs]  # in the open episodes

    def start(self) -> None:
        """Start the first episodes."""
        for lane in range(len(self.envs)):
            self._start_episode(lane)

    def _start_episode(self, lane: int) -> None:
        seed = episode_seed(self.seed, lane, self.episodes[lane])
        self.observation[lane], _ = self.envs[lane].reset(seed=seed)
        self.taken[lane] = []

    def step(self, actions: Floats) -> list[tuple[int, Step]]:
        """Step every environment; those whose episode ended start the next one."""
        steps = []
        for lane, (env, action) in enumerate(zip(self.envs, actions, strict=True)):
            observation, reward, terminated, truncated, info = env.step(self.scale.to_env(action))
            self._intervals.check(lane, info["interval"], terminated or truncated)
            step = make_step(
                self.observation[lane].copy(), action, float(reward), observation, info,
                terminated=terminated, truncated=truncated,
            )  # fmt: skip
            steps.append((lane, step))
            self.observation[lane] = observation
            self.taken[lane].append(action)
            if terminated or truncated:
                self.episodes[lane] += 1
                self._start_episode(lane)
        return steps

    def resume(self, episodes: list[int], taken: list[Floats], observation: Floats) -> None:
        """Bring the environments to where they were by playing the open episodes again.

        Raises:
            RuntimeError: if that leads somewhere else: then the environment is not deterministic.
        """
        self.episodes = list(episodes)
        for lane, actions in enumerate(taken):
            self._start_episode(lane)
            for action in actions:
                observed, *_, info = self.envs[lane].step(self.scale.to_env(action))
                self._intervals.check(lane, info["interval"], episode_end=False)
                self.observation[lane] = observed
                self.taken[lane].append(action)
        if not np.array_equal(self.observation, observation):
            raise RuntimeError(
                "Playing the open episode again led to another observation: the environment does "
                "not repeat itself for the same seed and actions, or it is another one. "
                "belated.check_delayed_env tells more."
            )


class VectorLanes:
    """A Gymnasium vector environment, in any autoreset mode.

    Where the vector environment resets by itself it gives no seed; only the first episodes are
    seeded then.
    """

    def __init__(self, envs: VectorEnv[Any, Any, Any], scale: ActionScale, seed: int) -> None:
        self.envs = envs
        self.scale = scale
        self.seed = seed
        self.mode = AutoresetMode(envs.metadata.get("autoreset_mode", AutoresetMode.NEXT_STEP))
        self.observation = np.zeros(envs.observation_space.shape or (), np.float32)
        self.episodes = [0] * envs.num_envs
        self._intervals = _Bookkeeping(envs.num_envs)
        self._ended = np.zeros(envs.num_envs, bool)

    def _seeds(self) -> list[int]:
        return [episode_seed(self.seed, lane, count) for lane, count in enumerate(self.episodes)]

    def start(self) -> None:
        """Start the first episodes."""
        self.observation, _ = self.envs.reset(seed=self._seeds())  # type: ignore[arg-type]

    def step(self, actions: Floats) -> list[tuple[int, Step]]:
        """Step the vector environment; the step that only resets a lane is no transition."""
        before = self.observation.copy()
        after, rewards, terminated, truncated, infos = self.envs.step(self.scale.to_env(actions))
        ended = terminated | truncated
        steps = []
        for lane in range(self.envs.num_envs):
            if self.mode is AutoresetMode.NEXT_STEP and self._ended[lane]:
                continue
            if self.mode is AutoresetMode.SAME_STEP and ended[lane]:
                following, info = infos["final_obs"][lane], _info_of(infos["final_info"], lane)
            else:
                following, info = after[lane], _info_of(infos, lane)
            self._intervals.check(lane, info["interval"], bool(ended[lane]))
            step = make_step(
                before[lane], actions[lane], float(rewards[lane]), following, info,
                terminated=bool(terminated[lane]), truncated=bool(truncated[lane]),
            )  # fmt: skip
            steps.append((lane, step))
            self.episodes[lane] += int(ended[lane])
        if self.mode is AutoresetMode.DISABLED and ended.any():
            after, _ = self.envs.reset(
                seed=self._seeds(),  # type: ignore[arg-type]
                options={"reset_mask": ended},
            )
        self.observation, self._ended = after, ended
        return steps


def make_step(
    observation: Any,
    action: Floats,
    reward: float,
    next_observation: Any,
    info: dict[str, Any],
    *,
    terminated: bool,
    truncated: bool,
) -> Step:
    """Put together what the learner records of a step."""
    interval = info["interval"]
    return Step(
        observation=observation,
        action=action,
        reward=reward,
        next_observation=next_observation,
        terminated=terminated,
        truncated=truncated,
        interval_end=bool(interval["end"]),
        revealed=bool(interval["revealed"]),
        dense_reward=float(info.get("dense_reward", np.nan)),
    )


def _info_of(infos: dict[str, Any], lane: int) -> dict[str, Any]:
    """The interval and the dense reward of one lane, out of a vector environment's arrays."""
    keys = ("end", "revealed", "step", "index")
    info: dict[str, Any] = {"interval": {key: infos["interval"][key][lane] for key in keys}}
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
        return [gym.make(env.spec) for _ in range(count)]
    except Exception as error:
        raise ValueError(
            f"Cannot make another {env} ({error}). Make it with gym.make from a registered id, or "
            "pass a second environment where one is needed."
        ) from error
