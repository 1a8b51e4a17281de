"""Policies over actions in [−1, 1]^A, and one whose samples are clipped to it."""

from __future__ import annotations

import math
from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from belated.networks.mlp import MLP, TanhMLP
from belated.networks.moments import Moments
from belated.networks.normalization import NetworkStatistics, NormalizedMLP
from belated.networks.plain import PlainPolicy

LOG_STD_MIN, LOG_STD_MAX = -20.0, 2.0


class GaussianPolicy(eqx.Module):
    """A Gaussian squashed by tanh; its mean and log standard deviation depend on the state."""

    trunk: MLP

    def __init__(
        self,
        rng: np.random.Generator,
        observation_size: int,
        hidden: Sequence[int],
        action_size: int,
    ) -> None:
        self.trunk = MLP(rng, observation_size, hidden, 2 * action_size)

    def sample(self, observation: jax.Array, noise: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Turn standard normal noise (B, A) into actions (B, A) and their log densities (B,)."""
        return squashed_sample(self.trunk(observation), noise)

    def mode(self, observation: jax.Array) -> jax.Array:
        """The deterministic action."""
        return squashed_mode(self.trunk(observation))

    def plain(self) -> PlainPolicy:
        """The deterministic actions, without JAX."""
        return PlainPolicy.of(self.trunk.layers, "relu", "tanh").without_spread()


class NormalizedGaussianPolicy(eqx.Module):
    """A `GaussianPolicy` with batch normalisation; the statistics are not trained."""

    trunk: NormalizedMLP
    statistics: NetworkStatistics

    def __init__(
        self,
        rng: np.random.Generator,
        observation_size: int,
        hidden: Sequence[int],
        action_size: int,
    ) -> None:
        self.trunk = NormalizedMLP(rng, observation_size, hidden, 2 * action_size)
        self.statistics = self.trunk.fresh_statistics

    def replaced(
        self, trunk: NormalizedMLP, statistics: NetworkStatistics
    ) -> NormalizedGaussianPolicy:
        """The policy with another trunk and other statistics."""
        made: NormalizedGaussianPolicy = eqx.tree_at(
            lambda policy: (policy.trunk, policy.statistics), self, (trunk, statistics)
        )
        return made

    def sample(self, observation: jax.Array, noise: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Turn standard normal noise (B, A) into actions (B, A) and their log densities (B,)."""
        return squashed_sample(self.trunk(observation, self.statistics), noise)

    def mode(self, observation: jax.Array) -> jax.Array:
        """The deterministic action."""
        return squashed_mode(self.trunk(observation, self.statistics))

    def plain(self) -> PlainPolicy:
        """The deterministic actions, without JAX."""
        layers = self.trunk.folded(self.statistics)
        return PlainPolicy.of(layers, "relu", "tanh").without_spread()


def squashed_sample(outputs: jax.Array, noise: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Turn a trunk's outputs (B, 2A) and normal noise (B, A) into actions and log densities."""
    mean, log_std = jnp.split(outputs, 2, axis=-1)
    log_std = jnp.clip(log_std, LOG_STD_MIN, LOG_STD_MAX)
    raw = mean + jnp.exp(log_std) * noise
    log_normal = -0.5 * noise**2 - log_std - 0.5 * math.log(2 * math.pi)
    # log(1 − tanh²(u)), in a form that does not underflow for large |u|
    size = jnp.abs(raw)
    log_slope = 2 * (math.log(2) - size - jnp.log(1 + jnp.exp(-2 * size)))
    return jnp.tanh(raw), jnp.sum(log_normal - log_slope, axis=-1)


def squashed_mode(outputs: jax.Array) -> jax.Array:
    """The deterministic action for a trunk's outputs (B, 2A)."""
    return jnp.tanh(jnp.split(outputs, 2, axis=-1)[0])


class DeterministicPolicy(eqx.Module):
    """One action for each state."""

    trunk: MLP

    def __init__(
        self,
        rng: np.random.Generator,
        observation_size: int,
        hidden: Sequence[int],
        action_size: int,
    ) -> None:
        self.trunk = MLP(rng, observation_size, hidden, action_size)

    def mode(self, observation: jax.Array) -> jax.Array:
        """The action."""
        return jnp.tanh(self.trunk(observation))

    def plain(self) -> PlainPolicy:
        """The actions, without JAX."""
        return PlainPolicy.of(self.trunk.layers, "relu", "tanh")


class UnsquashedPolicy(eqx.Module):
    """A Gaussian whose log standard deviation is the same in every state.

    Its samples may lie outside [−1, 1]; they are clipped on the way to the environment.
    """

    trunk: TanhMLP
    log_std: jax.Array  # (A,)

    def __init__(
        self,
        rng: np.random.Generator,
        observation_size: int,
        hidden: Sequence[int],
        action_size: int,
    ) -> None:
        self.trunk = TanhMLP(rng, observation_size, hidden, action_size, output_scale=0.01)
        self.log_std = jnp.zeros(action_size, jnp.float32)

    def mean(self, observation: jax.Array) -> jax.Array:
        """The most likely action."""
        return self.trunk(observation)

    def mode(self, observation: jax.Array) -> jax.Array:
        """The deterministic action, within bounds."""
        return jnp.clip(self.mean(observation), -1, 1)

    def log_prob(self, observation: jax.Array, action: jax.Array) -> jax.Array:
        """The log densities of actions (..., A): (...)."""
        noise = (action - self.mean(observation)) * jnp.exp(-self.log_std)
        return jnp.sum(-0.5 * noise**2 - self.log_std - 0.5 * math.log(2 * math.pi), axis=-1)

    def entropy(self) -> jax.Array:
        """The entropy, the same in every state."""
        return jnp.sum(self.log_std + 0.5 * math.log(2 * math.pi * math.e))


class NormalizedPolicy(eqx.Module):
    """An `UnsquashedPolicy` that sees normalised observations."""

    policy: UnsquashedPolicy
    normalizer: Moments

    def sample(self, observation: jax.Array, noise: jax.Array) -> jax.Array:
        """Turn standard normal noise (B, A) into actions (B, A)."""
        mean = self.policy.mean(self.normalizer.normalize(observation))
        return mean + jnp.exp(self.policy.log_std) * noise

    def mode(self, observation: jax.Array) -> jax.Array:
        """The deterministic action."""
        return self.policy.mode(self.normalizer.normalize(observation))

    def plain(self) -> PlainPolicy:
        """The deterministic actions, without JAX."""
        mean, scale, bound = self.normalizer.normalization
        return PlainPolicy.of(
            self.policy.trunk.layers, "tanh", "clip", mean=mean, scale=scale, bound=bound
        )
