"""The reward as it was experienced."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import jax

from belated.replay import IntervalBatch


@dataclass(frozen=True)
class Revealed:
    """R_t: the interval's reward on its last step, 0 before."""

    needs_dense: ClassVar[bool] = False

    def reward(self, batch: IntervalBatch) -> jax.Array:
        """What the TD target adds for each step: (B,)."""
        reward: jax.Array = batch.reward
        return reward
