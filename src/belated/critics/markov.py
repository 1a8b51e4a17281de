"""The ordinary Q(s, a): no history at all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import jax
import numpy as np

from belated.critics.action_values import ActionValue
from belated.critics.base import Critic
from belated.experience.batch import IntervalBatch, Needs
from belated.experience.step import ProblemShape
from belated.networks import Linear
from belated.parts import register


@register
@dataclass(frozen=True)
class Markov:
    """The critic of plain SAC and TD3. With late rewards its fixed point is biased."""

    needs: ClassVar[Needs] = frozenset()
    tells_credit: ClassVar[bool] = False
    has_preferences: ClassVar[bool] = True

    def build(
        self, rng: np.random.Generator, shape: ProblemShape, hidden: tuple[int, ...]
    ) -> MarkovCritic:
        """Make a freshly initialised critic."""
        return MarkovCritic(ActionValue(rng, shape, hidden))

    def build_histories(
        self, rng: np.random.Generator, shape: ProblemShape, number: int
    ) -> tuple[()]:
        """There is no H."""
        return ()


class MarkovCritic(Critic):
    """Q(s, a) as one network."""

    network: ActionValue

    def encode(self, batch: IntervalBatch) -> None:
        """There is nothing to digest."""

    def value(self, encoding: None, observation: jax.Array, action: jax.Array | None) -> jax.Array:
        """Q(s, a)."""
        return self.network(observation, action)

    def next_value(self, batch: IntervalBatch, action: jax.Array | None) -> jax.Array:
        """Q(s', a)."""
        return self.value(None, batch.next_observation, action)

    def preferences(self, observation: jax.Array) -> jax.Array:
        """Q(s, ·)."""
        return self.network(observation, None)

    def preference_layers(self) -> tuple[Linear, ...]:
        """Those of Q."""
        return self.network.layers
