"""From an environment's observations and actions to flat vectors, and back."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import gymnasium as gym
import numpy as np
import numpy.typing as npt
from gymnasium.vector import VectorEnv

from belated.envs.actions import bounds_of, options_of
from belated.envs.rules import refuse, spaces_of, spec_of, unfit
from belated.experience.choices import decode
from belated.experience.step import Floats, ProblemShape
from belated.ranges import flag, non_negative_int, number, one_of, positive_int


@dataclass(frozen=True)
class Spaces:
    """What a learner knows of an environment; saved with the agent.

    Attributes:
        shape: the problem's sizes.
        low: the smallest action, flat: (A,), or a number for each component of a discrete one.
        high: the largest action, likewise.
        action_shape: what the environment wants actions to be like; flat if None.
        action_type: of the numbers of discrete actions.
    """

    shape: ProblemShape
    low: tuple[float, ...]
    high: tuple[float, ...]
    action_shape: tuple[int, ...] | None = None
    action_type: str = "int64"

    @classmethod
    def of(cls, env: Any) -> Spaces:
        """Look at an environment, or at a vector environment.

        Raises:
            ValueError: if an agent cannot learn in it; the message says what to do.
        """
        if not isinstance(env, (gym.Env, VectorEnv)):
            raise TypeError(f"Expected a gymnasium environment, got {env!r}.")
        refuse(unfit(env))
        observations, actions = spaces_of(env)
        spec = spec_of(env)
        assert spec is not None  # an unfit environment has been refused
        choices, (low, high) = options_of(actions), bounds_of(actions)
        shape = ProblemShape(
            observation_size=observations.shape[0],
            action_size=sum(choices) or len(low),
            max_length=spec.max_length,
            overlap=spec.overlap,
            phase=spec.phase,
            choices=choices,
            masked=spec.action_masks,
        )
        like = None if len(actions.shape) == 1 else actions.shape
        kind = np.dtype(actions.dtype).name if choices else "int64"
        return cls(shape, low, high, like, kind)

    def require_same(self, env: Any) -> None:
        """Refuse an environment of another kind.

        Raises:
            ValueError: if it has other sizes, bounds or shapes of actions.
        """
        found = Spaces.of(env)
        if found != self:
            raise ValueError(
                f"The agent was trained on another kind of environment: it has {self}, but this "
                f"one has {found}."
            )

    def to_env(self, action: Floats) -> npt.NDArray[Any]:
        """From flat actions to the environment's: in [−1, 1], where others are clipped; one-hot."""
        if self.shape.choices:
            return self.shaped(decode(action, self.shape.choices) + np.array(self.low, np.int64))
        low, high, width = self._bounds
        scaled = low + (action + 1) / 2 * width
        return self.shaped(np.minimum(np.maximum(scaled, low), high))  # twice as fast as `np.clip`

    def shaped(self, action: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Flat actions, (..., A) or (..., components), in the environment's shape and type.

        What has no shape becomes a scalar, which environments may look up in a dictionary.
        """
        if self.shape.choices:
            action = action.astype(self.action_type)
        if self.action_shape is None:
            return action
        shaped = action.reshape((*action.shape[:-1], *self.action_shape))
        return shaped[()] if self.shape.choices else shaped

    @cached_property
    def _bounds(self) -> tuple[Floats, Floats, Floats]:
        low, high = (np.asarray(bound, np.float32) for bound in (self.low, self.high))
        return low, high, high - low

    def batch_of(self, observation: npt.ArrayLike) -> Floats:
        """An observation, or a batch of them, as a batch (B, D).

        Raises:
            ValueError: if it has another shape, or tells a phase that is turned off.
        """
        array = np.asarray(observation, np.float32)
        size = self.shape.observation_size
        masks = "which actions are allowed, " if self.shape.masked else ""
        if array.shape[-1:] != (size,) or array.ndim > 2:
            raise ValueError(
                f"Expected an observation of {size} numbers (the environment's own, {masks}and the "
                f"phase), or a batch of them, got the shape {array.shape}."
            )
        if not self.shape.phase and array[..., self.shape.phase_place].any():
            # Nothing was learned about this input: another value would add noise to the actions.
            raise ValueError(
                "The agent was trained with the phase turned off, so that the last number of an "
                "observation is 0. Make its environment with phase=False too."
            )
        return np.atleast_2d(array)

    def state(self) -> dict[str, Any]:
        """Everything there is to save, as plain values."""
        bounds = {"low": list(self.low), "high": list(self.high)}
        like = None if self.action_shape is None else list(self.action_shape)
        kind = {"action_shape": like, "action_type": self.action_type}
        return {"shape": self.shape._asdict(), **bounds, **kind}

    @classmethod
    def restored(cls, state: dict[str, Any]) -> Spaces:
        """Undo `state`; what was saved before there was a choice has the phase and a `Box`.

        Raises:
            ValueError: if the values contradict each other.
        """
        sizes = dict(state["shape"])
        defaults = {"phase": True, "masked": False}
        flags = {name: flag(sizes.pop(name, old), name) for name, old in defaults.items()}
        choices = tuple(positive_int(size, "choices") for size in sizes.pop("choices", ()))
        overlap = non_negative_int(sizes.pop("overlap"), "overlap")
        sizes = {name: positive_int(value, name) for name, value in sizes.items()}
        shape = ProblemShape(overlap=overlap, choices=choices, **flags, **sizes)
        if choices and sum(choices) != shape.action_size:
            raise ValueError(f"actions of {shape.action_size} numbers cannot be {choices}.")
        if shape.masked and (not choices or shape.action_size >= shape.observation_size):
            raise ValueError("observations do not tell which actions are allowed.")
        low, high = (tuple(number(x, side) for x in state[side]) for side in ("low", "high"))
        numbers = len(choices) or shape.action_size
        if not len(low) == len(high) == numbers:
            raise ValueError(f"there must be {numbers} bounds of actions.")
        if choices and not _fit(choices, low, high):
            raise ValueError(f"{choices} options cannot be from {low} to {high}.")
        like = state.get("action_shape")
        if like is not None:
            like = tuple(positive_int(size, "action_shape") for size in like)
            if math.prod(like) != numbers:
                raise ValueError(f"actions of {numbers} numbers cannot be {like}.")
        kind = one_of(*_TYPES)(state.get("action_type", "int64"), "action_type")
        return cls(shape, low, high, like, kind)


_TYPES = tuple(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))


def _fit(choices: tuple[int, ...], low: tuple[float, ...], high: tuple[float, ...]) -> bool:
    """Whether bounds are whole numbers with as many in between as there are options."""
    ends = zip(choices, low, high, strict=True)
    return all(abs(a) < 2**53 and a == int(a) and b - a + 1 == n for n, a, b in ends)
