"""The seam where methods differ: what a critic must be able to say.

A critic is one Q-function over the trajectory segment since the last reward, Q(τ_{t_i−c:t+1}). The
backbones train two of them side by side and never look inside. A critic is an Equinox module, so
its parameters are the leaves of a pytree, and all of its methods are pure.
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple, Protocol

import jax
import numpy as np

from belated.replay import IntervalBatch


class ProblemShape(NamedTuple):
    """The sizes that networks depend on."""

    observation_size: int  # phase included
    action_size: int
    max_length: int
    overlap: int


class Critic(Protocol):
    """One Q-function. An encoding is what it needs to know of the history; its type is its own."""

    def encode(self, batch: IntervalBatch) -> Any:
        """Digest the histories of a batch of steps."""

    def value(self, encoding: Any, observation: jax.Array, action: jax.Array) -> jax.Array:
        """Q(τ_{t_i−c:t} ∘ (s_t, a)) for any action a: shape (B,)."""

    def next_value(self, batch: IntervalBatch, action: jax.Array) -> jax.Array:
        """Q of the step that follows, under any action: shape (B,).

        Inside an interval its history is τ_{t_i−c:t+1}; after an interval's last step it is
        τ_{t_{i+1}−c:t_{i+1}}, which is empty for c = 0. Only target critics are asked for it, so
        it need not have a gradient.
        """

    def auxiliary_loss(self, encoding: Any, batch: IntervalBatch) -> jax.Array:
        """What is added to the TD loss: a scalar."""


class CriticConfig(Protocol):
    """A recipe for critics, as it stands in the table of methods."""

    uses_windows: ClassVar[bool]
    """Whether its critics look at the windows of a batch; sampling is cheaper if not."""

    def build(
        self, rng: np.random.Generator, shape: ProblemShape, hidden: tuple[int, ...]
    ) -> Critic:
        """Make a freshly initialised critic; ``hidden`` are the layers of state-action networks."""
