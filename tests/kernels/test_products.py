"""Products of rounded factors: what is rounded, and that nothing else is."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from batches import random_batch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from references import quick_jit

from belated.backbones import SAC, TD3
from belated.critics import HC, Pairwise, Segment
from belated.kernels.products import columns_product, rounded, rows_product
from belated.networks import MLP, Reader

compiled_rounded: Any = jax.jit(rounded)
FINITE = st.floats(-(2.0**100), 2.0**100, width=32)


def as_bfloat16(x: Any) -> Any:
    return np.float64(np.asarray(x, np.float32).astype(jnp.bfloat16))


@given(arrays(np.float32, 8, elements=FINITE), st.integers(0, 2**16 - 1))
def test_rounding_is_to_the_nearest_bfloat16_and_ties_go_to_even(x: Any, upper: int) -> None:
    tie = np.array([upper << 16 | 0x8000], np.uint32).view(np.float32)
    x = np.concatenate([x, tie[np.isfinite(tie)]])
    np.testing.assert_array_equal(np.float64(compiled_rounded(x)), as_bfloat16(x))


def test_what_is_no_number_stays_none() -> None:
    x = np.array([np.nan, np.inf, -np.inf], np.float32)
    np.testing.assert_array_equal(np.float64(compiled_rounded(x)), x)


@pytest.mark.parametrize(("n", "inputs", "outputs"), [(8, 6, 4), (5, 3, 7), (1, 1, 1), (9, 64, 33)])
def test_products_and_their_gradients_are_those_of_the_rounded_factors(
    n: int, inputs: int, outputs: int
) -> None:
    rng = np.random.default_rng(0)
    x, weight, g = (
        rng.normal(size=shape).astype(np.float32)
        for shape in ((n, inputs), (inputs, outputs), (n, outputs))
    )
    rounded_x, rounded_weight, rounded_g = map(as_bfloat16, (x, weight, g))
    expected = (
        rounded_x @ rounded_weight,
        rounded_g @ rounded_weight.T,
        rounded_x.T @ rounded_g,
    )

    @jax.jit
    def products(x: Any, weight: Any, g: Any) -> tuple[Any, Any]:
        rows, rows_back = jax.vjp(partial(rows_product, rounding=True), x, weight)
        columns, columns_back = jax.vjp(columns_product, x.T, weight)
        return (rows, *rows_back(g)), (columns.T, *turned(*columns_back(g.T)))

    def turned(dx: Any, dweight: Any) -> tuple[Any, Any]:
        return dx.T, dweight

    for got in products(x, weight, g):
        for a, b in zip(got, expected, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("inputs", "outputs"), [(6, 4), (4, 6), (5, 3), (8, 1)])
def test_products_that_are_not_rounded_have_jaxs_gradients(inputs: int, outputs: int) -> None:
    rng = np.random.default_rng(0)
    x, weight = rng.normal(size=(7, inputs)), rng.normal(size=(inputs, outputs))

    def loss(product: Callable[..., jax.Array], x: jax.Array, weight: jax.Array) -> jax.Array:
        return jnp.sum(jnp.sin(product(x, weight)))

    exact = partial(loss, partial(rows_product, rounding=False))
    got, expected = (
        jax.jit(jax.grad(f, argnums=(0, 1)))(np.float32(x), np.float32(weight))
        for f in (exact, partial(loss, jnp.matmul))
    )
    for a, b in zip(got, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("apply", [MLP.__call__, lambda mlp, x: mlp.columns(x.T).T])
def test_only_what_lies_between_hidden_units_is_rounded(apply: Callable[..., Any]) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(7, 3)).astype(np.float32)
    shallow, deep = MLP(rng, 3, (8,), 2), MLP(rng, 3, (8, 8), 2)
    both = jax.jit(lambda x: (apply(shallow, x), apply(deep, x)))
    with jax.default_matmul_precision("bfloat16"):
        rounded = both(x)
    exact = both(x)
    np.testing.assert_array_equal(rounded[0], exact[0])
    assert not np.array_equal(rounded[1], exact[1])
    np.testing.assert_allclose(rounded[1], exact[1], atol=0.01)


def test_a_layer_takes_rows_of_any_shape() -> None:
    rng = np.random.default_rng(0)
    mlp = MLP(rng, 3, (8, 8), 2)
    x = rng.normal(size=(4, 5, 3)).astype(np.float32)
    apply = jax.jit(lambda *inputs: tuple(map(mlp, inputs)))
    with jax.default_matmul_precision("bfloat16"):
        whole, rows, one, some = apply(x, x.reshape(20, 3), x[0, 0], x[0])
    np.testing.assert_array_equal(whole, np.reshape(rows, (4, 5, 2)))
    np.testing.assert_array_equal(one, some[0])


@pytest.mark.parametrize("read", [Reader.prefixes, Reader.last])
def test_a_rounded_reader_is_close_to_the_exact_one(read: Callable[..., jax.Array]) -> None:
    rng = np.random.default_rng(0)
    reader = Reader(rng, 6, 8)
    steps, mask = rng.normal(size=(9, 4, 6)).astype(np.float32), np.ones((9, 4), np.float32)

    def loss(reader: Reader) -> jax.Array:
        return jnp.sum(read(reader, steps, mask) ** 2)

    gradient = jax.jit(jax.grad(loss))
    exact = gradient(reader)
    with jax.default_matmul_precision("bfloat16"):
        rounded = gradient(reader)
    for a, b in zip(*map(jax.tree.leaves, (rounded, exact)), strict=True):
        assert 0 < relative_error(a, b) < 0.02


def relative_error(a: Any, b: Any) -> float:
    a, b = (np.ravel(x) for x in (a, b))
    return float(np.linalg.norm(a - b) / np.linalg.norm(b))


@pytest.mark.parametrize(
    "backbone",
    [
        SAC(Segment(32), hidden=(64, 64)),
        TD3(HC(Pairwise(1, (32, 32)), 0.5), hidden=(64, 64), policy_delay=1),
    ],
    ids=lambda backbone: type(backbone).__name__,
)
def test_an_update_of_rounded_products_is_close_to_the_exact_one(backbone: Any) -> None:
    batch, shape = random_batch(4, 0, size=64, seed=3)
    state = backbone.init(0, shape)
    metrics = quick_jit(lambda state, batch: backbone.update(state, batch)[1])
    exact = metrics(state, batch)
    with jax.default_matmul_precision("bfloat16"):
        rounded = metrics(state, batch)
    assert any(float(rounded[name]) != float(exact[name]) for name in exact)
    for name, value in exact.items():
        np.testing.assert_allclose(rounded[name], value, rtol=0.01, atol=0.003, err_msg=name)
