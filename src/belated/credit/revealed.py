"""The reward as it was experienced."""

from __future__ import annotations

from dataclasses import dataclass

import jax

from belated.credit.base import Fixed, Metrics
from belated.replay import IntervalBatch
from belated.rollout import Rollout


@dataclass(frozen=True)
class Revealed(Fixed):
    """R_t: the interval's reward on its last step, 0 before."""

    def reward(self, state: None, batch: IntervalBatch) -> jax.Array:
        """What the TD target adds for each step: (B,)."""
        reward: jax.Array = batch.reward
        return reward

    def redistribute(
        self, state: None, rollout: Rollout, key: jax.Array
    ) -> tuple[None, jax.Array, Metrics]:
        """Return the reward of each step of a rollout: (T, L)."""
        return None, rollout.reward, {}
