"""Q-RNN: the Q-function over whole segments as one recurrent network."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from belated.critics.base import ProblemShape
from belated.critics.windows import in_columns, is_interval_end, next_overlap
from belated.networks import GRU, Linear
from belated.replay import IntervalBatch


@dataclass(frozen=True)
class Segment:
    """Fully connected → GRU → linear, over the history and the current step."""

    units: int = 128

    uses_windows: ClassVar[bool] = True

    def build(
        self, rng: np.random.Generator, shape: ProblemShape, hidden: tuple[int, ...]
    ) -> SegmentCritic:
        """Make a freshly initialised critic; ``hidden`` has no place in it."""
        step = shape.observation_size + shape.action_size
        return SegmentCritic(
            embed=Linear(rng, step, self.units),
            gru=GRU(rng, self.units, self.units),
            head=Linear(rng, self.units, 1),
            shape=shape,
        )


class HiddenStates(NamedTuple):
    """The GRU's hidden states, each of shape (units, B)."""

    before: jax.Array  # after τ_{t_i−c:t}
    after: jax.Array  # after the history of the step that follows


class SegmentCritic(eqx.Module):
    """Q(τ_{t_i−c:t+1}), read off a GRU after step t."""

    embed: Linear
    gru: GRU
    head: Linear
    shape: ProblemShape = eqx.field(static=True)

    def encode(self, batch: IntervalBatch) -> HiddenStates:
        """One pass over the windows; with an overlap, a second one over the next one's overlap."""
        states = self._prefixes(batch.window, batch.window_mask)
        place = self.shape.overlap + batch.position
        fresh = jnp.zeros_like(states[0])
        if self.shape.overlap > 0:
            fresh = self._prefixes(*next_overlap(batch, self.shape))[-1]
        after = jnp.where(is_interval_end(batch), fresh, _at(states, place + 1))
        return HiddenStates(before=_at(states, place), after=after)

    def _prefixes(self, window: jax.Array, mask: jax.Array) -> jax.Array:
        return self.gru.prefixes(jax.nn.relu(in_columns(self.embed, window)), mask)

    def _step_value(
        self, hidden: jax.Array, observation: jax.Array, action: jax.Array
    ) -> jax.Array:
        x = jax.nn.relu(self.embed.columns(jnp.concatenate([observation, action], axis=-1).T))
        return self.head.columns(self.gru.step(hidden, x))[0]

    def value(self, encoding: HiddenStates, observation: jax.Array, action: jax.Array) -> jax.Array:
        """One more GRU step, with any action."""
        return self._step_value(encoding.before, observation, action)

    def next_value(
        self, encoding: HiddenStates, observation: jax.Array, action: jax.Array
    ) -> jax.Array:
        """One more GRU step from the history of the step that follows."""
        return self._step_value(encoding.after, observation, action)

    def auxiliary_loss(self, encoding: HiddenStates, batch: IntervalBatch) -> jax.Array:
        """None."""
        return jnp.zeros(())


def _at(states: jax.Array, place: jax.Array) -> jax.Array:
    """The hidden states (units, B) at a place (B,) of the prefixes (W + 1, units, B)."""
    return jnp.take_along_axis(states, place[None, None], axis=0)[0]
