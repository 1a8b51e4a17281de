"""What an environment says about its signal intervals, and the counting behind it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypedDict

import gymnasium as gym
import numpy as np

from belated.ranges import flag, non_negative_int, positive_int

AnyEnv = gym.Env[Any, Any]


@dataclass(frozen=True)
class IntervalSpec:
    """The bounds that a learner needs in advance; every delayed environment declares one.

    Attributes:
        max_length: n_max, the largest number of steps in an interval. It scales the phase and
            fixes the width of the windows that are sampled from the replay.
        overlap: c, how many steps before the interval its reward may also depend on.
        phase: whether observations tell the phase, or read 0 in its place. `IntervalPhase` sets it.
        action_masks: whether observations tell which discrete actions are allowed, before the
            phase. `IntervalPhase` sets it.
    """

    max_length: int
    overlap: int = 0
    phase: bool = True
    action_masks: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(
            self, "max_length", positive_int(self.max_length, "The largest interval length")
        )
        object.__setattr__(self, "overlap", non_negative_int(self.overlap, "The overlap"))
        flag(self.phase, "phase")
        flag(self.action_masks, "action_masks")

    def phase_at(self, position: int) -> float:
        """What observations read as the phase, so many steps after an interval's start.

        >>> IntervalSpec(20).phase_at(5), IntervalSpec(20, phase=False).phase_at(5)
        (0.25, 0.0)
        """
        return position / self.max_length if self.phase else 0.0


class IntervalInfo(TypedDict):
    """What ``info["interval"]`` holds on every step (it is absent at reset)."""

    end: bool
    """Whether the step just taken is the last of its interval."""
    step: int
    """t − t_i of the step just taken, counted from 0."""
    index: int
    """i, which interval of the episode this is, counted from 0."""
    length: int
    """n_i at the interval's end, −1 before."""
    revealed: bool
    """Whether this step's reward is the interval's reward (it may well be 0.0)."""


class IntervalCounter:
    """Counts steps and intervals within an episode."""

    def __init__(self) -> None:
        self.step = 0
        self.index = 0

    def reset(self) -> None:
        """Start an episode."""
        self.step = 0
        self.index = 0

    def count(self, *, end: bool, revealed: bool) -> IntervalInfo:
        """Record the step just taken and describe it."""
        step, index = self.step, self.index
        if end:
            self.step = 0
            self.index += 1
        else:
            self.step += 1
        return {
            "end": end,
            "step": step,
            "index": index,
            "length": step + 1 if end else -1,
            "revealed": revealed,
        }


def find_interval_spec(env: AnyEnv) -> IntervalSpec | None:
    """Return the `IntervalSpec` that an environment or one of its wrappers declares."""
    if not env.has_wrapper_attr("interval_spec"):
        return None
    spec = env.get_wrapper_attr("interval_spec")
    if not isinstance(spec, IntervalSpec):
        raise TypeError(f"interval_spec must be a belated.IntervalSpec, got {spec!r}.")
    return spec


def refuse_delayed(env: AnyEnv, wrapper: str) -> None:
    """Raise if ``env`` has intervals already: a second set would contradict the first."""
    if find_interval_spec(env) is not None:
        raise ValueError(
            f"{wrapper} would give {env} a second set of intervals: it already declares an "
            "interval_spec. Wrap the environment underneath instead."
        )


def is_number(value: Any) -> bool:
    """Whether a reward is a plain number."""
    return isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
