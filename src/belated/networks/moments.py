"""The mean and variance of everything seen so far."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp


class Moments(eqx.Module):
    """Running mean and variance over rows of numbers.

    Before the first row the mean is 0 and the variance 1, so nothing is scaled.
    """

    mean: jax.Array
    variance: jax.Array
    count: jax.Array

    def __init__(self, shape: tuple[int, ...] = ()) -> None:
        self.mean = jnp.zeros(shape, jnp.float32)
        self.variance = jnp.ones(shape, jnp.float32)
        self.count = jnp.zeros((), jnp.float32)

    def update(self, rows: jax.Array, mask: jax.Array) -> Moments:
        """Add the rows (..., *shape) where the mask (...) is 1 (Chan et al., 1979)."""
        axes = tuple(range(mask.ndim))
        weight = mask.reshape(mask.shape + (1,) * self.mean.ndim)
        count = jnp.sum(mask)
        mean = jnp.sum(rows * weight, axes) / jnp.maximum(count, 1)
        squares = jnp.sum((rows - mean) ** 2 * weight, axes)
        total = self.count + count
        share = count / jnp.maximum(total, 1)
        change = mean - self.mean
        old_squares = self.variance * self.count
        both = old_squares + squares + change**2 * self.count * share
        moments: Moments = eqx.tree_at(
            lambda m: (m.mean, m.variance, m.count),
            self,
            (
                self.mean + change * share,
                jnp.where(total > 0, both / jnp.maximum(total, 1), self.variance),
                total,
            ),
        )
        return moments

    def normalize(self, rows: jax.Array) -> jax.Array:
        """Shift and scale rows to mean 0 and variance 1, bounded by ±10."""
        mean, scale, bound = self.normalization
        return jnp.clip((rows - mean) / scale, -bound, bound)

    @property
    def normalization(self) -> tuple[jax.Array, jax.Array, float]:
        """What is subtracted, what is divided by, and where the outcome is bounded."""
        return self.mean, jnp.sqrt(self.variance + 1e-8), 10.0

    @property
    def scale(self) -> jax.Array:
        """The standard deviation, but at least a tenth of the mean's size."""
        smallest = jnp.maximum(0.1 * jnp.abs(self.mean), 1e-6)
        return jnp.maximum(jnp.sqrt(self.variance), smallest)
