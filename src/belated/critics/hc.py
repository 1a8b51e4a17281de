"""The HC-decomposition: Q(τ_{t_i−c:t+1}) = H(τ_{t_i−c:t}) + C(s_t, a_t)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from belated.critics.action_values import ActionValue
from belated.critics.base import Critic, CriticConfig
from belated.critics.histories import History, HistoryConfig
from belated.critics.windows import next_history
from belated.experience.base import Metrics
from belated.experience.batch import IntervalBatch, Needs
from belated.experience.step import ProblemShape
from belated.networks import Linear
from belated.parts import register
from belated.ranges import checked, flag, non_negative


@register
@dataclass(frozen=True)
class HC:
    """The HC-decomposition with a given H and λ.

    Attributes:
        history: the form of H.
        regularizer: λ, the weight of (H(τ_i) − r(τ_i))².
        shared: whether all critics have one H, Q_k = H + C_k, instead of one each.
    """

    history: HistoryConfig
    regularizer: float
    shared: bool = False

    needs: ClassVar[Needs] = frozenset({"window"})
    tells_credit: ClassVar[bool] = True
    has_preferences: ClassVar[bool] = True

    def __post_init__(self) -> None:
        checked(self, regularizer=non_negative, shared=flag)
        if not isinstance(self.history, HistoryConfig) or isinstance(self.history, CriticConfig):
            raise ValueError(f"HC needs a function of the history, not {self.history!r}.")

    def build(
        self, rng: np.random.Generator, shape: ProblemShape, hidden: tuple[int, ...]
    ) -> HCCritic:
        """Make a freshly initialised critic."""
        return HCCritic(
            history=self.history.build(rng, shape),
            regularizer=self.regularizer,
            shape=shape,
            current=ActionValue(rng, shape, hidden),
        )

    def build_shared(
        self, rng: np.random.Generator, shape: ProblemShape, hidden: tuple[int, ...], number: int
    ) -> SharedHCCritic:
        """Make several freshly initialised critics with one H."""
        first, *others = (self.build(rng, shape, hidden) for _ in range(number))
        return SharedHCCritic(
            history=first.history,
            regularizer=self.regularizer,
            shape=shape,
            currents=tuple(critic.current for critic in (first, *others)),
        )

    def build_histories(
        self, rng: np.random.Generator, shape: ProblemShape, number: int
    ) -> tuple[HistoryTerm, ...]:
        """Make the freshly initialised H of several critics, or the one of them all."""
        return tuple(
            HistoryTerm(self.history.build(rng, shape), self.regularizer, shape)
            for _ in range(1 if self.shared else number)
        )


class Histories(NamedTuple):
    """H of what a critic needs to know, each of shape (B,)."""

    before: jax.Array  # τ_{t_i−c:t}
    whole: jax.Array  # τ_{t_i−c:t_i+n_i}


class HistoryTerm(eqx.Module):
    """H as a part of critics: what it says of the steps of a batch, and how it is regularised."""

    history: History
    regularizer: float = eqx.field(static=True)
    shape: ProblemShape = eqx.field(static=True)

    def encode(self, batch: IntervalBatch) -> Histories:
        """One pass over the windows."""
        prefix = self._prefixes(batch)
        return Histories(before=prefix(batch.position), whole=prefix(batch.length))

    def _prefixes(self, batch: IntervalBatch) -> Callable[[jax.Array], jax.Array]:
        """Return the function (B,) → (B,) from numbers of steps since t_i to H up to there."""
        values = self.history.prefix_values(batch.window, batch.window_mask)
        start = self.shape.overlap
        return lambda steps: jnp.take_along_axis(values, (start + steps)[None], axis=0)[0]

    def following(self, batch: IntervalBatch) -> jax.Array:
        """H of the next step's history: (B,), without a gradient."""
        return self.history.value(*next_history(batch, self.shape))

    def credit(self, batch: IntervalBatch) -> jax.Array:
        """What each step adds to H: H(τ_{t_i−c:t+1}) − H(τ_{t_i−c:t}), shape (B,)."""
        prefix = self._prefixes(batch)
        return prefix(batch.position + 1) - prefix(batch.position)

    def auxiliary_loss(
        self, encoding: Histories, batch: IntervalBatch
    ) -> tuple[jax.Array, Metrics]:
        """λ·(H(τ_i) − r(τ_i))², the mean over the steps whose interval was revealed (Eq. 9)."""
        if self.regularizer == 0:
            return jnp.zeros(()), {}
        errors = (encoding.whole - batch.interval_reward) ** 2
        revealed = batch.revealed
        mean = jnp.sum(errors * revealed) / jnp.maximum(jnp.sum(revealed), 1)
        return self.regularizer * mean, {}


class HCCritic(HistoryTerm, Critic):
    """Q = H + C."""

    current: ActionValue

    def value(
        self, encoding: Histories, observation: jax.Array, action: jax.Array | None
    ) -> jax.Array:
        """H(τ_{t_i−c:t}) + C(s_t, a)."""
        return encoding.before + self.current(observation, action)

    def next_value(self, batch: IntervalBatch, action: jax.Array | None) -> jax.Array:
        """H of the next step's history + C(s_{t+1}, a)."""
        return self.following(batch) + self.current(batch.next_observation, action)

    def preferences(self, observation: jax.Array) -> jax.Array:
        """C(s, ·): H is the same for all actions."""
        return self.current(observation, None)

    def preference_layers(self) -> tuple[Linear, ...]:
        """Those of C."""
        return self.current.layers


class SharedHCCritic(HistoryTerm, Critic):
    """Q_k = H + C_k for k = 1 … K."""

    currents: tuple[ActionValue, ...]

    def value(
        self, encoding: Histories, observation: jax.Array, action: jax.Array | None
    ) -> jax.Array:
        """H(τ_{t_i−c:t}) + C_k(s_t, a): (K, B) or (K, J, B)."""
        return encoding.before + self._currents(observation, action)

    def next_value(self, batch: IntervalBatch, action: jax.Array | None) -> jax.Array:
        """H of the next step's history + C_k(s_{t+1}, a): (K, B)."""
        return self.following(batch) + self._currents(batch.next_observation, action)

    def preferences(self, observation: jax.Array) -> jax.Array:
        """The mean of the C_k(s, ·)."""
        return jnp.mean(self._currents(observation, None), axis=0)

    def _currents(self, observation: jax.Array, action: jax.Array | None) -> jax.Array:
        return jnp.stack([current(observation, action) for current in self.currents])

    def auxiliary_loss(
        self, encoding: Histories, batch: IntervalBatch
    ) -> tuple[jax.Array, Metrics]:
        """K times what one critic adds: λ weighs it against the K TD losses, as without sharing."""
        loss, metrics = super().auxiliary_loss(encoding, batch)
        return len(self.currents) * loss, metrics
