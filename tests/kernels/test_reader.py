"""The recurrent network, its gradient, and the packing of sequences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import references
from hypothesis import given
from hypothesis import strategies as st
from references import quick_jit

from belated.kernels.packing import pack
from belated.networks import Reader

WIDTH, UNITS, INPUTS = 6, 7, 5


def numpy_states(reader: Reader, steps: Any, mask: Any) -> Any:
    """Step by step, in float64: (..., W + 1, units, B)."""
    hidden = np.zeros((steps.shape[1], UNITS))
    states = [hidden]
    for x, real in zip(steps.astype(np.float64), mask, strict=True):
        hidden = np.where(real[:, None] > 0, references.gru_step(reader, hidden, x), hidden)
        states.append(hidden)
    return np.stack(np.broadcast_arrays(*states), axis=-3).swapaxes(-1, -2)


def reader() -> Reader:
    return Reader(np.random.default_rng(1), INPUTS, UNITS)


prefixes: Any = jax.jit(Reader.prefixes)
last: Any = quick_jit(Reader.last)
packed: Any = quick_jit(pack)


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
    np.testing.assert_allclose(
        got, numpy_states(references.exact(reader()), steps, mask), atol=1e-6
    )


@given(mask=masks())
def test_the_last_states_are_those_after_the_whole_sequences(mask: Any) -> None:
    steps = steps_of(mask.shape[1])
    expected = numpy_states(references.exact(reader()), steps, mask)[-1]
    np.testing.assert_allclose(last(reader(), steps, mask), expected, atol=1e-6)


def spans(batch: int) -> Any:
    places, begin = np.arange(WIDTH)[:, None], np.array([0, 2, 0, 1, 3])[:batch]
    return ((begin <= places) & (places < [6, 5, 0, 2, 4][:batch])).astype(np.float32)


def holes(batch: int) -> Any:
    return np.random.default_rng(0).integers(2, size=(WIDTH, batch)).astype(np.float32)


@pytest.mark.parametrize("batch", [4, 5])
@pytest.mark.parametrize(
    ("fast", "plain", "mask_of"),
    [
        (Reader.prefixes, numpy_states, holes),
        (Reader.last, lambda *inputs: numpy_states(*inputs)[..., -1, :, :], spans),
    ],
    ids=["prefixes", "last"],
)
def test_the_gradient_is_that_of_the_steps(
    fast: Callable[..., jax.Array],
    plain: Callable[..., Any],
    mask_of: Callable[[int], Any],
    batch: int,
) -> None:
    mask, steps = mask_of(batch), steps_of(batch)
    shape = plain(references.exact(reader()), steps, mask).shape
    weights = np.random.default_rng(0).normal(size=shape).astype(np.float32)

    def loss(reader: Reader) -> jax.Array:
        return jnp.sum(weights * fast(reader, steps, mask))

    def plain_loss(versions: Reader) -> Any:
        axes = tuple(range(-weights.ndim, 0))
        return np.sum(weights * plain(versions, steps, mask), axis=axes)

    got, expected = jax.jit(jax.grad(loss))(reader()), references.gradient(plain_loss, reader())
    for a, b in zip(*map(jax.tree.leaves, (got, expected)), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


def test_one_step_continues_a_sequence() -> None:
    steps = steps_of(4)
    states = prefixes(reader(), steps, np.ones((WIDTH, 4), np.float32))
    following = quick_jit(Reader.step)(reader(), states[3], steps[3])
    np.testing.assert_allclose(following, states[4], atol=1e-6)


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
