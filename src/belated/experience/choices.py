"""Discrete actions as vectors: a one-hot part for each component, one after the other.

A component is a choice between some options. ``Discrete(3)`` is one of three; ``MultiBinary(4)`` is
four of two. The joint actions are all combinations, in lexicographic order.
"""

from __future__ import annotations

import itertools
import math
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from belated.experience.step import Floats, ProblemShape

Choices = tuple[int, ...]
"""How many options each component has."""

MOST_JOINT = 1_024
"""Up to how many joint actions a critic has one output for each."""


@lru_cache(maxsize=32)
def joint_codes(choices: Choices) -> Floats:
    """The vectors of all joint actions: (J, A).

    >>> joint_codes((2, 2)).astype(int).tolist()
    [[1, 0, 1, 0], [1, 0, 0, 1], [0, 1, 1, 0], [0, 1, 0, 1]]
    """
    picks = np.array(list(itertools.product(*map(range, choices))))
    codes = encode(picks, choices)
    codes.flags.writeable = False
    return codes


def number_of_joint(choices: Choices) -> int:
    """How many joint actions there are.

    Raises:
        ValueError: if they are too many for a critic.
    """
    number = math.prod(choices)
    if number > MOST_JOINT:
        raise ValueError(
            f"There are {number:,} joint actions of {len(choices)} components, and critics have an "
            f"output for each, up to {MOST_JOINT:,}. `ppo`, `rudder` and `lirpg` have no critic of "
            "actions, and no such limit."
        )
    return number


def encode(picks: npt.ArrayLike, choices: Choices) -> Floats:
    """From one number for each component, (..., K), to vectors (..., A)."""
    numbers = np.asarray(picks)
    first = np.cumsum((0, *choices[:-1]))
    vectors = np.zeros((*numbers.shape[:-1], sum(choices)), np.float32)
    np.put_along_axis(vectors, numbers + first, 1.0, axis=-1)
    return vectors


def decode(action: npt.NDArray[Any], choices: Choices) -> npt.NDArray[np.int64]:
    """From vectors (..., A) to one number for each component, (..., K): where it is largest."""
    if len(choices) == 1:
        best: npt.NDArray[np.int64] = np.argmax(action, axis=-1, keepdims=True)
        return best
    ends = np.cumsum(choices)[:-1]
    parts = np.split(action, ends, axis=-1)
    return np.stack([part.argmax(axis=-1) for part in parts], axis=-1)


def random_actions(
    generator: np.random.Generator, observation: Floats, shape: ProblemShape
) -> Floats:
    """Draw actions uniformly, discrete ones among those that are allowed: (B, A)."""
    drawn = generator.uniform(-1, 1, (len(observation), shape.action_size)).astype(np.float32)
    if not shape.choices:
        return drawn
    allowed = shape.allowed(observation)
    if allowed is not None:
        drawn = np.where(allowed > 0, drawn, -2)
    return encode(decode(drawn, shape.choices), shape.choices)
