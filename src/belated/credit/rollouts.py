"""What a credit rule must be able to say to an on-policy backbone."""

from __future__ import annotations

from typing import Any, ClassVar, Protocol, runtime_checkable

import jax
import numpy as np

from belated.credit.base import Metrics
from belated.critics import ProblemShape
from belated.rollout import Rollout


@runtime_checkable
class RolloutCredit(Protocol):
    """A rule that gives every step of a rollout a reward.

    Like `belated.credit.Credit` it is a frozen set of hyperparameters, and what it has learned is a
    state that the backbone carries along.
    """

    needs_dense: ClassVar[bool]
    """Whether the rule looks at the hidden per-step reward."""
    uses_windows: ClassVar[bool]
    """Whether it looks at the windows of a batch; a rollout has none."""
    tells_steps_apart: ClassVar[bool]
    """Whether its rewards say which steps of an interval earned its reward."""

    def init(self, rng: np.random.Generator, shape: ProblemShape) -> Any:
        """Make a fresh state."""

    def redistribute(
        self, state: Any, rollout: Rollout, key: jax.Array
    ) -> tuple[Any, jax.Array, Metrics]:
        """Learn from a rollout and return the reward of each of its steps, (T, L), 0 in padding."""
