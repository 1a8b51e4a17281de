"""The ordinary Q(s, a): no history at all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from belated.critics.base import Critic
from belated.experience.batch import IntervalBatch, Needs
from belated.experience.step import ProblemShape
from belated.networks import MLP
from belated.parts import register


@register
@dataclass(frozen=True)
class Markov:
    """The critic of plain SAC and TD3. With late rewards its fixed point is biased."""

    needs: ClassVar[Needs] = frozenset()
    tells_credit: ClassVar[bool] = False

    def build(
        self, rng: np.random.Generator, shape: ProblemShape, hidden: tuple[int, ...]
    ) -> MarkovCritic:
        """Make a freshly initialised critic."""
        return MarkovCritic(MLP(rng, shape.step_size, hidden, 1))

    def build_histories(
        self, rng: np.random.Generator, shape: ProblemShape, number: int
    ) -> tuple[()]:
        """There is no H."""
        return ()


class MarkovCritic(Critic):
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
