"""What a credit rule must be able to say."""

from __future__ import annotations

from typing import Any, ClassVar, Protocol, runtime_checkable

import jax
import numpy as np

from belated.critics import ProblemShape
from belated.replay import IntervalBatch

Metrics = dict[str, jax.Array]


@runtime_checkable
class Credit(Protocol):
    """A rule that gives every step of a batch a reward, for the TD target to see.

    A rule is a frozen set of hyperparameters; what it has learned is a state that the backbone
    carries along, a pytree of the rule's own kind.
    """

    needs_dense: ClassVar[bool]
    """Whether the rule looks at the hidden per-step reward."""
    uses_windows: ClassVar[bool]
    """Whether it looks at the windows of a batch."""
    tells_steps_apart: ClassVar[bool]
    """Whether its rewards say which steps of an interval earned its reward."""

    def init(self, rng: np.random.Generator, shape: ProblemShape) -> Any:
        """Make a fresh state."""

    def update(self, state: Any, batch: IntervalBatch, key: jax.Array) -> tuple[Any, Metrics]:
        """Learn from a batch."""

    def reward(self, state: Any, batch: IntervalBatch) -> jax.Array:
        """What the TD target adds for each step: (B,)."""


class Fixed:
    """The part of a rule that has nothing to learn."""

    needs_dense: ClassVar[bool] = False
    uses_windows: ClassVar[bool] = False
    tells_steps_apart: ClassVar[bool] = False

    def init(self, rng: np.random.Generator, shape: ProblemShape) -> None:
        """There is no state."""

    def update(self, state: None, batch: IntervalBatch, key: jax.Array) -> tuple[None, Metrics]:
        """Learn nothing."""
        return None, {}
