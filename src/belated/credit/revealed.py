"""The reward as it was experienced."""

from __future__ import annotations

from dataclasses import dataclass

import jax

from belated.credit.base import UnlearnedOnRollouts
from belated.experience.batch import IntervalBatch
from belated.experience.rollout import Rollout
from belated.parts import register


@register
@dataclass(frozen=True)
class Revealed(UnlearnedOnRollouts):
    """R_t: the interval's reward on its last step, 0 before."""

    def reward(self, state: None, batch: IntervalBatch) -> jax.Array:
        """What the TD target adds for each step: (B,)."""
        reward: jax.Array = batch.reward
        return reward

    def credit(self, state: None, rollout: Rollout) -> jax.Array:
        """The reward of each step of a rollout: (T, L)."""
        reward: jax.Array = rollout.reward
        return reward
