"""A recurrent network that reads sequences."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from belated.kernels.gru_gradient import states_after_rows
from belated.kernels.packing import PackedSequences, pack
from belated.networks.gru import GRU
from belated.networks.mlp import Linear


class Reader(eqx.Module):
    """Fully connected → ReLU → GRU.

    Hidden states are columns, one for each sequence. There is no gradient with respect to the
    steps of sequences, only to the parameters.
    """

    embed: Linear
    gru: GRU

    def __init__(self, rng: np.random.Generator, inputs: int, units: int) -> None:
        self.embed = Linear(rng, inputs, units)
        self.gru = GRU(rng, units, units)

    def step(self, hidden: jax.Array, x: jax.Array) -> jax.Array:
        """Return the hidden states (units, B) after one more step x (B, inputs).

        There is a gradient with respect to this x.
        """
        return self.gru.step(hidden, jax.nn.relu(self.embed.columns(x.T)))

    def prefixes(self, steps: jax.Array, mask: jax.Array) -> jax.Array:
        """Return the hidden states after each prefix of the sequences, the empty one included.

        Args:
            steps: (W, B, inputs).
            mask: (W, B); where it is 0 the hidden state is carried over unchanged.

        Returns:
            (W + 1, units, B), zeros first.
        """
        steps, mask = jnp.asarray(steps), jnp.asarray(mask)
        rows = jnp.uint32(len(steps))
        return states_after_rows(self, PackedSequences(steps, mask, jnp.zeros_like(mask), rows))

    def last(self, steps: jax.Array, mask: jax.Array) -> jax.Array:
        """Return the hidden states after whole sequences, with next to no work on padding.

        Args:
            steps: (W, B, inputs).
            mask: (W, B), 1 for the steps of a sequence, which are contiguous.

        Returns:
            (units, B).
        """
        packed, ends = pack(steps, mask)
        return ends.of(states_after_rows(self, packed))
