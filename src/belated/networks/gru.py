"""A gated recurrent unit over batches of masked sequences."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from belated.networks.mlp import Linear
from belated.networks.products import factor, product, product_with_transpose, transposed

_Step = tuple[jax.Array, jax.Array]  # x (inputs, B) and mask (B,)


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

    def start(self, batch: int) -> jax.Array:
        """The hidden states before anything was read: (units, B), zeros."""
        return jnp.zeros((self.units, batch))

    def step(self, hidden: jax.Array, x: jax.Array) -> jax.Array:
        """Return the next hidden states (units, B), given the last ones and inputs (inputs, B)."""
        return _gates(self.inputs.columns(x), self.recurrent.columns(hidden)).mix(hidden)

    def prefixes(self, x: jax.Array, mask: jax.Array) -> jax.Array:
        """Return the hidden states after each prefix of the sequences, the empty one included.

        Args:
            x: (W, inputs, B).
            mask: (W, B); where it is 0 the hidden state is carried over unchanged.

        Returns:
            (W + 1, units, B), zeros first.
        """
        return _prefixes(self, x, mask)

    def last(self, x: jax.Array, mask: jax.Array) -> jax.Array:
        """Return the hidden states (units, B) after whole sequences; see `prefixes`."""
        advance = _advance(self)

        def read(hidden: jax.Array, step: _Step) -> tuple[jax.Array, None]:
            return advance(hidden, step)[0], None

        return jax.lax.scan(read, self.start(x.shape[2]), (x, mask))[0]


class _Gates(NamedTuple):
    """What a step computes on its way, each of shape (units, B)."""

    reset: jax.Array
    update: jax.Array
    new: jax.Array
    recurrent: jax.Array  # U_n h, before it is reset

    def mix(self, hidden: jax.Array) -> jax.Array:
        return (1 - self.update) * self.new + self.update * hidden


def _gates(from_x: jax.Array, from_hidden: jax.Array) -> _Gates:
    reset_x, update_x, new_x = jnp.split(from_x, 3)
    reset_h, update_h, new_h = jnp.split(from_hidden, 3)
    reset = jax.nn.sigmoid(reset_x + reset_h)
    update = jax.nn.sigmoid(update_x + update_h)
    return _Gates(reset, update, jnp.tanh(new_x + reset * new_h), new_h)


def _advance(gru: GRU) -> Callable[[jax.Array, _Step], tuple[jax.Array, _Gates]]:
    """Return the body of a loop over (x, mask), with the weights made ready once.

    The product with the inputs is inside the loop: sliced out of one made beforehand, the gates
    would not be vectorised, and all took three times as long.
    """
    layers = gru.inputs, gru.recurrent
    from_x, from_hidden = (transposed(factor(layer.weight)) for layer in layers)
    bias_x, bias_hidden = (layer.bias[:, None] for layer in layers)

    def advance(hidden: jax.Array, step: _Step) -> tuple[jax.Array, _Gates]:
        x, real = step
        gates = _gates(
            product(from_x, factor(x)) + bias_x, product(from_hidden, factor(hidden)) + bias_hidden
        )
        return jnp.where(real > 0, gates.mix(hidden), hidden), gates

    return advance


_Carry = tuple[jax.Array, list[jax.Array]]
_Kept = tuple[GRU, jax.Array, jax.Array, jax.Array, _Gates]


@jax.custom_vjp
def _prefixes(gru: GRU, x: jax.Array, mask: jax.Array) -> jax.Array:
    return _prefixes_forward(gru, x, mask)[0]


def _prefixes_forward(gru: GRU, x: jax.Array, mask: jax.Array) -> tuple[jax.Array, _Kept]:
    advance = _advance(gru)

    def read(hidden: jax.Array, step: _Step) -> tuple[jax.Array, tuple[jax.Array, _Gates]]:
        following, gates = advance(hidden, step)
        return following, (hidden, gates)

    last, (before, gates) = jax.lax.scan(read, gru.start(x.shape[2]), (x, mask))
    return jnp.concatenate([before, last[None]]), (gru, x, mask, before, gates)


def _prefixes_backward(kept: _Kept, gradient: jax.Array) -> tuple[GRU, jax.Array, None]:
    """Go back through the sequences, with the sums of the weights' gradients at hand.

    With JAX's own gradient an update of `q-rnn` takes a third longer.
    """
    gru, x, mask, before, gates = kept
    from_x, from_hidden = factor(gru.inputs.weight), factor(gru.recurrent.weight)

    def back(carry: _Carry, step: tuple[jax.Array, ...]) -> tuple[_Carry, jax.Array]:
        d_following, sums = carry
        d_state, x, hidden, real, reset, update, new, recurrent = step
        d_mixed = jnp.where(real > 0, d_following, 0.0)
        d_new = d_mixed * (1 - update) * (1 - new**2)
        d_update = d_mixed * (hidden - new) * update * (1 - update)
        d_reset = d_new * recurrent * reset * (1 - reset)
        d_gates_x = jnp.concatenate([d_reset, d_update, d_new])
        d_gates_h = jnp.concatenate([d_reset, d_update, d_new * reset])
        biases = jnp.sum(d_gates_x, axis=1), jnp.sum(d_gates_h, axis=1)
        d_gates_x, d_gates_h = factor(d_gates_x), factor(d_gates_h)
        more = [
            product_with_transpose(factor(x), d_gates_x), biases[0],
            product_with_transpose(factor(hidden), d_gates_h), biases[1],
        ]  # fmt: skip
        d_kept = jnp.where(real > 0, d_mixed * update, d_following)
        d_hidden = d_state + d_kept + product(from_hidden, d_gates_h)
        sums = [a + b for a, b in zip(sums, more, strict=True)]
        return (d_hidden, sums), product(from_x, d_gates_x)

    leaves, structure = jax.tree.flatten(gru)
    start = gradient[-1], [jnp.zeros_like(leaf) for leaf in leaves]
    steps = gradient[:-1], x, before, mask, *gates
    (_, sums), d_x = jax.lax.scan(back, start, steps, reverse=True)
    return jax.tree.unflatten(structure, sums), d_x, None


_prefixes.defvjp(_prefixes_forward, _prefixes_backward)
