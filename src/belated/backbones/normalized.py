"""Any backbone that learns from a replay, with observations normalised for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from belated.backbones.around import Around, AroundState
from belated.experience.base import Metrics
from belated.experience.batch import IntervalBatch
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


@dataclass(frozen=True)
class Normalized(Around):
    """A backbone that sees observations shifted and scaled to mean 0 and variance 1.

    The moments are those of all sampled observations; targets and what came before see them too.
    """

    def init(self, seed: int, shape: ProblemShape) -> AroundState:
        """Make a fresh state."""
        inner = self.backbone.init(seed, shape)
        own = shape.state_size - (shape.action_size if shape.masked else 0)
        actor = NormalizedActor(inner.actor, Moments((own,)), shape)
        return AroundState.of(actor, inner)

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

    def update(self, state: AroundState, data: IntervalBatch) -> tuple[AroundState, Metrics]:
        """Take a batch's observations in, and learn from it as the backbone does."""
        moments = state.actor.moments
        rows = data.observation[:, : moments.mean.shape[0]]
        moments = moments.update(rows, jnp.ones(len(rows)))
        actor = NormalizedActor(state.actor.actor, moments, state.actor.shape)
        inner, metrics = self.backbone.update(state.inner, normalized(actor, data))
        actor = NormalizedActor(inner.actor, moments, actor.shape)
        return AroundState.of(actor, inner), metrics

    def credit_of(self, state: AroundState, data: IntervalBatch) -> jax.Array:
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
