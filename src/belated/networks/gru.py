"""A gated recurrent unit."""

from __future__ import annotations

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from belated.networks.mlp import Linear


class GRU(eqx.Module):
    """The unit of Cho et al. (2014), with the reset gate applied after the recurrent product.

    r = σ(W_r x + U_r h),  z = σ(W_z x + U_z h),  n = tanh(W_n x + r·(U_n h)),
    h' = (1 − z)·n + z·h, each product with a bias.

    Inputs and hidden states are columns, one for each sequence of the batch.
    """

    inputs: Linear  # x to the three gates r, z, n
    recurrent: Linear  # h to the three gates

    def __init__(self, rng: np.random.Generator, inputs: int, units: int) -> None:
        self.inputs = Linear(rng, inputs, 3 * units, hidden=True)
        self.recurrent = Linear(rng, units, 3 * units, hidden=True)

    @property
    def units(self) -> int:
        """The size of the hidden state."""
        return self.recurrent.weight.shape[0]

    def step(self, hidden: jax.Array, x: jax.Array) -> jax.Array:
        """Return the next hidden states (units, B), given the last ones and inputs (inputs, B)."""
        return gates(self.inputs.columns(x), self.recurrent.columns(hidden)).mix(hidden)


class Gates(NamedTuple):
    """What a step computes along the way, each of shape (units, B)."""

    reset: jax.Array
    update: jax.Array
    new: jax.Array
    recurrent: jax.Array  # U_n h, before it is reset

    def mix(self, hidden: jax.Array) -> jax.Array:
        """The next hidden states."""
        return (1 - self.update) * self.new + self.update * hidden


def gates(from_x: jax.Array, from_hidden: jax.Array) -> Gates:
    """The gates, given the products (3 · units, B) of inputs and hidden states."""
    reset_x, update_x, new_x = jnp.split(from_x, 3)
    reset_h, update_h, new_h = jnp.split(from_hidden, 3)
    reset = jax.nn.sigmoid(reset_x + reset_h)
    update = jax.nn.sigmoid(update_x + update_h)
    return Gates(reset, update, jnp.tanh(new_x + reset * new_h), new_h)
