"""An observation as one vector: the environment's own numbers, the mask of actions, the phase."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import gymnasium as gym
import numpy as np
import numpy.typing as npt


class FlatObservation:
    """What is where in the vectors that agents see.

    Args:
        space: the environment's own observations.
        options: how many options each component of masked actions has; none without masks.

    Raises:
        ValueError: if observations cannot be flattened, or should not.
    """

    def __init__(self, space: gym.Space[Any], options: tuple[int, ...] = ()) -> None:
        flat = _flat(space)
        self.source = space
        self.own: int = flat.shape[0]
        """How many numbers the environment's own observation has."""
        self.size = self.own + sum(options) + 1
        self._bounds = flat.low, flat.high
        self._is_flat = flat is space

    def space(self) -> gym.spaces.Box:
        """The space of the vectors."""
        low, high = np.zeros(self.size, np.float32), np.ones(self.size, np.float32)
        with np.errstate(over="ignore"):  # bounds beyond float32 should become infinite
            low[: self.own], high[: self.own] = self._bounds
        return gym.spaces.Box(low, high)

    def join(self, observation: Any, mask: Any, phase: float) -> npt.NDArray[np.float32]:
        """Put the vector together; ``mask`` is looked at only if there are masks."""
        result = np.empty(self.size, np.float32)
        result[: self.own] = observation if self._is_flat else self._flattened(observation)
        if self.own + 1 < self.size:
            result[self.own : -1] = mask
        result[-1] = phase
        return result

    def _flattened(self, observation: Any) -> Any:
        return gym.spaces.flatten(self.source, observation)


def _flat(space: gym.Space[Any]) -> gym.spaces.Box:
    """The space of flattened observations.

    Raises:
        ValueError: if they cannot be flattened, or should not.
    """
    if isinstance(space, gym.spaces.Box) and len(space.shape) == 1:
        return space
    for part in _parts(space):
        if isinstance(part, gym.spaces.Box) and part.dtype == np.uint8 and len(part.shape) > 1:
            raise ValueError(
                f"Observations hold a picture, {part}, but networks here read vectors. Turn it "
                "into features first, in a gymnasium.ObservationWrapper."
            )
    flat = gym.spaces.flatten_space(space) if space.is_np_flattenable else None
    if not isinstance(flat, gym.spaces.Box):
        raise ValueError(
            f"Observations of {space} have no fixed size, so they cannot be flattened. Turn them "
            "into a vector first, in a gymnasium.ObservationWrapper."
        )
    return flat


def _parts(space: gym.Space[Any]) -> Iterator[gym.Space[Any]]:
    """A space, or the ones that it is made of."""
    if isinstance(space, (gym.spaces.Dict, gym.spaces.Tuple)):
        members = space.spaces.values() if isinstance(space, gym.spaces.Dict) else space.spaces
        for member in members:
            yield from _parts(member)
    else:
        yield space
