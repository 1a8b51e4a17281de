"""What a policy's outputs stand for: a squashed Gaussian, or a distribution over options."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp

from belated.experience.step import ProblemShape
from belated.networks import categorical
from belated.networks.plain import PlainPolicy

LOG_STD_MIN, LOG_STD_MAX = -20.0, 2.0


class Outlook(NamedTuple):
    """What a policy may do in some states: an action drawn for each, or every joint action."""

    action: jax.Array | None  # (B, A), or None for every one
    log_prob: jax.Array  # (B,) of the action drawn, or (J, B)

    def expected(self, values: jax.Array) -> jax.Array:
        """The mean of what there is of each action, (B,) or (J, B), under the policy: (B,)."""
        if self.action is not None:
            return values
        return jnp.sum(jnp.exp(self.log_prob) * values, axis=0)


class Head(Protocol):
    """A family of distributions over actions; ``observation`` is as the environment gave it."""

    @property
    def outputs(self) -> int:
        """How many numbers a network must have for it in a state."""

    def outlook(self, outputs: jax.Array, observation: jax.Array, noise: jax.Array) -> Outlook:
        """What may be done, given standard normal noise (B, A) if an action is to be drawn."""

    def act(self, outputs: jax.Array, observation: jax.Array, noise: jax.Array) -> jax.Array:
        """Draw actions (B, A), given standard normal noise (B, A)."""

    def mode(self, outputs: jax.Array, observation: jax.Array) -> jax.Array:
        """The deterministic actions: (B, A)."""

    def target_entropy(self, observation: jax.Array, fraction: float) -> jax.Array:
        """What the entropy is to be like on average, unless somebody said so."""

    def plain(self, layers: Any) -> PlainPolicy:
        """The deterministic actions of a network of ReLUs, without JAX."""


@dataclass(frozen=True)
class SquashedGaussian:
    """Actions in [−1, 1]^A; the outputs are means and log standard deviations before tanh."""

    action_size: int

    @property
    def outputs(self) -> int:
        """The size of means and log standard deviations."""
        return 2 * self.action_size

    def outlook(
        self, outputs: jax.Array, observation: jax.Array | None, noise: jax.Array
    ) -> Outlook:
        """Actions drawn by noise, and their log densities."""
        mean, log_std = jnp.split(outputs, 2, axis=-1)
        log_std = jnp.clip(log_std, LOG_STD_MIN, LOG_STD_MAX)
        raw = mean + jnp.exp(log_std) * noise
        log_normal = -0.5 * noise**2 - log_std - 0.5 * math.log(2 * math.pi)
        # log(1 − tanh²(u)), in a form that does not underflow for large |u|
        size = jnp.abs(raw)
        log_slope = 2 * (math.log(2) - size - jnp.log(1 + jnp.exp(-2 * size)))
        return Outlook(jnp.tanh(raw), jnp.sum(log_normal - log_slope, axis=-1))

    def act(self, outputs: jax.Array, observation: jax.Array, noise: jax.Array) -> jax.Array:
        """Draw actions."""
        action = self.outlook(outputs, observation, noise).action
        assert action is not None
        return action

    def mode(self, outputs: jax.Array, observation: jax.Array) -> jax.Array:
        """The squashed means."""
        return jnp.tanh(jnp.split(outputs, 2, axis=-1)[0])

    def target_entropy(self, observation: jax.Array, fraction: float) -> jax.Array:
        """−|A|."""
        return jnp.asarray(-self.action_size, jnp.float32)

    def plain(self, layers: Any) -> PlainPolicy:
        """The squashed means, without JAX."""
        return PlainPolicy.of(layers, "relu", "tanh").without_spread()


@dataclass(frozen=True)
class Categorical:
    """Discrete actions; the outputs are the logits of each component's options."""

    shape: ProblemShape

    @property
    def outputs(self) -> int:
        """The number of options."""
        return self.shape.action_size

    def log_probabilities(self, outputs: jax.Array, observation: jax.Array) -> jax.Array:
        """Those of each component's options: (..., A)."""
        allowed = self.shape.allowed(observation)
        return categorical.log_probabilities(outputs, self.shape.choices, allowed)

    def outlook(self, outputs: jax.Array, observation: jax.Array, noise: jax.Array) -> Outlook:
        """All joint actions with their probabilities."""
        log_probability = self.log_probabilities(outputs, observation)
        return Outlook(None, categorical.joint(log_probability, self.shape.choices))

    def act(self, outputs: jax.Array, observation: jax.Array, noise: jax.Array) -> jax.Array:
        """Draw actions."""
        log_probability = self.log_probabilities(outputs, observation)
        return categorical.drawn(log_probability, noise, self.shape.choices)

    def mode(self, outputs: jax.Array, observation: jax.Array) -> jax.Array:
        """The likeliest actions."""
        log_probability = self.log_probabilities(outputs, observation)
        return categorical.likeliest(log_probability, self.shape.choices)

    def target_entropy(self, observation: jax.Array, fraction: float) -> jax.Array:
        """A fraction of the largest possible, for the options that are allowed."""
        allowed = self.shape.allowed(observation)
        return fraction * jnp.mean(categorical.largest_entropy(self.shape.choices, allowed))

    def plain(self, layers: Any) -> PlainPolicy:
        """The likeliest actions, without JAX."""
        return PlainPolicy.of(layers, "relu", "choose").choosing(self.shape)


def head_of(shape: ProblemShape) -> Head:
    """The family for a problem's actions."""
    return Categorical(shape) if shape.choices else SquashedGaussian(shape.action_size)
