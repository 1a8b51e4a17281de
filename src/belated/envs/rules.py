"""The rules of late rewards: what an environment must be and do before an agent can learn in it.

`belated.check_delayed_env` reports every broken rule and an agent stops at the first, so both
accept the same environments.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
from gymnasium import wrappers
from gymnasium.vector import AsyncVectorEnv, SyncVectorEnv, VectorEnv, VectorWrapper

from belated.envs.actions import KINDS, options_of
from belated.envs.interval_phase import IntervalPhase
from belated.envs.intervals import (
    AnyEnv,
    IntervalCounter,
    IntervalInfo,
    IntervalSpec,
    find_interval_spec,
    is_number,
)
from belated.envs.layers import has_time_limit_outside_intervals, layers


@dataclass(frozen=True)
class Finding:
    """Something that a learner would trip over.

    Attributes:
        code: a short name for the kind of finding.
        message: what is wrong, where it was first seen and what to do about it.
        count: how often it was seen.
        fatal: whether an agent refuses the environment because of it. If not, it is worth a look.
    """

    code: str
    message: str
    count: int = 1
    fatal: bool = True

    def __str__(self) -> str:
        return f"{self.message} ({self.count} times)" if self.count > 1 else self.message


def spec_of(env: Any) -> IntervalSpec | None:
    """The `IntervalSpec` of an environment or vector environment, if it declares one."""
    if not isinstance(env, VectorEnv):
        return find_interval_spec(env)
    try:
        spec: IntervalSpec = env.unwrapped.get_attr("interval_spec")[0]  # type: ignore[attr-defined]
    except AttributeError:
        return None
    return spec


def spaces_of(env: Any) -> tuple[Any, Any]:
    """The observation and action spaces of an environment, or of one in a vector environment."""
    if isinstance(env, VectorEnv):
        return env.single_observation_space, env.single_action_space
    return env.observation_space, env.action_space


def unfit(env: Any) -> Iterator[Finding]:
    """Find what is wrong with an environment without running it."""
    if spec_of(env) is None:
        yield Finding(
            "no-interval-spec",
            f"{env} does not say when its rewards are revealed: it declares no interval_spec. Use "
            "belated.delay(env, ...) for a reward at every step, belated.mark(env, ...) for one "
            "that is already late; on the command line --interval 20, or --period 20.",
        )
    observations, actions = spaces_of(env)
    bounded = isinstance(actions, gym.spaces.Box) and actions.is_bounded()
    if not bounded and not isinstance(actions, KINDS):
        yield Finding(
            "action-space",
            f"Actions must be Discrete, MultiDiscrete, MultiBinary, or a Box with finite bounds, "
            f"not {actions}.{_bounds_advice(actions)}",
        )
    if not isinstance(observations, gym.spaces.Box) or len(observations.shape) != 1:
        yield Finding(
            "observation-space",
            f"Observations must be a flat Box, not {observations}. belated.delay, belated.mark and "
            "belated.IntervalPhase flatten them.",
        )
    drifting = [each.advice for each in _DRIFTING if _drifts(env, each)]
    yield from (Finding("drifting", advice) for advice in drifting)
    if isinstance(env, gym.Env) and spec_of(env) is not None and not drifting:
        yield from _unfit_layers(env)


def _bounds_advice(actions: Any) -> str:
    """How to bound actions that have no bounds; `RescaleAction` needs some to start from."""
    if not isinstance(actions, gym.spaces.Box):
        return ""
    return (
        " Give them bounds, the largest that make sense, in the environment's own action_space or "
        "around it: gymnasium.wrappers.TransformAction(env, lambda action: action, "
        f"gymnasium.spaces.Box(-1.0, 1.0, {actions.shape}))."
    )


class _Drifting(NamedTuple):
    """A normalising wrapper of Gymnasium, what it calls its statistics, and what to do instead."""

    wrapper: type[gym.Wrapper[Any, Any, Any, Any]]
    in_vectors: type[VectorWrapper]
    statistics: str
    advice: str


_DRIFTING = (
    _Drifting(
        wrappers.NormalizeObservation,
        wrappers.vector.NormalizeObservation,
        "obs_rms",
        "NormalizeObservation keeps statistics of its own in each environment: evaluations "
        "would see other observations than training, and a saved agent would lose them. Leave it "
        "out and let the agent normalise, and save how: Agent(..., normalize_observations=True), "
        "or --set normalize_observations=true (ppo, rudder and lirpg always do).",
    ),
    _Drifting(
        wrappers.NormalizeReward,
        wrappers.vector.NormalizeReward,
        "return_rms",
        "NormalizeReward divides rewards by a scale that drifts: the replay would hold "
        "rewards of different scales, and evaluations would use another one than training. Divide "
        "by a constant instead: gymnasium.wrappers.TransformReward(env, lambda reward: "
        "reward / 100).",
    ),
)


def _drifts(env: Any, each: _Drifting) -> bool:
    """Whether an environment, or one in a vector environment, is in a wrapper that drifts."""
    if not isinstance(env, VectorEnv):
        found = [layer for layer in layers(env) if isinstance(layer, each.wrapper)]
        return any(getattr(layer, "update_running_mean", True) for layer in found)
    name = each.statistics
    while isinstance(env, VectorWrapper):
        if isinstance(env, each.in_vectors):
            return True
        env = env.env
    # (Asking each of them also works where they are in processes of their own.)
    return isinstance(env, (SyncVectorEnv, AsyncVectorEnv)) and any(
        env.call("has_wrapper_attr", name)
    )


def _unfit_layers(env: AnyEnv) -> Iterator[Finding]:
    """Find wrappers whose order would spoil the intervals or the phase."""
    if has_time_limit_outside_intervals(env):
        yield Finding(
            "open-interval",
            f"A TimeLimit is outside the intervals of {env}: the last reward of each episode "
            "would be lost. Put belated's wrappers outside TimeLimit.",
        )
    for layer in layers(env):
        if isinstance(layer, IntervalPhase):
            return
        if isinstance(layer, gym.ObservationWrapper):
            yield Finding(
                "phase",
                f"{type(layer).__name__} changes observations outside IntervalPhase, but the phase "
                "must come last and unchanged. Put belated's wrappers outside it.",
            )
            return
    yield Finding(
        "phase",
        f"{env} lacks the phase: wrap it in belated.IntervalPhase, with phase=False if agents are "
        "not to see it.",
    )


class IntervalRules:
    """Follows one environment step by step and reports the rules that a step breaks.

    Args:
        spec: what the environment declares about its intervals.
        size: how many numbers an observation has, phase included.
        options: how many options each component of discrete actions has.
    """

    def __init__(self, spec: IntervalSpec, size: int, options: tuple[int, ...] = ()) -> None:
        self.spec = spec
        self.size = size
        self.options = options if spec.action_masks else ()
        self.episode = 0
        self.time = 0
        self._counter = IntervalCounter()

    @property
    def place(self) -> str:
        """Where in the run the last call was."""
        return f"episode {self.episode}, " + (f"step {self.time}" if self.time else "reset")

    def reset(self, observation: Any) -> Iterator[Finding]:
        """Check what ``env.reset`` returned; the caller sets ``episode``."""
        self.time = 0
        self._counter.reset()
        yield from self._observation(observation, 0)

    def step(
        self,
        observation: Any,
        reward: Any,
        terminated: bool,
        truncated: bool,
        info: Mapping[str, Any],
    ) -> Iterator[Finding]:
        """Check what ``env.step`` returned."""
        self.time += 1
        yield from self._reward(reward)
        interval = info.get("interval")
        if not isinstance(interval, dict) or not interval.keys() >= _KEYS:
            yield self._incomplete(interval)
            return
        end = bool(interval["end"])
        expected = self._counter.count(end=end, revealed=bool(interval["revealed"]))
        yield from self._flags(interval, expected, reward)
        if expected["step"] >= self.spec.max_length:
            yield self._finding(
                "too-long",
                f"an interval has more than the declared {self.spec.max_length} steps. Raise "
                "max_length in the environment's interval_spec, or end the interval earlier.",
            )
        if (terminated or truncated) and not end:
            yield self._finding(
                "open-interval",
                "the episode ended, but its last interval is still open. Set "
                'info["interval"]["end"] when an episode terminates or is truncated.',
            )
        yield from self._duration(info.get("duration", 1.0))
        yield from self._observation(observation, self._counter.step, terminated)

    def _finding(self, code: str, message: str) -> Finding:
        return Finding(code, f"{self.place}: {message}")

    def _incomplete(self, interval: Any) -> Finding:
        if not isinstance(interval, dict):
            return self._finding(
                "no-interval-flag",
                'info["interval"] is missing, so nothing says when a reward is revealed.',
            )
        missing = ", ".join(sorted(_KEYS - interval.keys()))
        return self._finding("interval-flag", f'info["interval"] lacks {missing}.')

    def _flags(
        self, interval: Mapping[str, Any], expected: IntervalInfo, reward: Any
    ) -> Iterator[Finding]:
        for key in ("step", "index", "length"):
            if interval[key] != expected[key]:
                yield self._finding(
                    "interval-flag",
                    f'info["interval"]["{key}"] is {interval[key]}; counting from the last end it '
                    f"should be {expected[key]}. Was the environment stepped or reset elsewhere?",
                )
        if expected["revealed"] and not expected["end"]:
            yield self._finding("interval-flag", "a reward is revealed, but the interval goes on.")
        if not is_number(reward) or reward == 0:
            return
        if not expected["end"]:
            yield self._finding(
                "early-reward",
                f"a reward of {reward:g} inside an interval, expected 0. Rewards belong to the "
                "interval's last step. If this is one, it was not recognised: check the info_key, "
                "period or when of belated.mark. If not, add it to the last one, or use "
                "belated.delay for a reward at every step.",
            )
        elif not expected["revealed"]:
            yield self._finding(
                "unrevealed-reward",
                f"a reward of {reward:g} on a step marked as not revealed, expected 0.",
            )

    def _reward(self, reward: Any) -> Iterator[Finding]:
        if not is_number(reward):
            yield self._finding(
                "reward-type",
                f"the reward is {reward!r}, not a number. A step without a revealed reward has "
                "reward 0.0.",
            )
        elif not math.isfinite(reward):
            yield self._finding("not-finite", f"the reward is {reward}.")

    def _duration(self, duration: Any) -> Iterator[Finding]:
        if not is_number(duration) or not 0 <= duration < math.inf:
            yield self._finding(
                "duration",
                f'info["duration"] is {duration!r}; it must be the time that the step took, a '
                "number that is not negative.",
            )

    def _observation(
        self, observation: Any, position: int, terminated: bool = False
    ) -> Iterator[Finding]:
        """Check an observation's shape and values, the phase of the next step included."""
        shape = np.shape(observation)
        if shape != (self.size,):
            yield self._finding(
                "observation-shape",
                f"the observation has the shape {shape}, expected {(self.size,)}.",
            )
            return
        if not np.isfinite(observation).all():
            yield self._finding("not-finite", "the observation contains NaN or infinity.")
            return
        if self.options and not terminated:
            yield from self._mask(observation[-1 - sum(self.options) : -1])
        yield from self._phase(float(observation[-1]), position)

    def _mask(self, allowed: Any) -> Iterator[Finding]:
        for number, part in enumerate(np.split(allowed, np.cumsum(self.options)[:-1])):
            if not part.any():
                where = f" in component {number}" if len(self.options) > 1 else ""
                yield self._finding(
                    "action-mask", f'info["action_mask"] allows no action at all{where}.'
                )

    def _phase(self, observed: float, position: int) -> Iterator[Finding]:
        expected = self.spec.phase_at(position)
        if not self.spec.phase and observed != 0:
            yield self._finding(
                "phase",
                f"the observation ends with {observed:g}, but its phase is turned off and must "
                "read 0. Wrap the environment in belated.IntervalPhase(env, phase=False), "
                "outermost.",
            )
        elif abs(observed - expected) > 1e-5:
            out_of_range = "" if 0 <= observed < 1 else ", out of the range [0, 1)"
            yield self._finding(
                "phase",
                f"the observation ends with {observed:g}{out_of_range}; the phase is "
                f"{expected:g}. Wrap the environment in belated.IntervalPhase, outermost.",
            )


_KEYS = IntervalInfo.__required_keys__


class RuleError(ValueError):
    """An environment is not what an agent can learn in."""


def refuse(findings: Iterator[Finding]) -> None:
    """Raise the first fatal finding.

    Raises:
        RuleError: if there is one.
    """
    for finding in findings:
        if finding.fatal:
            raise RuleError(finding.message)


def allowed_in(env: AnyEnv, observation: Any) -> Any:
    """Which actions an observation says are allowed, one entry for each option; None if all are."""
    spec = spec_of(env)
    if spec is None or not spec.action_masks:
        return None
    return observation[-1 - sum(options_of(env.action_space)) : -1]
