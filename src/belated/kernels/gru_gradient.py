"""Reading sequences with a GRU: a loop that ends where the data do, and its gradient by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp

from belated.kernels.packing import PackedSequences
from belated.kernels.products import factor, product, product_with_transpose, transposed
from belated.networks.gru import Gates, gates

if TYPE_CHECKING:
    from belated.networks.reader import Reader

_Row = tuple[jax.Array, jax.Array, jax.Array]  # steps (C, inputs), mask (C,) and start (C,)
_Inside = tuple[jax.Array, Gates]  # the embedded step and the gates, each (units, C)
_Kept = tuple["Reader", PackedSequences, jax.Array, _Inside]


def _reading(reader: Reader) -> Callable[[jax.Array, _Row], tuple[jax.Array, _Inside]]:
    """Return the body of a loop over rows, with the weights prepared once.

    The products are inside the loop: sliced out of one product made beforehand, the gates were
    not vectorised, and everything took three times as long.
    """
    layers = reader.gru.inputs, reader.gru.recurrent
    from_embedded, from_hidden = (transposed(factor(layer.weight)) for layer in layers)
    biases = [layer.bias[:, None] for layer in (reader.embed, *layers)]
    from_step = reader.embed.weight.T

    def read(hidden: jax.Array, row: _Row) -> tuple[jax.Array, _Inside]:
        x, real, start = row
        embedded = jax.nn.relu(product_with_transpose(from_step, x) + biases[0])
        hidden = jnp.where(start > 0, 0.0, hidden)
        opened = gates(
            product(from_embedded, factor(embedded)) + biases[1],
            product(from_hidden, factor(hidden)) + biases[2],
        )
        return jnp.where(real > 0, opened.mix(hidden), hidden), (embedded, opened)

    return read


@jax.custom_vjp
def states_after_rows(reader: Reader, packed: PackedSequences) -> jax.Array:
    """The hidden states (S + 1, units, C) after each number of rows, up to those in use."""
    return _forward(reader, packed)[0]


def _forward(reader: Reader, packed: PackedSequences) -> tuple[jax.Array, _Kept]:
    read = _reading(reader)

    def advance(number: jax.Array, carry: tuple[jax.Array, _Inside]) -> tuple[jax.Array, _Inside]:
        states, kept = carry
        following, inside = read(_at(number, states), _at(number, packed[:3]))
        return _put(number + 1, states, following), _put(number, kept, inside)

    zeros = _zeros(reader, packed)
    start = _zeros(reader, packed, 1), (zeros, Gates(zeros, zeros, zeros, zeros))
    states, kept = jax.lax.fori_loop(jnp.uint32(0), packed.rows, advance, start)
    return states, (reader, packed, states, kept)


def _backward(kept: _Kept, gradient: jax.Array) -> tuple[Reader, None]:
    """Go back through the rows and sum the weights' gradients on the way.

    JAX cannot differentiate loops whose length depends on the data. For loops of fixed length,
    where it can, this was a quarter faster.
    """
    reader, packed, states, inside = kept
    layers = reader.gru.inputs, reader.gru.recurrent
    to_embedded, to_hidden = (factor(layer.weight) for layer in layers)

    def back(
        done: jax.Array, carry: tuple[jax.Array, list[jax.Array]]
    ) -> tuple[jax.Array, list[jax.Array]]:
        d_following, sums = carry
        number = packed.rows - 1 - done
        x, real, start = _at(number, packed[:3])
        embedded, (reset, update, new, recurrent) = _at(number, inside)
        hidden = jnp.where(start > 0, 0.0, _at(number, states))
        d_following += _at(number + 1, gradient)
        d_mixed = jnp.where(real > 0, d_following, 0.0)
        d_new = d_mixed * (1 - update) * (1 - new**2)
        d_update = d_mixed * (hidden - new) * update * (1 - update)
        d_reset = d_new * recurrent * reset * (1 - reset)
        d_gates_x = jnp.concatenate([d_reset, d_update, d_new])
        d_gates_h = jnp.concatenate([d_reset, d_update, d_new * reset])
        biases = jnp.sum(d_gates_x, axis=1), jnp.sum(d_gates_h, axis=1)
        d_gates_x, d_gates_h = factor(d_gates_x), factor(d_gates_h)
        d_embedded = jnp.where(embedded > 0, product(to_embedded, d_gates_x), 0.0)
        more = [
            product(d_embedded, x), jnp.sum(d_embedded, axis=1),
            product_with_transpose(factor(embedded), d_gates_x), biases[0],
            product_with_transpose(factor(hidden), d_gates_h), biases[1],
        ]  # fmt: skip
        d_kept = jnp.where(real > 0, d_mixed * update, d_following)
        d_hidden = jnp.where(start > 0, 0.0, d_kept + product(to_hidden, d_gates_h))
        return d_hidden, [a + b for a, b in zip(sums, more, strict=True)]

    (embed, *others), structure = jax.tree.flatten(reader)
    sums = [jnp.zeros_like(leaf) for leaf in (embed.T, *others)]  # its gradient comes transposed
    _, sums = jax.lax.fori_loop(jnp.uint32(0), packed.rows, back, (jnp.zeros_like(states[0]), sums))
    return jax.tree.unflatten(structure, [sums[0].T, *sums[1:]]), None


states_after_rows.defvjp(_forward, _backward)


def _zeros(reader: Reader, packed: PackedSequences, more: int = 0) -> jax.Array:
    rows, columns, _ = packed.steps.shape
    return jnp.zeros((rows + more, reader.gru.units, columns))


def _at(number: jax.Array, arrays: Any) -> Any:
    """A row of each array.

    Row numbers are unsigned. JAX would first check whether a signed one is negative, and XLA would
    not vectorise what follows: an update of `q-rnn` would take half as long again.
    """
    return jax.tree.map(lambda array: jax.lax.dynamic_index_in_dim(array, number, 0, False), arrays)


def _put(number: jax.Array, arrays: Any, rows: Any) -> Any:
    """The arrays with one row of each replaced."""
    return jax.tree.map(
        lambda array, row: jax.lax.dynamic_update_index_in_dim(array, row, number, 0), arrays, rows
    )
