"""The oracle's reward: what the environment hid."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import jax

from belated.credit.base import UnlearnedOnRollouts
from belated.experience.batch import IntervalBatch, Needs
from belated.experience.rollout import Rollout
from belated.parts import register


@register
@dataclass(frozen=True)
class Dense(UnlearnedOnRollouts):
    """The hidden per-step reward. Only a yardstick: no real late problem has it."""

    needs: ClassVar[Needs] = frozenset({"dense_reward"})
    tells_credit: ClassVar[bool] = True

    def reward(self, state: None, batch: IntervalBatch) -> jax.Array:
        """What the TD target adds for each step: (B,)."""
        reward: jax.Array = batch.dense_reward
        return reward

    def credit(self, state: None, rollout: Rollout) -> jax.Array:
        """The reward of each step of a rollout: (T, L)."""
        reward: jax.Array = rollout.dense_reward
        return reward
