"""Q-RNN: the Q-function over whole segments as one recurrent network."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from belated.critics.base import ProblemShape
from belated.critics.windows import in_columns, next_history
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


class SegmentCritic(eqx.Module):
    """Q(τ_{t_i−c:t+1}), read off a GRU after step t."""

    embed: Linear
    gru: GRU
    head: Linear
    shape: ProblemShape = eqx.field(static=True)

    def encode(self, batch: IntervalBatch) -> jax.Array:
        """The GRU's hidden states after τ_{t_i−c:t}: (units, B)."""
        states = self.gru.prefixes(self._embedded(batch.window), batch.window_mask)
        place = self.shape.overlap + batch.position
        return jnp.take_along_axis(states, place[None, None], axis=0)[0]

    def _embedded(self, window: jax.Array) -> jax.Array:
        return jax.nn.relu(in_columns(self.embed, window))

    def value(self, encoding: jax.Array, observation: jax.Array, action: jax.Array) -> jax.Array:
        """One more GRU step, with any action."""
        x = jax.nn.relu(self.embed.columns(jnp.concatenate([observation, action], axis=-1).T))
        return self.head.columns(self.gru.step(encoding, x))[0]

    def next_value(self, batch: IntervalBatch, action: jax.Array) -> jax.Array:
        """One more GRU step from the history of the step that follows."""
        window, mask = next_history(batch, self.shape)
        hidden = self.gru.last(self._embedded(window), mask)
        return self.value(hidden, batch.next_observation, action)

    def auxiliary_loss(self, encoding: jax.Array, batch: IntervalBatch) -> jax.Array:
        """None."""
        return jnp.zeros(())
