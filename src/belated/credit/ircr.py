"""Iterative relative credit refinement: every step is credited with its interval's reward."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from belated.experience.base import Metrics
from belated.experience.batch import IntervalBatch, Needs
from belated.experience.step import ProblemShape
from belated.parts import register
from belated.ranges import checked, flag


class Bounds(NamedTuple):
    """Between which values the rewards of the replay's intervals lay at the last update."""

    low: jax.Array
    high: jax.Array


@register
@dataclass(frozen=True)
class IRCR:
    """Guidance rewards (Gangwani et al., 2020), with intervals in the place of episodes.

    The guidance of a step is (r(τ_i) − min)/(max − min), over everything that is now in the
    replay; where nothing was revealed it is 0.

    Attributes:
        per_step: credit r(τ_i)/n_i instead of r(τ_i). Fairer to short intervals, but it hides the
            cost of an episode that ends early.
    """

    per_step: bool = False

    tells_credit: ClassVar[bool] = True

    def __post_init__(self) -> None:
        checked(self, per_step=flag)

    @property
    def needs(self) -> Needs:
        """The bounds of what a step may be credited with."""
        return frozenset({"mean_reward_bounds" if self.per_step else "reward_bounds"})

    def init(self, rng: np.random.Generator, shape: ProblemShape) -> Bounds:
        """Make a fresh state."""
        return Bounds(jnp.zeros(()), jnp.zeros(()))

    def update(self, state: Bounds, batch: IntervalBatch, key: jax.Array) -> tuple[Bounds, Metrics]:
        """Take over the bounds of the replay."""
        bounds = batch.mean_reward_bounds if self.per_step else batch.reward_bounds
        return Bounds(bounds[0], bounds[1]), {}

    def reward(self, state: Bounds, batch: IntervalBatch) -> jax.Array:
        """The guidance, in [0, 1]: (B,)."""
        low, high = state
        credit = batch.interval_reward / (batch.length if self.per_step else 1)
        known = (high > low) & (batch.revealed > 0)
        guidance = (credit - low) / jnp.where(high > low, high - low, 1)
        return jnp.where(known, jnp.clip(guidance, 0, 1), 0.0)
