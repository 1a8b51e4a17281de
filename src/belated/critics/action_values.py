"""How a network says what actions are worth.

In general it sees the state and the action, and has one output. If actions are discrete, it sees
the state alone and has an output for each joint action: then one pass tells of all of them.
"""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from belated.experience.choices import number_of_joint
from belated.experience.step import ProblemShape
from belated.networks import MLP
from belated.networks.categorical import joint_one_hot


def sizes(shape: ProblemShape) -> tuple[int, int]:
    """How many inputs and outputs the network has."""
    if shape.choices:
        return shape.observation_size, number_of_joint(shape.choices)
    return shape.step_size, 1


def inputs(shape: ProblemShape, observation: jax.Array, action: jax.Array | None) -> jax.Array:
    """What it sees: (B, inputs)."""
    if shape.choices:
        return observation
    assert action is not None
    return jnp.concatenate([observation, action], axis=-1)


def value(shape: ProblemShape, outputs: jax.Array, action: jax.Array | None) -> jax.Array:
    """What it says of actions (B, A), or of every joint action if there is None.

    Args:
        shape: the problem's sizes.
        outputs: the network's, (B, outputs).
        action: (B, A), or None.

    Returns:
        (B,), or (J, B).
    """
    if not shape.choices:
        return outputs[:, 0]
    if action is None:
        return outputs.T
    return jnp.sum(outputs * joint_one_hot(action, shape.choices), axis=-1)


class ActionValue(MLP):
    """C(s, a), or Q(s, a), as a perceptron."""

    shape: ProblemShape = eqx.field(static=True)

    def __init__(
        self, rng: np.random.Generator, shape: ProblemShape, hidden: tuple[int, ...]
    ) -> None:
        before, after = sizes(shape)
        super().__init__(rng, before, hidden, after)
        self.shape = shape

    def __call__(  # type: ignore[override]
        self, observation: jax.Array, action: jax.Array | None
    ) -> jax.Array:
        """What actions (B, A) are worth, (B,); or every joint action, (J, B), if there is None."""
        outputs = super().__call__(inputs(self.shape, observation, action))
        return value(self.shape, outputs, action)
