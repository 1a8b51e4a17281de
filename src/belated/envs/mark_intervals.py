"""Mark the signal intervals of an environment whose reward is already late."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, SupportsFloat

import gymnasium as gym
from gymnasium.utils import RecordConstructorArgs

from belated.envs.interval_phase import IntervalPhase
from belated.envs.intervals import AnyEnv, IntervalCounter, IntervalSpec, refuse_delayed
from belated.envs.named_function import import_function
from belated.ranges import positive_int

Predicate = Callable[[float, dict[str, Any]], bool]
Period = int | str
"""A number of steps, also as text, or ``"episode"``."""


class MarkIntervals(gym.Wrapper[Any, Any, Any, Any], RecordConstructorArgs):
    """Marks the signal intervals of an environment whose reward is already late.

    Rewards pass through unchanged; the wrapper adds ``info["interval"]``. A revealed reward of
    exactly 0.0 counts like any other. If an episode ends before the last interval's reward is
    revealed, that interval has ``revealed`` False.

    Give exactly one of ``info_key``, ``when`` and ``period``. Wrap outside ``TimeLimit``, so that
    the wrapper sees every episode's end.

    Args:
        env: the environment whose reward is late.
        max_length: the largest number of steps between two revealed rewards. May be left out
            with a fixed period.
        info_key: a reward is revealed on the steps whose ``info`` has a true value for this key.
        when: a predicate of (reward, info), or ``"package.module:function"``.
        period: a reward is revealed every so many steps from the episode's start (``30`` or
            ``"30"``), or only at its end (``"episode"``). If an episode ends within a fixed
            period, the reward of its last interval counts as revealed if it is not zero.
        overlap: c, how many steps before the interval its reward may also depend on.

    Example:
        >>> import gymnasium as gym
        >>> env = gym.make("Pendulum-v1")  # stands for one whose info says when the lab reports
        >>> env = MarkIntervals(env, max_length=30, info_key="lab_report")
        >>> _ = env.reset(seed=0)
        >>> env.step(env.action_space.sample())[-1]["interval"]["revealed"]
        False
    """

    def __init__(
        self,
        env: AnyEnv,
        max_length: int | None = None,
        *,
        info_key: str | None = None,
        when: Predicate | str | None = None,
        period: Period | None = None,
        overlap: int = 0,
    ) -> None:
        RecordConstructorArgs.__init__(
            self,
            max_length=max_length,
            info_key=info_key,
            when=when,
            period=period,
            overlap=overlap,
        )
        gym.Wrapper.__init__(self, env)
        refuse_delayed(env, "MarkIntervals")
        if sum(way is not None for way in (info_key, when, period)) != 1:
            raise ValueError(
                "Say in exactly one way when a reward is revealed: info_key=, when= or period=."
            )
        self._info_key = info_key
        self._when = import_function(when, "the predicate") if isinstance(when, str) else when
        self._period = None if period is None else _parse_period(period)
        if max_length is None:
            if not isinstance(self._period, int):
                raise ValueError(
                    "max_length is missing: how many steps can lie between two revealed rewards? "
                    "It fixes the width of the learner's windows."
                )
            max_length = self._period
        elif isinstance(self._period, int) and self._period > max_length:
            raise ValueError(f"A period of {period} is longer than max_length={max_length}.")
        self.interval_spec = IntervalSpec(max_length, overlap)
        self._counter = IntervalCounter()

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Reset the inner environment and start its first interval."""
        self._counter.reset()
        return self.env.reset(seed=seed, options=options)

    def step(self, action: Any) -> tuple[Any, SupportsFloat, bool, bool, dict[str, Any]]:
        """Step the inner environment and mark the step."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        episode_end = terminated or truncated
        revealed = self._is_revealed(float(reward), info, episode_end)
        steps = self._counter.step + 1
        if steps > self.interval_spec.max_length or (
            steps == self.interval_spec.max_length and not revealed and not episode_end
        ):
            raise ValueError(self._too_long(info))
        info["interval"] = self._counter.count(end=revealed or episode_end, revealed=revealed)
        return observation, reward, terminated, truncated, info

    def _is_revealed(self, reward: float, info: dict[str, Any], episode_end: bool) -> bool:
        if self._info_key is not None:
            return bool(info.get(self._info_key, False))
        if self._when is not None:
            return bool(self._when(reward, info))
        if self._period == "episode":
            return episode_end
        on_the_beat = self._counter.step + 1 == self._period
        return on_the_beat or (episode_end and reward != 0)

    def _too_long(self, info: dict[str, Any]) -> str:
        message = (
            f"No reward was revealed for {self.interval_spec.max_length} steps, the declared "
            "max_length. Raise max_length, or check how revealed rewards are recognised"
        )
        if self._info_key is not None:
            keys = ", ".join(sorted(map(str, info))) or "nothing"
            return f"{message}: info_key is {self._info_key!r}; this step's info holds {keys}."
        return f"{message}."


def _parse_period(period: Period) -> Period:
    if period == "episode":
        return period
    if isinstance(period, str):
        if not period.isdecimal():
            raise ValueError(f'The period must be a whole number or "episode", got {period!r}.')
        period = int(period)
    return positive_int(period, "The period")


def mark(
    env: AnyEnv,
    max_length: int | None = None,
    *,
    info_key: str | None = None,
    when: Predicate | str | None = None,
    period: Period | None = None,
    overlap: int = 0,
    phase: bool = True,
    action_masks: bool = False,
) -> AnyEnv:
    """Mark the intervals of an environment whose reward is already late and append the phase.

    The arguments are those of `MarkIntervals`, and ``phase`` and
    ``action_masks`` those of `IntervalPhase`.

    Example:
        >>> import belated, gymnasium as gym
        >>> env = belated.mark(gym.make("Pendulum-v1"), max_length=50, when=lambda r, info: r < -9)
        >>> env.observation_space.shape  # Pendulum's three numbers and the phase
        (4,)
    """
    marked = MarkIntervals(
        env, max_length, info_key=info_key, when=when, period=period, overlap=overlap
    )
    return IntervalPhase(marked, phase=phase, action_masks=action_masks)
