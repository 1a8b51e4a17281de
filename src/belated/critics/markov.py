"""The ordinary Q(s, a): no history at all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from belated.critics.base import ProblemShape
from belated.networks import MLP
from belated.replay import IntervalBatch


@dataclass(frozen=True)
class Markov:
    """The critic of plain SAC and TD3. With late rewards its fixed point is biased."""

    uses_windows: ClassVar[bool] = False

    def build(
        self, rng: np.random.Generator, shape: ProblemShape, hidden: tuple[int, ...]
    ) -> MarkovCritic:
        """Make a freshly initialised critic."""
        return MarkovCritic(MLP(rng, shape.observation_size + shape.action_size, hidden, 1))


class MarkovCritic(eqx.Module):
    """Q(s, a) as one network."""

    network: MLP

    def encode(self, batch: IntervalBatch) -> None:
        """There is nothing to digest."""

    def value(self, encoding: None, observation: jax.Array, action: jax.Array) -> jax.Array:
        """Q(s, a)."""
        return self.network(jnp.concatenate([observation, action], axis=-1))[:, 0]

    def next_value(self, batch: IntervalBatch, action: jax.Array) -> jax.Array:
        """Q(s', a)."""
        return self.value(None, batch.next_observation, action)

    def auxiliary_loss(self, encoding: None, batch: IntervalBatch) -> jax.Array:
        """None."""
        return jnp.zeros(())
