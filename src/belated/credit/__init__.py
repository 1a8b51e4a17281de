"""Credit rules: what reward the TD target sees."""

from typing import ClassVar, Protocol

import jax

from belated.credit.dense import Dense
from belated.credit.revealed import Revealed
from belated.replay import IntervalBatch


class Credit(Protocol):
    """A rule that gives every step of a batch a reward."""

    needs_dense: ClassVar[bool]
    """Whether the rule looks at the hidden per-step reward."""

    def reward(self, batch: IntervalBatch) -> jax.Array:
        """What the TD target adds for each step: (B,)."""


__all__ = ["Credit", "Dense", "Revealed"]
