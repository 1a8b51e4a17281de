"""What actions an environment takes, and which of them it allows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import gymnasium as gym
import numpy as np
import numpy.typing as npt

KINDS = (gym.spaces.Discrete, gym.spaces.MultiDiscrete, gym.spaces.MultiBinary)
"""The spaces of discrete actions."""


def options_of(space: Any) -> tuple[int, ...]:
    """How many options each component of discrete actions has; none for other actions.

    >>> options_of(gym.spaces.MultiDiscrete([3, 2])), options_of(gym.spaces.MultiBinary(2))
    ((3, 2), (2, 2))
    """
    if isinstance(space, gym.spaces.Discrete):
        return (int(space.n),)
    if isinstance(space, gym.spaces.MultiDiscrete):
        return tuple(space.nvec.reshape(-1).tolist())
    if isinstance(space, gym.spaces.MultiBinary):
        return (2,) * int(np.prod(space.shape))
    return ()


def bounds_of(space: Any) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """The smallest and the largest of each number of an action, flat."""
    low: Any
    high: Any
    if isinstance(space, gym.spaces.Box):
        low, high = space.low.astype(np.float32), space.high.astype(np.float32)
    else:
        low = np.zeros(space.shape) if isinstance(space, gym.spaces.MultiBinary) else space.start
        high = np.reshape(low, -1) + np.array(options_of(space)) - 1
    smallest, largest = (tuple(map(float, np.reshape(bound, -1))) for bound in (low, high))
    return smallest, largest


def flat_mask(info: dict[str, Any], options: tuple[int, ...]) -> npt.NDArray[np.float32]:
    """Which options are allowed, as 0 and 1 in one vector, out of ``info["action_mask"]``.

    Raises:
        ValueError: if there is none, or it has another size.
    """
    mask = info.get("action_mask")
    if mask is None:
        raise ValueError(
            'info["action_mask"] is missing, although action_masks=True. It must be there after '
            "reset and after every step that does not terminate the episode."
        )
    flat = np.concatenate([np.ravel(part) for part in _leaves(mask)]).astype(bool)
    if len(flat) != sum(options):
        raise ValueError(
            f'info["action_mask"] has {len(flat)} entries, but there are {sum(options)} options of '
            "actions: one entry for each, one component after the other; a bit has two options."
        )
    return flat.astype(np.float32)


def _leaves(mask: Any) -> Iterator[Any]:
    """The arrays of a mask that may be a tuple of them, or of tuples."""
    if isinstance(mask, (tuple, list)) and len(mask) > 0 and np.ndim(mask[0]) > 0:
        for part in mask:
            yield from _leaves(part)
    else:
        yield mask


def sample(space: gym.Space[Any], allowed: npt.NDArray[Any] | None = None) -> Any:
    """Draw a random action, among those that are allowed if a mask is given.

    Args:
        space: draws with its own generator.
        allowed: 0 or 1 for each option, one component after the other.
    """
    if allowed is None:
        return space.sample()
    options = options_of(space)
    parts = np.split(np.asarray(allowed, np.int8), np.cumsum(options)[:-1])
    parts = [part if part.any() else np.ones_like(part) for part in parts]  # (that is reported)
    if isinstance(space, gym.spaces.Discrete):
        return space.sample(mask=parts[0])
    picks = [space.np_random.choice(np.flatnonzero(part)) for part in parts]
    first = np.reshape(bounds_of(space)[0], -1).astype(int)
    return (first + picks).reshape(space.shape).astype(space.dtype)
