"""The recurrent network, its gradient, and the packing of sequences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from belated.kernels.packing import pack
from belated.networks import Reader

WIDTH, UNITS, INPUTS = 6, 7, 5


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def numpy_states(reader: Reader, steps: Any, mask: Any) -> Any:
    """Step by step, sequence by sequence, in float64."""
    gru, n = reader.gru, reader.gru.units
    e, d = np.float64(reader.embed.weight), np.float64(reader.embed.bias)
    w, b = np.float64(gru.inputs.weight), np.float64(gru.inputs.bias)
    u, c = np.float64(gru.recurrent.weight), np.float64(gru.recurrent.bias)
    states = np.zeros((len(steps) + 1, n, steps.shape[1]))
    for column in range(steps.shape[1]):
        hidden = np.zeros(n)
        for place in range(len(steps)):
            if mask[place, column]:
                x = np.maximum(steps[place, column] @ e + d, 0)
                gates_x, gates_h = x @ w + b, hidden @ u + c
                reset = sigmoid(gates_x[:n] + gates_h[:n])
                update = sigmoid(gates_x[n : 2 * n] + gates_h[n : 2 * n])
                new = np.tanh(gates_x[2 * n :] + reset * gates_h[2 * n :])
                hidden = (1 - update) * new + update * hidden
            states[place + 1, :, column] = hidden
    return states


def reader() -> Reader:
    return Reader(np.random.default_rng(1), INPUTS, UNITS)


prefixes: Any = jax.jit(Reader.prefixes)
last: Any = jax.jit(Reader.last)
packed: Any = jax.jit(pack)


def steps_of(batch: int) -> Any:
    return np.random.default_rng(batch).normal(size=(WIDTH, batch, INPUTS)).astype(np.float32)


@st.composite
def masks(draw: st.DrawFn) -> Any:
    """(W, B): each sequence has some padding, then some steps, then padding again."""
    places = np.arange(WIDTH)[:, None]
    pairs = st.lists(
        st.tuples(st.integers(0, WIDTH), st.integers(0, WIDTH)), min_size=1, max_size=5
    )
    begin, end = np.sort(np.asarray(draw(pairs)), axis=1).T
    return ((begin <= places) & (places < end)).astype(np.float32)


def test_states_are_those_of_a_step_by_step_reference() -> None:
    steps, mask = steps_of(4), np.random.default_rng(0).integers(2, size=(WIDTH, 4))
    got = prefixes(reader(), steps, mask.astype(np.float32))
    np.testing.assert_allclose(got, numpy_states(reader(), steps, mask), atol=1e-6)


@given(mask=masks())
def test_the_last_states_are_those_after_the_whole_sequences(mask: Any) -> None:
    steps = steps_of(mask.shape[1])
    expected = numpy_states(reader(), steps, mask)[-1]
    np.testing.assert_allclose(last(reader(), steps, mask), expected, atol=1e-6)


def stepwise_prefixes(reader: Reader, steps: Any, mask: Any) -> jax.Array:
    """What `Reader.prefixes` is to return, with a gradient by JAX."""
    hidden = [jnp.zeros((UNITS, steps.shape[1]))]
    for x, real in zip(steps, mask, strict=True):
        hidden.append(jnp.where(real > 0, reader.step(hidden[-1], jnp.asarray(x)), hidden[-1]))
    return jnp.stack(hidden)


def spans(batch: int) -> Any:
    places, begin = np.arange(WIDTH)[:, None], np.array([0, 2, 0, 1, 3])[:batch]
    return ((begin <= places) & (places < [6, 5, 0, 2, 4][:batch])).astype(np.float32)


def holes(batch: int) -> Any:
    return np.random.default_rng(0).integers(2, size=(WIDTH, batch)).astype(np.float32)


@pytest.mark.parametrize("batch", [4, 5])
@pytest.mark.parametrize(
    ("fast", "plain", "mask_of"),
    [
        (Reader.prefixes, stepwise_prefixes, holes),
        (Reader.last, lambda *inputs: stepwise_prefixes(*inputs)[-1], spans),
    ],
    ids=["prefixes", "last"],
)
def test_the_gradient_is_that_of_the_steps(
    fast: Callable[..., jax.Array],
    plain: Callable[..., jax.Array],
    mask_of: Callable[[int], Any],
    batch: int,
) -> None:
    mask = mask_of(batch)
    steps = steps_of(batch)

    def gradient(states: Callable[..., jax.Array]) -> list[jax.Array]:
        def loss(reader: Reader) -> jax.Array:
            out = states(reader, steps, mask)
            weights = np.random.default_rng(0).normal(size=out.shape).astype(np.float32)
            return jnp.sum(weights * out)

        return jax.tree.leaves(jax.jit(jax.grad(loss))(reader()))

    for a, b in zip(gradient(fast), gradient(plain), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


def test_one_step_continues_a_sequence() -> None:
    steps = steps_of(4)
    states = prefixes(reader(), steps, np.ones((WIDTH, 4), np.float32))
    np.testing.assert_allclose(
        reader().step(states[3], jnp.asarray(steps[3])), states[4], atol=1e-6
    )


@given(mask=masks())
def test_packed_columns_hold_every_step_once_and_are_no_longer_than_two_sequences(
    mask: Any,
) -> None:
    batch = mask.shape[1]
    steps = np.arange(1, mask.size + 1, dtype=np.float32).reshape(WIDTH, batch, 1)
    columns, ends = packed(steps, mask)
    assert columns.steps.shape == (2 * WIDTH, -(-batch // 2), 1)
    held = np.asarray(columns.steps)[np.asarray(columns.mask)]
    np.testing.assert_array_equal(np.sort(held.ravel()), steps[mask > 0].ravel())
    np.testing.assert_array_equal(ends.empty, mask.sum(axis=0) == 0)
    lengths = np.sort(np.append(mask.sum(axis=0), [0] * (batch % 2)))
    assert columns.rows == max(lengths + lengths[::-1])
    assert not np.any(np.asarray(columns.mask)[int(columns.rows) :])


def test_half_as_many_columns_need_hardly_more_rows() -> None:
    lengths = np.random.default_rng(0).integers(20, size=128)
    mask = (np.arange(20)[:, None] < lengths).astype(np.float32)
    columns, _ = packed(np.zeros((20, 128, 1), np.float32), mask)
    assert columns.steps.shape[1] == 64
    assert columns.rows < 25
