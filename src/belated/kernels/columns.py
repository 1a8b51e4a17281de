"""Steps of windows as columns, on which networks with few units learn fastest."""

from __future__ import annotations

import jax
import jax.numpy as jnp


def as_columns(window: jax.Array) -> jax.Array:
    """Write windows (W, B, F) as columns (F, W·B): the first step of each, then the second."""
    return _put_in_order(window.reshape(-1, window.shape[-1]).T)


def pairs(columns: jax.Array, lag: int) -> jax.Array:
    """Put columns (F, N) on top of those ``lag`` columns later: (2F, N − lag).

    A step is not paired with itself: for lag = 0 the columns stay as they are.
    """
    if lag == 0:
        return columns
    return _put_in_order(jnp.concatenate([columns[:, :-lag], columns[:, lag:]]))


def _put_in_order(columns: jax.Array) -> jax.Array:
    """Keep XLA from multiplying by transposed or overlapping rows.

    That is slower than writing them out once for all the networks that use them.
    """
    written: jax.Array = jax.lax.optimization_barrier(columns)  # type: ignore[no-untyped-call]
    return written


def sums_of_prefixes(values: jax.Array) -> jax.Array:
    """Sum the first m rows of values (W, B), for every m from 0 on: (W + 1, B).

    A product with ones, because the gradient of `jnp.cumsum` is slow.
    """
    width = len(values)
    return jnp.tril(jnp.ones((width + 1, width)), -1) @ values
