"""Which parts of a window a critic looks at."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from belated.critics.base import ProblemShape
from belated.replay import IntervalBatch


def is_interval_end(batch: IntervalBatch) -> jax.Array:
    """Where a step is its interval's last: (B,)."""
    at_end: jax.Array = batch.position == batch.length - 1
    return at_end


def next_overlap(batch: IntervalBatch, shape: ProblemShape) -> tuple[jax.Array, jax.Array]:
    """The last c steps of each window, as the overlap of the interval that follows.

    They are the same steps, but their phase counts from t_{i+1} instead of t_i.

    Returns:
        The steps (c, B, D + A) and their mask (c, B).
    """
    places = batch.length + jnp.arange(shape.overlap)[:, None]  # (c, B)
    mask = jnp.take_along_axis(batch.window_mask, places, axis=0)
    steps = jnp.take_along_axis(batch.window, places[:, :, None], axis=0)
    phase = jnp.arange(-shape.overlap, 0) / shape.max_length
    steps = steps.at[:, :, shape.observation_size - 1].set(phase[:, None])
    return steps * mask[:, :, None], mask
