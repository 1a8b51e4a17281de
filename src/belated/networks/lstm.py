"""RUDDER's reduced long short-term memory, over sequences that follow one another."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from belated.networks.mlp import Linear


class ReducedLSTM(eqx.Module):
    """An LSTM that only adds up: no forget gate, no output gate (Arjona-Medina et al., 2019).

    c_t = c_{t−1} + σ(R c_{t−1} + b)·tanh(W x_t + d), and c_t is the output too. The cell input sees
    only x, the input gate only c; the gate starts nearly shut, at b = −3.
    """

    inputs: Linear  # x to the cell input
    gate: Linear  # c to the input gate

    def __init__(self, rng: np.random.Generator, inputs: int, units: int) -> None:
        self.inputs = Linear(rng, inputs, units)
        gate = Linear(rng, units, units)
        shut = jnp.full(units, -3.0, jnp.float32)
        self.gate = eqx.tree_at(lambda linear: linear.bias, gate, shut)

    def states(self, x: jax.Array, start: jax.Array) -> jax.Array:
        """Return c_t for every step.

        Args:
            x: (T, B, inputs), any number of sequences, one after another.
            start: (T, B), 1 at the first step of each sequence, before which c is 0.

        Returns:
            (T, B, units).
        """

        def advance(
            cell: jax.Array, step: tuple[jax.Array, jax.Array]
        ) -> tuple[jax.Array, jax.Array]:
            cell_input, keep = step
            cell = cell * keep
            cell = cell + jax.nn.sigmoid(self.gate(cell)) * cell_input
            return cell, cell

        cell_input = jnp.tanh(self.inputs(x))  # one product for all steps
        nothing = jnp.zeros_like(cell_input[0])
        return jax.lax.scan(advance, nothing, (cell_input, 1 - start[..., None]))[1]
