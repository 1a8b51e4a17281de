"""Which parts of a window a critic looks at."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from belated.experience.batch import IntervalBatch
from belated.experience.step import ProblemShape


def following_observations(observations: jax.Array, mask: jax.Array, end: jax.Array) -> jax.Array:
    """What was observed after each step of windows: (W, B, D), in padding anything.

    Args:
        observations: (W, B, D), those of the steps.
        mask: (W, B), 0 for padding.
        end: (B, D), what was observed after each window's last step.
    """
    places = jnp.arange(len(observations))[:, None]
    last = jnp.max(jnp.where(mask > 0, places, 0), axis=0)
    following = jnp.concatenate([observations[1:], end[None]])
    return jnp.where((places == last)[:, :, None], end, following)


def with_outcomes(batch: IntervalBatch, shape: ProblemShape) -> IntervalBatch:
    """A batch whose windows also tell what each step changed: (W, B, D + A + D − 1)."""
    observations, _ = shape.split(batch.window)
    following = following_observations(observations, batch.window_mask, batch.window_end)
    change = shape.state_of(following) - shape.state_of(observations)
    change *= batch.window_mask[:, :, None]
    return batch._replace(window=jnp.concatenate([batch.window, change], axis=-1))


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
