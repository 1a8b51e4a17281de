"""Any backbone that learns from a replay, with observations normalised for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from belated.backbones.base import Backbone
from belated.experience.base import Metrics, Training
from belated.experience.batch import IntervalBatch, Needs
from belated.experience.off_policy import ReplayTraining
from belated.experience.step import ProblemShape
from belated.networks.moments import Moments
from belated.networks.plain import PlainPolicy


class NormalizedActor(eqx.Module):
    """An actor, and the moments of what it has seen."""

    actor: Any
    moments: Moments  # of the environment's own observations
    shape: ProblemShape = eqx.field(static=True)

    def seen(self, observation: jax.Array) -> jax.Array:
        """Observations (..., D) as the actor sees them; masks and the phase stay as they are."""
        size = self.moments.mean.shape[0]
        own = self.moments.normalize(observation[..., :size])
        return jnp.concatenate([own, observation[..., size:]], axis=-1)

    def seen_by(self, policy: PlainPolicy) -> PlainPolicy:
        """A policy without JAX that sees what the actor does."""
        mean, scale, bound = self.moments.normalization
        rest = self.shape.observation_size - len(mean)
        return policy.seeing(
            np.append(mean, np.zeros(rest)), np.append(scale, np.ones(rest)), bound
        )


class NormalizedState(NamedTuple):
    """A backbone's state, its actor and key apart."""

    actor: NormalizedActor
    rest: Any  # the backbone's state without them
    key: jax.Array

    @property
    def inner(self) -> Any:
        """The backbone's state."""
        return self.rest._replace(actor=self.actor.actor, key=self.key)


@dataclass(frozen=True)
class Normalized(Backbone):
    """A backbone that sees observations shifted and scaled to mean 0 and variance 1.

    The moments are those of all sampled observations; targets and what came before see them too.

    Attributes:
        backbone: what learns.
    """

    learns_from: ClassVar[type[Training]] = ReplayTraining

    backbone: Backbone

    @property
    def needs(self) -> Needs:
        """What the backbone looks at."""
        return self.backbone.needs

    @property
    def tells_credit(self) -> bool:
        """Whether the backbone does."""
        return self.backbone.tells_credit

    def init(self, seed: int, shape: ProblemShape) -> NormalizedState:
        """Make a fresh state."""
        inner = self.backbone.init(seed, shape)
        own = shape.state_size - (shape.action_size if shape.masked else 0)
        actor = NormalizedActor(inner.actor, Moments((own,)), shape)
        return NormalizedState(actor, inner._replace(actor=None, key=None), inner.key)

    def act(self, actor: NormalizedActor, observation: jax.Array, noise: jax.Array) -> jax.Array:
        """Explore as the backbone does."""
        return self.backbone.act(actor.actor, actor.seen(observation), noise)

    def mode(self, actor: NormalizedActor, observation: jax.Array) -> jax.Array:
        """The backbone's deterministic actions."""
        return self.backbone.mode(actor.actor, actor.seen(observation))

    def plain(self, actor: NormalizedActor) -> PlainPolicy | None:
        """The same without JAX, if the backbone has such a form."""
        policy = self.backbone.plain(actor.actor)
        return None if policy is None else actor.seen_by(policy)

    def update(
        self, state: NormalizedState, data: IntervalBatch
    ) -> tuple[NormalizedState, Metrics]:
        """Take a batch's observations in, and learn from it as the backbone does."""
        moments = state.actor.moments
        rows = data.observation[:, : moments.mean.shape[0]]
        moments = moments.update(rows, jnp.ones(len(rows)))
        actor = NormalizedActor(state.actor.actor, moments, state.actor.shape)
        inner, metrics = self.backbone.update(state.inner, normalized(actor, data))
        actor = NormalizedActor(inner.actor, moments, actor.shape)
        return NormalizedState(actor, inner._replace(actor=None, key=None), inner.key), metrics

    def credit_of(self, state: NormalizedState, data: IntervalBatch) -> jax.Array:
        """What the backbone says."""
        return self.backbone.credit_of(state.inner, normalized(state.actor, data))


def normalized(actor: NormalizedActor, batch: IntervalBatch) -> IntervalBatch:
    """A batch as the actor's backbone sees it."""
    changed = {
        name: actor.seen(getattr(batch, name))
        for name in ("observation", "next_observation", "window", "window_end")
        if getattr(batch, name) is not None
    }
    if batch.window is not None:  # padding stays 0
        changed["window"] = changed["window"] * batch.window_mask[:, :, None]
    return batch._replace(**changed)
