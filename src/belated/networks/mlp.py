"""Linear layers and multilayer perceptrons over batches."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from belated.kernels.products import columns_product, rounded_products, rows_product


class Linear(eqx.Module):
    """x ↦ xW + b over the last axis; weights and bias from U(±1/√inputs).

    Parameters are drawn with NumPy: JAX would spend seconds compiling to draw them once.

    Args:
        rng: draws the parameters.
        inputs: the size of x.
        outputs: the size of xW + b.
        hidden: whether it connects hidden units, so that its products may be rounded. What enters
            or leaves a network never is.
    """

    weight: jax.Array  # (inputs, outputs)
    bias: jax.Array  # (outputs,)
    hidden: bool = eqx.field(static=True)

    def __init__(
        self, rng: np.random.Generator, inputs: int, outputs: int, *, hidden: bool = False
    ) -> None:
        self.hidden = hidden
        bound = 1 / math.sqrt(inputs)
        self.weight = jnp.asarray(rng.uniform(-bound, bound, (inputs, outputs)), jnp.float32)
        self.bias = jnp.asarray(rng.uniform(-bound, bound, outputs), jnp.float32)

    def __call__(self, x: jax.Array) -> jax.Array:
        """Apply the layer."""
        if not rounded_products():
            return x @ self.weight + self.bias
        product = rows_product(x.reshape(-1, x.shape[-1]), self.weight, self.hidden)
        return product.reshape(*x.shape[:-1], -1) + self.bias

    def columns(self, x: jax.Array) -> jax.Array:
        """Apply the layer to columns: (inputs, N) to (outputs, N).

        For thousands of columns the gradient of the weights, a product over N, runs twice as fast
        on a CPU as it does for rows.
        """
        rounding = self.hidden and rounded_products()
        product = columns_product(x, self.weight) if rounding else self.weight.T @ x
        return product + self.bias[:, None]


def linear_layers(
    rng: np.random.Generator, inputs: int, hidden: Sequence[int], outputs: int
) -> tuple[Linear, ...]:
    """Make the layers of a perceptron."""
    sizes = [inputs, *hidden, outputs]
    return tuple(
        Linear(rng, m, n, hidden=0 < i < len(hidden))
        for i, (m, n) in enumerate(itertools.pairwise(sizes))
    )


class MLP(eqx.Module):
    """Linear layers with ReLU in between."""

    layers: tuple[Linear, ...]

    def __init__(
        self, rng: np.random.Generator, inputs: int, hidden: Sequence[int], outputs: int
    ) -> None:
        self.layers = linear_layers(rng, inputs, hidden, outputs)

    def __call__(self, x: jax.Array) -> jax.Array:
        """Apply the network over the last axis."""
        for layer in self.layers[:-1]:
            x = jax.nn.relu(layer(x))
        return self.layers[-1](x)

    def columns(self, x: jax.Array) -> jax.Array:
        """Apply the network to columns: (inputs, N) to (outputs, N); see `Linear.columns`."""
        for layer in self.layers[:-1]:
            x = jax.nn.relu(layer.columns(x))
        return self.layers[-1].columns(x)


class TanhMLP(eqx.Module):
    """Linear layers with tanh in between, as is usual for PPO.

    Weights are orthogonal, scaled by √2 (the last layer by ``output_scale``); biases are 0.
    """

    layers: tuple[Linear, ...]

    def __init__(
        self,
        rng: np.random.Generator,
        inputs: int,
        hidden: Sequence[int],
        outputs: int,
        output_scale: float = 1.0,
    ) -> None:
        sizes = [inputs, *hidden, outputs]
        scales = [math.sqrt(2)] * len(hidden) + [output_scale]
        self.layers = tuple(
            _orthogonal(rng, m, n, scale)
            for (m, n), scale in zip(itertools.pairwise(sizes), scales, strict=True)
        )

    def __call__(self, x: jax.Array) -> jax.Array:
        """Apply the network over the last axis."""
        for layer in self.layers[:-1]:
            x = jnp.tanh(layer(x))
        return self.layers[-1](x)


def _orthogonal(rng: np.random.Generator, inputs: int, outputs: int, scale: float) -> Linear:
    layer = Linear(rng, inputs, outputs)
    tall = rng.normal(size=(max(inputs, outputs), min(inputs, outputs)))
    basis, triangle = np.linalg.qr(tall)
    basis *= np.sign(np.diag(triangle))  # otherwise the directions are not uniform
    weight = basis if inputs >= outputs else basis.T
    parameters = (jnp.asarray(scale * weight, jnp.float32), jnp.zeros(outputs, jnp.float32))
    made: Linear = eqx.tree_at(lambda linear: (linear.weight, linear.bias), layer, parameters)
    return made
