"""The reward as it was experienced."""

from __future__ import annotations

from dataclasses import dataclass

import jax

from belated.credit.base import Fixed
from belated.replay import IntervalBatch


@dataclass(frozen=True)
class Revealed(Fixed):
    """R_t: the interval's reward on its last step, 0 before."""

    def reward(self, state: None, batch: IntervalBatch) -> jax.Array:
        """What the TD target adds for each step: (B,)."""
        reward: jax.Array = batch.reward
        return reward
