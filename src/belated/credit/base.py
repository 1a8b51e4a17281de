"""What a credit rule must be able to say: to backbones that learn from a replay, or from rollouts.

A rule is a frozen set of hyperparameters; what it has learned is a state that the backbone carries
along, a pytree of the rule's own kind.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar, Protocol, runtime_checkable

import jax
import numpy as np

from belated.experience.base import Metrics
from belated.experience.batch import IntervalBatch, Needs
from belated.experience.rollout import Rollout
from belated.experience.step import ProblemShape


class Rule(Protocol):
    """What both kinds of rule have in common."""

    @property
    def needs(self) -> Needs:
        """The optional fields of a batch that it looks at; of a rollout, ``dense_reward``."""

    @property
    def tells_credit(self) -> bool:
        """Whether its rewards say which steps of an interval earned its reward."""

    def init(self, rng: np.random.Generator, shape: ProblemShape) -> Any:
        """Make a fresh state."""


@runtime_checkable
class Credit(Rule, Protocol):
    """A rule that gives every step of a batch a reward, for the TD target to see."""

    def update(self, state: Any, batch: IntervalBatch, key: jax.Array) -> tuple[Any, Metrics]:
        """Learn from a batch."""

    def reward(self, state: Any, batch: IntervalBatch) -> jax.Array:
        """What the TD target adds for each step: (B,)."""


@runtime_checkable
class Advance(Credit, Protocol):
    """A rule whose rewards are a part of the interval's, paid for each step at once."""

    def rest(self, state: Any, batch: IntervalBatch) -> jax.Array:
        """What is left of r(τ_i) when the rewards of the steps that it counts are paid: (B,)."""


@runtime_checkable
class RolloutCredit(Rule, Protocol):
    """A rule that gives every step of a rollout a reward."""

    def redistribute(
        self, state: Any, rollout: Rollout, key: jax.Array
    ) -> tuple[Any, jax.Array, Metrics]:
        """Learn from a rollout and return the reward of each of its steps, (T, L), 0 in padding."""

    def credit(self, state: Any, rollout: Rollout) -> jax.Array:
        """The reward that it would give each step, (T, L), without learning."""


class Unlearned:
    """The part of a rule that has nothing to learn."""

    needs: ClassVar[Needs] = frozenset()
    tells_credit: ClassVar[bool] = False

    def init(self, rng: np.random.Generator, shape: ProblemShape) -> None:
        """There is no state."""

    def update(self, state: None, batch: IntervalBatch, key: jax.Array) -> tuple[None, Metrics]:
        """Learn nothing."""
        return None, {}


class UnlearnedOnRollouts(Unlearned):
    """The same for rules that have a reward for rollouts too."""

    @abstractmethod
    def credit(self, state: None, rollout: Rollout) -> jax.Array:
        """The reward of each step of a rollout: (T, L)."""

    def redistribute(
        self, state: None, rollout: Rollout, key: jax.Array
    ) -> tuple[None, jax.Array, Metrics]:
        """Return the reward of each step of a rollout: (T, L)."""
        return None, self.credit(state, rollout), {}
