"""The seam where methods differ: what a critic must be able to say.

A critic is one Q-function over the trajectory segment since the last reward, Q(τ_{t_i−c:t+1}). The
backbones train several of them side by side and never look inside. A critic is an Equinox module:
its parameters are the leaves of a pytree, and all of its methods are pure.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar, Protocol, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from belated.experience.base import Metrics
from belated.experience.batch import IntervalBatch, Needs
from belated.experience.step import ProblemShape


class Critic(eqx.Module):
    """One Q-function. An encoding is what it needs to know of the history; its type is its own."""

    @abstractmethod
    def encode(self, batch: IntervalBatch) -> Any:
        """Digest the histories of a batch of steps."""

    @abstractmethod
    def value(self, encoding: Any, observation: jax.Array, action: jax.Array | None) -> jax.Array:
        """Q(τ_{t_i−c:t} ∘ (s_t, a)) for any action a: shape (B,).

        If actions are discrete, there may be None: then that of every joint action, (J, B). See
        `belated.critics.action_values`. Several Q-functions that share a part may be one critic;
        the shape is then (K, B) or (K, J, B).
        """

    @abstractmethod
    def next_value(self, batch: IntervalBatch, action: jax.Array | None) -> jax.Array:
        """Q of the step that follows, under any action or every one: shaped as for `value`.

        Inside an interval its history is τ_{t_i−c:t+1}; after an interval's last step it is
        τ_{t_{i+1}−c:t_{i+1}}, which is empty for c = 0. Only target critics are asked for it, so
        it need not have a gradient.
        """

    def auxiliary_loss(self, encoding: Any, batch: IntervalBatch) -> tuple[jax.Array, Metrics]:
        """What is added to the TD loss, a scalar, and metrics to log. Nothing by default."""
        return jnp.zeros(()), {}

    def preferences(self, observation: jax.Array) -> jax.Array:
        """What each joint action is worth, up to what depends on the history alone: (J, B).

        Asked for if the config is a `GreedyConfig`.
        """
        raise TypeError(f"{type(self).__name__} cannot compare actions without the history.")

    def preference_layers(self) -> Any:
        """The linear layers, with ReLU in between, of `preferences`, if that is all; else None."""
        return None

    def credit(self, batch: IntervalBatch) -> jax.Array:
        """What each step of a batch earned, (B,); asked for if the config's `tells_credit`."""
        raise TypeError(f"{type(self).__name__} does not assign credit to steps.")


@runtime_checkable
class CriticConfig(Protocol):
    """A recipe for critics, as it stands in the table of methods: a frozen dataclass."""

    needs: ClassVar[Needs]
    """The optional fields of a batch that its critics look at."""
    tells_credit: ClassVar[bool]
    """Whether its critics say which steps earned the reward."""

    def build(
        self, rng: np.random.Generator, shape: ProblemShape, hidden: tuple[int, ...]
    ) -> Critic:
        """Make a freshly initialised critic; ``hidden`` are the layers of state-action networks."""


@runtime_checkable
class GreedyConfig(CriticConfig, Protocol):
    """A recipe for critics that can tell which discrete action is best whatever the history."""

    has_preferences: ClassVar[bool]
    """Says so: its critics have `preferences`."""


@runtime_checkable
class AdditiveConfig(Protocol):
    """A recipe for critics of the form H + C, for backbones that make C of their own kind."""

    def build_histories(
        self, rng: np.random.Generator, shape: ProblemShape, number: int
    ) -> tuple[Any, ...]:
        """Make the H of each of several critics, or one for them all, or none at all (H = 0)."""
