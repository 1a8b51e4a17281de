"""Q-RNN: the Q-function over whole segments as one recurrent network."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from belated.critics import action_values
from belated.critics.base import Critic
from belated.critics.windows import history, next_history
from belated.experience.batch import IntervalBatch, Needs
from belated.experience.step import ProblemShape
from belated.networks import Linear, Reader
from belated.parts import register
from belated.ranges import checked, positive_int


@register
@dataclass(frozen=True)
class Segment:
    """Fully connected → GRU → linear, over the history and the current step.

    Attributes:
        units: the size of the GRU's hidden state, and of the layer before it.
    """

    units: int = 128

    needs: ClassVar[Needs] = frozenset({"window"})
    tells_credit: ClassVar[bool] = False

    def __post_init__(self) -> None:
        checked(self, units=positive_int)

    def build(
        self, rng: np.random.Generator, shape: ProblemShape, hidden: tuple[int, ...]
    ) -> SegmentCritic:
        """Make a freshly initialised critic; ``hidden`` has no place in it."""
        return SegmentCritic(
            reader=Reader(rng, shape.step_size, self.units),
            head=Linear(rng, self.units, action_values.sizes(shape)[1]),
            shape=shape,
        )


class SegmentCritic(Critic):
    """Q(τ_{t_i−c:t+1}), read off a GRU after step t."""

    reader: Reader
    head: Linear
    shape: ProblemShape = eqx.field(static=True)

    def encode(self, batch: IntervalBatch) -> jax.Array:
        """The GRU's hidden states after τ_{t_i−c:t}: (units, B), with no gradient for the steps."""
        return self.reader.last(*history(batch, self.shape))

    def value(
        self, encoding: jax.Array, observation: jax.Array, action: jax.Array | None
    ) -> jax.Array:
        """One more GRU step, with any action; with none yet if there is an output for each."""
        unknown = bool(self.shape.choices)
        size = (len(observation), self.shape.action_size)
        taken = jnp.zeros(size, observation.dtype) if unknown else action
        assert taken is not None
        x = jnp.concatenate([observation, taken], axis=-1)
        outputs = self.head.columns(self.reader.step(encoding, x)).T
        return action_values.value(self.shape, outputs, action)

    def next_value(self, batch: IntervalBatch, action: jax.Array | None) -> jax.Array:
        """One more GRU step from the history of the step that follows."""
        hidden = self.reader.last(*next_history(batch, self.shape))
        return self.value(hidden, batch.next_observation, action)
