"""Which parts of a window a critic looks at."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from belated.experience.batch import IntervalBatch
from belated.experience.step import ProblemShape


def is_interval_end(batch: IntervalBatch) -> jax.Array:
    """Where a step is its interval's last: (B,)."""
    at_end: jax.Array = batch.position == batch.length - 1
    return at_end


def history(batch: IntervalBatch, shape: ProblemShape) -> tuple[jax.Array, jax.Array]:
    """The history τ_{t_i−c:t} of each step of a batch.

    Returns:
        The steps (W, B, D + A) and their mask (W, B).
    """
    places = jnp.arange(len(batch.window))[:, None]
    return batch.window, batch.window_mask * (places < shape.overlap + batch.position)


def next_history(batch: IntervalBatch, shape: ProblemShape) -> tuple[jax.Array, jax.Array]:
    """The history of the step that follows each step of a batch.

    Returns:
        The steps (W, B, D + A) and their mask (W, B).
    """
    places = jnp.arange(len(batch.window))[:, None]
    mask = batch.window_mask * (places <= shape.overlap + batch.position)
    ends = is_interval_end(batch)
    if shape.overlap == 0:
        return batch.window, mask * ~ends
    fresh, fresh_mask = _next_overlap(batch, shape)
    missing = len(batch.window) - shape.overlap
    fresh = jnp.pad(fresh, ((0, missing), (0, 0), (0, 0)))
    fresh_mask = jnp.pad(fresh_mask, ((0, missing), (0, 0)))
    return jnp.where(ends[:, None], fresh, batch.window), jnp.where(ends, fresh_mask, mask)


def _next_overlap(batch: IntervalBatch, shape: ProblemShape) -> tuple[jax.Array, jax.Array]:
    """The last c steps of each window, as the overlap of the interval that follows.

    They are the same steps, but their phase, if it is told, counts from t_{i+1} instead of t_i.

    Returns:
        The steps (c, B, D + A) and their mask (c, B).
    """
    places = batch.length + jnp.arange(shape.overlap)[:, None]  # (c, B)
    mask = jnp.take_along_axis(batch.window_mask, places, axis=0)
    steps = jnp.take_along_axis(batch.window, places[:, :, None], axis=0)
    steps = steps.at[:, :, shape.phase_place].set(shape.phases(-shape.overlap, 0))
    return steps * mask[:, :, None], mask
