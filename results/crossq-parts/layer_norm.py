"""SAC whose C has layer normalisation, the cheap alternative to CrossQ."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import belated
from belated.critics import action_values
from belated.critics.hc import HCCritic
from belated.experience.step import ProblemShape
from belated.methods import HC, SAC, Method, Singleton
from belated.networks import Linear


class LayerNormValue(eqx.Module):
    """C(s, a): hidden layers are normalised over their units, scaled, and cut off at 0."""

    layers: tuple[Linear, ...]
    scales: tuple[jax.Array, ...]
    shifts: tuple[jax.Array, ...]
    shape: ProblemShape = eqx.field(static=True)

    def __init__(
        self, rng: np.random.Generator, shape: ProblemShape, hidden: tuple[int, ...]
    ) -> None:
        before, after = action_values.sizes(shape)
        sizes = [before, *hidden, after]
        self.layers = tuple(
            Linear(rng, m, n, hidden=0 < i < len(hidden))
            for i, (m, n) in enumerate(itertools.pairwise(sizes))
        )
        self.scales = tuple(jnp.ones(size, jnp.float32) for size in hidden)
        self.shifts = tuple(jnp.zeros(size, jnp.float32) for size in hidden)
        self.shape = shape

    def __call__(self, observation: jax.Array, action: jax.Array | None) -> jax.Array:
        """What actions are worth, (B,)."""
        x = action_values.inputs(self.shape, observation, action)
        for layer, scale, shift in zip(self.layers, self.scales, self.shifts, strict=False):
            x = layer(x)
            x = (x - jnp.mean(x, -1, keepdims=True)) * jax.lax.rsqrt(
                jnp.var(x, -1, keepdims=True) + 1e-6
            )
            x = jax.nn.relu(scale * x + shift)
        return action_values.value(self.shape, self.layers[-1](x), action)


@belated.register
@dataclass(frozen=True)
class LayerNormHC(HC):
    """The HC-decomposition with layer normalisation in C."""

    def build(
        self, rng: np.random.Generator, shape: ProblemShape, hidden: tuple[int, ...]
    ) -> HCCritic:
        """Make a freshly initialised critic."""
        critic = super().build(rng, shape, hidden)
        current = LayerNormValue(rng, shape, hidden)
        made: HCCritic = eqx.tree_at(lambda c: c.current, critic, current)
        return made


HC_SINGLETON = Method(SAC(critic=LayerNormHC(Singleton((64, 64)), 0.05), learning_rate=1e-3))
