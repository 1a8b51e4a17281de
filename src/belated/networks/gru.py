"""A gated recurrent unit over batches of masked sequences."""

from __future__ import annotations

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
        self.inputs = Linear(rng, inputs, 3 * units)
        self.recurrent = Linear(rng, units, 3 * units)

    @property
    def units(self) -> int:
        """The size of the hidden state."""
        return self.recurrent.weight.shape[0]

    def step(self, hidden: jax.Array, x: jax.Array) -> jax.Array:
        """Return the next hidden states (units, B), given the last ones and inputs (inputs, B)."""
        reset_x, update_x, new_x = jnp.split(self.inputs.columns(x), 3)
        reset_h, update_h, new_h = jnp.split(self.recurrent.columns(hidden), 3)
        reset = jax.nn.sigmoid(reset_x + reset_h)
        update = jax.nn.sigmoid(update_x + update_h)
        new = jnp.tanh(new_x + reset * new_h)
        return (1 - update) * new + update * hidden

    def prefixes(self, x: jax.Array, mask: jax.Array) -> jax.Array:
        """Return the hidden states after each prefix of the sequences, the empty one included.

        The product with the inputs is inside the loop: sliced out of one made beforehand, the
        gates would not be vectorised, and all took three times as long.

        Args:
            x: (W, inputs, B).
            mask: (W, B); where it is 0 the hidden state is carried over unchanged.

        Returns:
            (W + 1, units, B), zeros first.
        """
        start = jnp.zeros((self.units, x.shape[2]), x.dtype)

        def advance(
            hidden: jax.Array, step: tuple[jax.Array, jax.Array]
        ) -> tuple[jax.Array, jax.Array]:
            x, real = step
            hidden = jnp.where(real > 0, self.step(hidden, x), hidden)
            return hidden, hidden

        _, states = jax.lax.scan(advance, start, (x, mask))
        return jnp.concatenate([start[None], states])
