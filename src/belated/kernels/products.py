"""Matrix products of hidden layers, in float32 or with factors rounded to bfloat16.

Recent CPUs multiply bfloat16 matrices about four times as fast as float32 ones, and sum in
float32. XLA does not use that on its own: on a CPU it ignores `jax.default_matmul_precision`, has
kernels only for some orientations of bfloat16 matrices, and is slow at converting float32 to
bfloat16. The products here obey `jax.default_matmul_precision` and keep to what is fast.
"""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp

Kept = tuple[jax.Array, jax.Array]


def rounded_products() -> bool:
    """Whether products of hidden layers use bfloat16 factors."""
    precision: str | None = jax.config.jax_default_matmul_precision  # type: ignore[attr-defined]
    return precision == "bfloat16"


def factor(x: jax.Array) -> jax.Array:
    """Prepare a factor for hidden layers' products: round it if asked to."""
    return rounded(x) if rounded_products() else x


@partial(jax.custom_vjp, nondiff_argnums=(2,))
def rows_product(x: jax.Array, weight: jax.Array, rounding: bool) -> jax.Array:
    """The product xW of rows x (N, inputs) and W (inputs, outputs).

    Args:
        x: the rows.
        weight: W.
        rounding: whether to round the factors of this product and of its gradients.
    """
    return _rows_forward(x, weight, rounding)[0]


def _rows_forward(x: jax.Array, weight: jax.Array, rounding: bool) -> tuple[jax.Array, Kept]:
    if rounding:
        x, weight = rounded(x), rounded(weight)
    return product(x, weight), (x, weight)


def _rows_backward(rounding: bool, kept: Kept, gradient: jax.Array) -> tuple[jax.Array, jax.Array]:
    x, weight = kept
    gradient = rounded(gradient) if rounding else gradient
    return product_with_transpose(gradient, weight), _weight_gradient(x, gradient)


def _weight_gradient(x: jax.Array, gradient: jax.Array) -> jax.Array:
    """The product xᵀg, by transposing the narrower of the two."""
    if gradient.shape[1] < x.shape[1]:
        return transposed(product(transposed(gradient), x))
    return product(transposed(x), gradient)


rows_product.defvjp(_rows_forward, _rows_backward)


@jax.custom_vjp
def columns_product(x: jax.Array, weight: jax.Array) -> jax.Array:
    """The product Wᵀx of columns x (inputs, N) and W (inputs, outputs), from rounded factors."""
    return _columns_forward(x, weight)[0]


def _columns_forward(x: jax.Array, weight: jax.Array) -> tuple[jax.Array, Kept]:
    x, weight = rounded(x), rounded(weight)
    return product(transposed(weight), x), (x, weight)


def _columns_backward(kept: Kept, gradient: jax.Array) -> tuple[jax.Array, jax.Array]:
    x, weight = kept
    gradient = rounded(gradient)
    return product(weight, gradient), product_with_transpose(x, gradient)


columns_product.defvjp(_columns_forward, _columns_backward)


def rounded(x: jax.Array) -> jax.Array:
    """Round to the nearest bfloat16, ties to even; eight times as fast as `astype`."""
    bits = jax.lax.bitcast_convert_type(x, jnp.uint32)
    upper = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
    return jax.lax.bitcast_convert_type(upper.astype(jnp.uint16), jnp.bfloat16)


def product(a: jax.Array, b: jax.Array) -> jax.Array:
    """The product ab, summed in float32."""
    return jnp.matmul(a, b, preferred_element_type=jnp.float32)


def product_with_transpose(a: jax.Array, b: jax.Array) -> jax.Array:
    """The product abᵀ, summed in float32."""
    contracted = ((1,), (1,))
    return jax.lax.dot_general(a, b, (contracted, ((), ())), preferred_element_type=jnp.float32)


def transposed(x: jax.Array) -> jax.Array:
    """Turn rows into columns.

    XLA would make a plain transpose part of the product, for which its kernels are slow or, in
    bfloat16, missing. It does not see through the transpose of a matrix that is cut in two.
    """
    rows, columns = x.shape
    if columns % 2 == 1:
        return x.T
    return x.reshape(rows, 2, -1).transpose(1, 2, 0).reshape(columns, rows)
