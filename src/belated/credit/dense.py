"""The oracle's reward: what the environment hid."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import jax

from belated.credit.base import Fixed
from belated.replay import IntervalBatch


@dataclass(frozen=True)
class Dense(Fixed):
    """The hidden per-step reward. Only a yardstick: no real late problem has it."""

    needs_dense: ClassVar[bool] = True
    tells_steps_apart: ClassVar[bool] = True

    def reward(self, state: None, batch: IntervalBatch) -> jax.Array:
        """What the TD target adds for each step: (B,)."""
        reward: jax.Array = batch.dense_reward
        return reward
