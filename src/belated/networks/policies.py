"""Policies: for actions in [−1, 1]^A, or clipped to it, and for discrete ones."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from belated.experience.step import ProblemShape
from belated.networks import categorical
from belated.networks.heads import Head, Outlook, head_of
from belated.networks.mlp import MLP, TanhMLP
from belated.networks.moments import Moments
from belated.networks.normalization import NetworkStatistics, NormalizedMLP
from belated.networks.plain import PlainPolicy


class HeadedPolicy(eqx.Module):
    """A network whose outputs in a state are a distribution over actions."""

    shape: ProblemShape = eqx.field(static=True)

    @abstractmethod
    def outputs(self, observation: jax.Array) -> jax.Array:
        """The network's outputs in states (B, D)."""

    @property
    def head(self) -> Head:
        """What the outputs stand for."""
        return head_of(self.shape)

    def outlook(self, observation: jax.Array, noise: jax.Array) -> Outlook:
        """What may be done in states (B, D), given standard normal noise (B, A)."""
        return self.head.outlook(self.outputs(observation), observation, noise)

    def act(self, observation: jax.Array, noise: jax.Array) -> jax.Array:
        """Turn standard normal noise (B, A) into actions (B, A)."""
        return self.head.act(self.outputs(observation), observation, noise)

    def mode(self, observation: jax.Array) -> jax.Array:
        """The deterministic action."""
        return self.head.mode(self.outputs(observation), observation)


class StochasticPolicy(HeadedPolicy):
    """A perceptron."""

    trunk: MLP

    def __init__(
        self, rng: np.random.Generator, shape: ProblemShape, hidden: Sequence[int]
    ) -> None:
        self.shape = shape
        self.trunk = MLP(rng, shape.observation_size, hidden, self.head.outputs)

    def outputs(self, observation: jax.Array) -> jax.Array:
        """Those of the perceptron."""
        return self.trunk(observation)

    def plain(self) -> PlainPolicy:
        """The deterministic actions, without JAX."""
        return self.head.plain(self.trunk.layers)


class BatchNormPolicy(HeadedPolicy):
    """A perceptron with batch normalisation; the statistics are not trained."""

    trunk: NormalizedMLP
    statistics: NetworkStatistics

    def __init__(
        self, rng: np.random.Generator, shape: ProblemShape, hidden: Sequence[int]
    ) -> None:
        self.shape = shape
        self.trunk = NormalizedMLP(rng, shape.observation_size, hidden, self.head.outputs)
        self.statistics = self.trunk.fresh_statistics

    def replaced(self, trunk: NormalizedMLP, statistics: NetworkStatistics) -> BatchNormPolicy:
        """The policy with another trunk and other statistics."""
        made: BatchNormPolicy = eqx.tree_at(
            lambda policy: (policy.trunk, policy.statistics), self, (trunk, statistics)
        )
        return made

    def outputs(self, observation: jax.Array) -> jax.Array:
        """Those of the perceptron, by the running statistics."""
        return self.trunk(observation, self.statistics)

    def plain(self) -> PlainPolicy:
        """The deterministic actions, without JAX."""
        return self.head.plain(self.trunk.folded(self.statistics))


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

    def act(
        self, observation: jax.Array, noise: jax.Array, allowed: jax.Array | None = None
    ) -> jax.Array:
        """Turn standard normal noise (B, A) into actions (B, A)."""
        return self.mean(observation) + jnp.exp(self.log_std) * noise

    def mode(self, observation: jax.Array, allowed: jax.Array | None = None) -> jax.Array:
        """The deterministic action, within bounds."""
        return jnp.clip(self.mean(observation), -1, 1)

    def log_prob(
        self, observation: jax.Array, action: jax.Array, allowed: jax.Array | None = None
    ) -> jax.Array:
        """The log densities of actions (..., A): (...)."""
        noise = (action - self.mean(observation)) * jnp.exp(-self.log_std)
        return jnp.sum(-0.5 * noise**2 - self.log_std - 0.5 * math.log(2 * math.pi), axis=-1)

    def entropy(self, observation: jax.Array, allowed: jax.Array | None = None) -> jax.Array:
        """The entropy, the same in every state: ()."""
        return jnp.sum(self.log_std + 0.5 * math.log(2 * math.pi * math.e))

    def plain(self, shape: ProblemShape, **normalization: Any) -> PlainPolicy:
        """The deterministic actions, without JAX."""
        return PlainPolicy.of(self.trunk.layers, "tanh", "clip", **normalization)


class ChoicePolicy(eqx.Module):
    """A distribution over discrete actions, which may not all be ``allowed`` (..., A)."""

    trunk: TanhMLP
    choices: tuple[int, ...] = eqx.field(static=True)

    def __init__(
        self, rng: np.random.Generator, shape: ProblemShape, hidden: Sequence[int]
    ) -> None:
        sizes = shape.observation_size, hidden, shape.action_size
        self.trunk = TanhMLP(rng, *sizes, output_scale=0.01)
        self.choices = shape.choices

    def log_probabilities(
        self, observation: jax.Array, allowed: jax.Array | None = None
    ) -> jax.Array:
        """Those of each component's options: (..., A)."""
        return categorical.log_probabilities(self.trunk(observation), self.choices, allowed)

    def act(
        self, observation: jax.Array, noise: jax.Array, allowed: jax.Array | None = None
    ) -> jax.Array:
        """Turn standard normal noise (B, A) into actions (B, A)."""
        return categorical.drawn(self.log_probabilities(observation, allowed), noise, self.choices)

    def mode(self, observation: jax.Array, allowed: jax.Array | None = None) -> jax.Array:
        """The likeliest action."""
        return categorical.likeliest(self.log_probabilities(observation, allowed), self.choices)

    def log_prob(
        self, observation: jax.Array, action: jax.Array, allowed: jax.Array | None = None
    ) -> jax.Array:
        """The log probabilities of actions (..., A): (...)."""
        return jnp.sum(self.log_probabilities(observation, allowed) * action, axis=-1)

    def entropy(self, observation: jax.Array, allowed: jax.Array | None = None) -> jax.Array:
        """The entropy in each state: (...)."""
        return categorical.entropy(self.log_probabilities(observation, allowed))

    def plain(self, shape: ProblemShape, **normalization: Any) -> PlainPolicy:
        """The deterministic actions, without JAX."""
        policy = PlainPolicy.of(self.trunk.layers, "tanh", "choose", **normalization)
        return policy.choosing(shape)


class NormalizedPolicy(eqx.Module):
    """An `UnsquashedPolicy` or a `ChoicePolicy` that sees normalised observations."""

    policy: UnsquashedPolicy | ChoicePolicy
    normalizer: Moments
    shape: ProblemShape = eqx.field(static=True)

    def act(self, observation: jax.Array, noise: jax.Array) -> jax.Array:
        """Turn standard normal noise (B, A) into actions (B, A)."""
        seen = self.normalizer.normalize(observation)
        return self.policy.act(seen, noise, self.shape.allowed(observation))

    def mode(self, observation: jax.Array) -> jax.Array:
        """The deterministic action."""
        seen = self.normalizer.normalize(observation)
        return self.policy.mode(seen, self.shape.allowed(observation))

    def plain(self) -> PlainPolicy:
        """The deterministic actions, without JAX."""
        mean, scale, bound = self.normalizer.normalization
        return self.policy.plain(self.shape, mean=mean, scale=scale, bound=bound)
