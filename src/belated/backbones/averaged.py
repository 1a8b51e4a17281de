"""Any backbone that learns from a replay, with an average of its policies as the one in use.

The last policy of a run may be one that has just stumbled: a robot that hops well after one update
may fall after the next. An average of the last policies' parameters changes slowly. Learning
does not know of it: exploration and the updates are those of the backbone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from belated.backbones.around import Around, AroundState
from belated.experience.base import Metrics
from belated.experience.batch import IntervalBatch
from belated.experience.step import ProblemShape
from belated.networks.plain import PlainPolicy


class AveragedActor(eqx.Module):
    """An actor, and the average of what it has been."""

    actor: Any
    average: Any
    updates: jax.Array  # how many there were

    def updated(self, actor: Any, over: int) -> AveragedActor:
        """The next actor: a mean of all as long as they are few, then an exponential average."""
        updates = self.updates + 1
        rate = 1 / jnp.minimum(updates, over)
        average = jax.tree.map(
            lambda old, new: old + rate * (new - old) if eqx.is_inexact_array(new) else new,
            self.average,
            actor,
        )
        return AveragedActor(actor, average, updates)


@dataclass(frozen=True)
class Averaged(Around):
    """A backbone whose deterministic policy is an average over updates.

    Attributes:
        over: over about how many updates; older ones count less and less.
    """

    over: int

    def init(self, seed: int, shape: ProblemShape) -> AroundState:
        """Make a fresh state."""
        inner = self.backbone.init(seed, shape)
        average = jax.tree.map(jnp.copy, inner.actor)
        return AroundState.of(AveragedActor(inner.actor, average, jnp.zeros((), jnp.int32)), inner)

    def act(self, actor: AveragedActor, observation: jax.Array, noise: jax.Array) -> jax.Array:
        """Explore as the backbone does."""
        return self.backbone.act(actor.actor, observation, noise)

    def mode(self, actor: AveragedActor, observation: jax.Array) -> jax.Array:
        """The deterministic actions of the average."""
        return self.backbone.mode(actor.average, observation)

    def plain(self, actor: AveragedActor) -> PlainPolicy | None:
        """The same without JAX, if the backbone has such a form."""
        return self.backbone.plain(actor.average)

    def update(self, state: AroundState, data: IntervalBatch) -> tuple[AroundState, Metrics]:
        """Learn as the backbone does, and move the average."""
        inner, metrics = self.backbone.update(state.inner, data)
        return AroundState.of(state.actor.updated(inner.actor, self.over), inner), metrics

    def credit_of(self, state: AroundState, data: IntervalBatch) -> jax.Array:
        """What the backbone says."""
        return self.backbone.credit_of(state.inner, data)
