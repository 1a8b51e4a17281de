"""The oracle's reward: what the environment hid."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import jax

from belated.credit.base import Fixed, Metrics
from belated.replay import IntervalBatch
from belated.rollout import Rollout


@dataclass(frozen=True)
class Dense(Fixed):
    """The hidden per-step reward. Only a yardstick: no real late problem has it."""

    needs_dense: ClassVar[bool] = True
    tells_steps_apart: ClassVar[bool] = True

    def reward(self, state: None, batch: IntervalBatch) -> jax.Array:
        """What the TD target adds for each step: (B,)."""
        reward: jax.Array = batch.dense_reward
        return reward

    def redistribute(
        self, state: None, rollout: Rollout, key: jax.Array
    ) -> tuple[None, jax.Array, Metrics]:
        """Return the reward of each step of a rollout: (T, L)."""
        return None, rollout.dense_reward, {}
