"""Turn an environment with a reward at every step into one whose reward comes late."""

from __future__ import annotations

import math
from typing import Any, SupportsFloat

import gymnasium as gym
import numpy as np
from gymnasium.utils import RecordConstructorArgs

from belated.envs.interval_phase import IntervalPhase
from belated.envs.intervals import AnyEnv, IntervalCounter, IntervalSpec, refuse_delayed
from belated.envs.layers import has_time_limit
from belated.envs.lengths import LengthLike, parse_length
from belated.envs.rewards import RewardLike, Window, as_text, parse_reward

_LENGTHS_STREAM = 0x1A7E
"""Keeps the stream of interval lengths apart from others derived from the same seed."""


class DelayReward(gym.Wrapper[Any, Any, Any, Any], RecordConstructorArgs):
    """Hides per-step rewards and reveals one reward at the end of each signal interval.

    On every step ``info["interval"]`` describes the interval (see `belated.IntervalInfo`) and
    ``info["dense_reward"]`` is the hidden per-step reward, for evaluation only. The end of an
    episode also ends its last interval, however short, and reveals that interval's reward.

    Interval lengths come from the wrapper's own generator, which ``reset(seed=...)`` seeds. The
    inner environment's trajectory is what it would be without the wrapper.

    Wrap outside ``TimeLimit``; ``gym.make`` adds its time limit before it returns, so wrap what it
    returns. The wrapper would not see a time limit outside it end an episode, and the last
    interval's reward would be lost.

    Args:
        env: the environment to delay.
        interval: the distribution of lengths: ``20``, ``"15:20"``, ``"5=0.2,10=0.8"``, or an
            `IntervalLength`.
        reward: the reward of an interval: ``"sum"``, ``"max"``, ``"square"``, ``"sum-square"``,
            ``"square-sum"``, an `IntervalReward`, or a function of (observations, actions,
            rewards).
        overlap: c, how many steps before the interval its reward also depends on.

    Example:
        >>> import gymnasium as gym
        >>> env = DelayReward(gym.make("Pendulum-v1"), interval=3)
        >>> _ = env.reset(seed=0)
        >>> steps = [env.step(env.action_space.sample()) for _ in range(6)]
        >>> [reward != 0 for _, reward, *_ in steps]
        [False, False, True, False, False, True]
        >>> steps[2][-1]["interval"]
        {'end': True, 'step': 2, 'index': 0, 'length': 3, 'revealed': True}
    """

    def __init__(
        self,
        env: AnyEnv,
        interval: LengthLike,
        reward: RewardLike = "sum",
        overlap: int = 0,
    ) -> None:
        self._lengths = parse_length(interval)
        self.interval_reward = parsed = parse_reward(reward)
        RecordConstructorArgs.__init__(
            self,
            interval=str(self._lengths),
            # As text where possible, so that the spec can be written as JSON.
            reward=as_text(parsed) or reward,
            overlap=overlap,
        )
        gym.Wrapper.__init__(self, env)
        refuse_delayed(env, "DelayReward")
        self.interval_spec = IntervalSpec(self._lengths.max_length, overlap)
        self.interval_reward.check(self.interval_spec.max_length, self.interval_spec.overlap)
        if self.interval_reward.needs_steps:
            _require_array_observations(env)
        self._time_limited = has_time_limit(env)
        self._warn_if_time_limit_was_dropped()

        self._counter = IntervalCounter()
        self._window = Window(self.interval_spec.overlap)
        self._generator: np.random.Generator | None = None
        self._length = 0
        self._observation: Any = None
        self._episode_open = False

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Reset the inner environment and start its first interval."""
        observation, info = self.env.reset(seed=seed, options=options)
        if seed is not None or self._generator is None:
            entropy = None if seed is None else [_LENGTHS_STREAM, seed]
            self._generator = np.random.default_rng(entropy)
        self._warn_if_an_interval_was_abandoned()
        self._counter.reset()
        self._window.start_episode()
        self._length = self._lengths.sample(self._generator)
        self._observation = observation
        self._episode_open = True
        return observation, info

    def step(self, action: Any) -> tuple[Any, SupportsFloat, bool, bool, dict[str, Any]]:
        """Step the inner environment; reveal the interval's reward if this is its last step."""
        if self._generator is None:
            raise gym.error.ResetNeeded("Call reset() before the first step().")
        if self.interval_reward.needs_steps:
            self._window.add_step(self._observation, action)
        observation, reward, terminated, truncated, info = self.env.step(action)
        self._observation = observation
        dense_reward = float(reward)
        if not math.isfinite(dense_reward):
            raise ValueError(
                f"{self.env} returned a reward of {dense_reward}; per-step rewards must be "
                "finite. Check its reward for a division by zero or an overflow."
            )
        self._window.add_reward(dense_reward)

        self._episode_open = not (terminated or truncated)
        end = self._counter.step + 1 == self._length or not self._episode_open
        info["interval"] = self._counter.count(end=end, revealed=end)
        info["dense_reward"] = dense_reward
        if not end:
            return observation, 0.0, terminated, truncated, info
        revealed = self._interval_reward()
        self._window.start_interval()
        self._length = self._lengths.sample(self._generator)
        return observation, revealed, terminated, truncated, info

    def _interval_reward(self) -> float:
        value = self.interval_reward(self._window)
        if not math.isfinite(value):
            raise ValueError(
                f"The interval reward {self.interval_reward} returned {value} for an interval of "
                f"{self._window.length} steps; it must be finite for every interval, "
                "one-step intervals included."
            )
        return value

    def _warn_if_time_limit_was_dropped(self) -> None:
        spec = self.env.spec
        registered = None if spec is None else gym.registry.get(spec.id)
        if registered is not None and registered.max_episode_steps and not self._time_limited:
            gym.logger.warn(
                f"{registered.id} has a time limit of {registered.max_episode_steps} steps, but "
                "no TimeLimit is inside DelayReward. DelayReward must wrap outside TimeLimit, or "
                "the reward of each episode's last interval is lost."
            )

    def _warn_if_an_interval_was_abandoned(self) -> None:
        # Without a time limit inside, an episode cut mid-interval was most likely cut by a
        # TimeLimit outside.
        if self._episode_open and self._counter.step > 0 and not self._time_limited:
            gym.logger.warn(
                f"reset() was called {self._counter.step} steps into an interval, whose reward "
                "was never revealed. If a TimeLimit wraps DelayReward, swap them: DelayReward must "
                "wrap outside TimeLimit."
            )


def delay(
    env: AnyEnv,
    interval: LengthLike,
    reward: RewardLike = "sum",
    overlap: int = 0,
    *,
    phase: bool = True,
    action_masks: bool = False,
) -> AnyEnv:
    """Delay an environment's reward and append the phase to its observation.

    The arguments are those of `DelayReward`, and ``phase`` and
    ``action_masks`` those of `IntervalPhase`.

    Example:
        >>> import belated, gymnasium as gym
        >>> env = belated.delay(gym.make("Pendulum-v1"), interval="15:20", reward="sum")
        >>> env.get_wrapper_attr("interval_spec")
        IntervalSpec(max_length=20, overlap=0, phase=True, action_masks=False)
        >>> env.observation_space.shape  # Pendulum's three numbers and the phase
        (4,)
    """
    delayed = DelayReward(env, interval, reward, overlap)
    return IntervalPhase(delayed, phase=phase, action_masks=action_masks)


def _require_array_observations(env: AnyEnv) -> None:
    if env.observation_space.shape is None:
        raise ValueError(
            "This reward needs observations that are arrays; the environment's are "
            f"{env.observation_space}. Wrap the environment in "
            "gymnasium.wrappers.FlattenObservation first."
        )
