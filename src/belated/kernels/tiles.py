"""Values at some places out of many, a tile at a time."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp

TILE = 256


def values_where(wanted: jax.Array, values_of: Callable[[jax.Array], jax.Array]) -> jax.Array:
    """Compute values where they are wanted and put 0 elsewhere.

    Only the wanted places are gone through, a tile at a time: a step is in the middle of its
    interval on average, so half of its window is not its history.

    Args:
        wanted: (N,), whether the value at a place is wanted.
        values_of: computes the values at some places (M,).

    Returns:
        (N,).
    """
    number, size = len(wanted), min(TILE, len(wanted))
    count = jnp.sum(wanted)
    places = jnp.nonzero(wanted, size=number, fill_value=0)[0]

    def compute(tile: jax.Array, values: jax.Array) -> jax.Array:
        start = (tile * size,)  # both slices shift a tile that sticks out back to the end
        some = values_of(jax.lax.dynamic_slice(places, start, (size,)))
        return jax.lax.dynamic_update_slice(values, some, start)

    values = jax.lax.fori_loop(0, -(-count // size), compute, jnp.zeros(number))
    return jnp.zeros(number).at[places].add(jnp.where(jnp.arange(number) < count, values, 0.0))
