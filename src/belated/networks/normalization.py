"""Batch normalisation, and a perceptron with it.

What is trained (scales and shifts) is in the modules. The running statistics are not: they belong
to whoever trains, and are handed in where a network is only used.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from belated.networks.mlp import Linear, linear_layers

Tree = TypeVar("Tree")

EPSILON = 1e-3
DEAD_BELOW = 1e-6
"""A unit whose variance is smaller says the same whatever it sees."""

GRADIENTS = ("straight-through", "full", "naive")


class Statistics(NamedTuple):
    """Means and variances of units."""

    mean: jax.Array  # (units,)
    variance: jax.Array  # (units,)

    @classmethod
    def of(cls, rows: jax.Array) -> Statistics:
        """Those of rows (N, units)."""
        mean = jnp.mean(rows, axis=0)
        return cls(mean, jnp.mean((rows - mean) ** 2, axis=0))

    def joined(self, other: Statistics) -> Statistics:
        """Those of two sets of rows together, both of the same size."""
        gap = (self.mean - other.mean) / 2
        return Statistics(
            (self.mean + other.mean) / 2, (self.variance + other.variance) / 2 + gap**2
        )

    def moved(self, new: Statistics, rate: float) -> Statistics:
        """Running statistics after one more batch."""
        return Statistics(*(old + rate * (now - old) for old, now in zip(self, new, strict=True)))


NetworkStatistics = tuple[Statistics, ...]
"""Those of a network: one for each of its normalisations, from the input on."""


def moved(running: NetworkStatistics, new: NetworkStatistics, rate: float) -> NetworkStatistics:
    """Running statistics of a network after one more batch."""
    return tuple(old.moved(now, rate) for old, now in zip(running, new, strict=True))


def dead_units(statistics: Sequence[NetworkStatistics]) -> jax.Array:
    """The part of networks' hidden units that are the same for all rows."""
    hidden = [each.variance for network in statistics for each in network[1:]]
    return jnp.mean(jnp.concatenate(hidden) < DEAD_BELOW)


class BatchNorm(eqx.Module):
    """x ↦ scale·(x − mean)/√(variance + ε) + shift."""

    scale: jax.Array
    shift: jax.Array

    def __init__(self, units: int) -> None:
        self.scale = jnp.ones(units, jnp.float32)
        self.shift = jnp.zeros(units, jnp.float32)

    def __call__(self, rows: jax.Array, statistics: Statistics) -> jax.Array:
        """Normalise rows (N, units) by the statistics given."""
        slope = self.scale * jax.lax.rsqrt(statistics.variance + EPSILON)
        return (rows - statistics.mean) * slope + self.shift


class FoldedLayer(NamedTuple):
    """A linear layer and the normalisation of its input, as one."""

    weight: Any
    bias: Any


class NormalizedMLP(eqx.Module):
    """Linear layers with ReLU in between; the input and every hidden layer are normalised."""

    layers: tuple[Linear, ...]
    norms: tuple[BatchNorm, ...]

    def __init__(
        self, rng: np.random.Generator, inputs: int, hidden: Sequence[int], outputs: int
    ) -> None:
        self.layers = linear_layers(rng, inputs, hidden, outputs)
        self.norms = tuple(BatchNorm(size) for size in (inputs, *hidden))

    @property
    def fresh_statistics(self) -> NetworkStatistics:
        """Running statistics before the first batch: mean 0, variance 1."""
        return tuple(
            Statistics(jnp.zeros_like(norm.shift), jnp.ones_like(norm.scale)) for norm in self.norms
        )

    def __call__(self, rows: jax.Array, statistics: NetworkStatistics) -> jax.Array:
        """Apply the network to rows (N, inputs); no row depends on the others."""
        for number, (norm, layer) in enumerate(zip(self.norms, self.layers, strict=True)):
            rows = layer(norm(_activated(rows, number), statistics[number]))
        return rows

    def folded(self, statistics: NetworkStatistics) -> list[FoldedLayer]:
        """The same network in use, as layers without normalisation."""
        folded = []
        for norm, layer, seen in zip(self.norms, self.layers, statistics, strict=True):
            numbers = (norm.scale, norm.shift, *seen, layer.weight, layer.bias)
            scale, shift, mean, variance, weight, bias = (np.asarray(x, float) for x in numbers)
            slope = scale / np.sqrt(variance + EPSILON)
            bias = bias + (shift - mean * slope) @ weight
            folded.append(FoldedLayer(weight * slope[:, None], bias))
        return folded

    def trained(self, rows: jax.Array) -> tuple[jax.Array, NetworkStatistics]:
        """Apply the network, normalised by the rows' own statistics, and return those too."""
        seen = []
        for number, (norm, layer) in enumerate(zip(self.norms, self.layers, strict=True)):
            rows = _activated(rows, number)
            seen.append(Statistics.of(rows))
            rows = layer(norm(rows, seen[-1]))
        return rows, tuple(seen)

    def trained_on_both(
        self, rows: jax.Array, following: jax.Array, gradient: str = "straight-through"
    ) -> tuple[jax.Array, jax.Array, NetworkStatistics]:
        """Apply the network to rows and to those that follow them, normalised by joint statistics.

        The gradient reaches the parameters through the rows; how it treats the joint statistics is
        a matter of choice:

        - straight-through: as if they were the rows' own. The next rows are moved by the same
          parameters, so half a correction would not keep the units centred.
        - full: as they are, through both halves.
        - naive: as they are, but the next rows count as constants.

        Args:
            rows: (N, inputs).
            following: (N, inputs).
            gradient: one of `GRADIENTS`.

        Returns:
            The outputs for both, (N, outputs) each; there is no gradient through the second. The
            joint statistics.
        """

        def constant(tree: Tree) -> Tree:
            kept: Tree = tree if gradient == "full" else jax.lax.stop_gradient(tree)
            return kept

        still, following = constant(self), constant(following)
        seen = []
        for number, layer in enumerate(self.layers):
            rows, following = _activated(rows, number), _activated(following, number)
            own = Statistics.of(rows)
            joint = own.joined(Statistics.of(following))
            seen.append(joint)
            if gradient == "straight-through":
                used = Statistics(
                    *(o + jax.lax.stop_gradient(j - o) for o, j in zip(own, joint, strict=True))
                )
            else:
                used = joint
            rows = layer(self.norms[number](rows, used))
            following = still.layers[number](still.norms[number](following, constant(joint)))
        return rows, jax.lax.stop_gradient(following), tuple(seen)


def _activated(rows: jax.Array, number: int) -> jax.Array:
    """What a layer's normalisation sees: the input as it is, hidden units after ReLU."""
    return rows if number == 0 else jax.nn.relu(rows)
