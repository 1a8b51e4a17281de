"""The HC-decomposition: Q(τ_{t_i−c:t+1}) = H(τ_{t_i−c:t}) + C(s_t, a_t).

H is one of three functions of the history: `Singleton`, `Pairwise` or `Recurrent`. Whichever it is,
one pass over a window gives H of every prefix, and H of the empty history is 0.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Protocol

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from belated.critics.base import ProblemShape
from belated.critics.windows import as_columns, next_history, put_in_order
from belated.networks import MLP, Linear, Reader
from belated.replay import IntervalBatch


class History(Protocol):
    """A function H of histories."""

    def prefix_values(self, window: jax.Array, mask: jax.Array) -> jax.Array:
        """H of every prefix of each window.

        Args:
            window: (W, B, D + A), the steps. There is a gradient for the parameters only.
            mask: (W, B), 0 for padding, which counts nothing.

        Returns:
            (W + 1, B): entry m is H of the first m places; entry 0 is 0.
        """

    def value(self, window: jax.Array, mask: jax.Array) -> jax.Array:
        """H of each whole window: (B,), without a gradient.

        The steps that are no padding follow each other.
        """


class HistoryConfig(Protocol):
    """A recipe for H."""

    def build(self, rng: np.random.Generator, shape: ProblemShape) -> History:
        """Make a freshly initialised H."""


@dataclass(frozen=True)
class Singleton:
    """H = Σ_j b(x_j)."""

    units: tuple[int, ...] = (64, 64)

    def build(self, rng: np.random.Generator, shape: ProblemShape) -> PairwiseHistory:
        """Make a freshly initialised H."""
        return Pairwise(0, self.units).build(rng, shape)


@dataclass(frozen=True)
class Pairwise:
    """H = Σ_{k ≤ K} Σ_j c^k(x_j, x_{j+k}), where c⁰ takes a single step."""

    reach: int
    units: tuple[int, ...] = (64, 64)

    def build(self, rng: np.random.Generator, shape: ProblemShape) -> PairwiseHistory:
        """Make a freshly initialised H."""
        step = shape.observation_size + shape.action_size
        sizes = [step] + [2 * step] * self.reach
        return PairwiseHistory(tuple(MLP(rng, size, self.units, 1) for size in sizes))


class PairwiseHistory(eqx.Module):
    """A sum of networks c^k over pairs of steps k apart; with c⁰ alone, the singleton form."""

    terms: tuple[MLP, ...]

    def prefix_values(self, window: jax.Array, mask: jax.Array) -> jax.Array:
        """H of every prefix: the sum of the pairs that are complete within it."""
        width, batch, _ = window.shape
        columns = as_columns(window)
        completed = jnp.zeros((width, batch))  # pairs that end with each step
        for k, term in enumerate(self.terms[:width]):
            values = term.columns(_pairs(columns, k * batch)).reshape(width - k, batch)
            completed = completed.at[k:].add(values * mask[k:] * mask[: width - k])
        return _sums_of_prefixes(completed)

    def value(self, window: jax.Array, mask: jax.Array) -> jax.Array:
        """H of each whole window, with no work for padding."""
        width, batch, features = window.shape
        steps, real = jnp.asarray(window).reshape(-1, features), jnp.asarray(mask).ravel() > 0

        def completed(places: jax.Array) -> jax.Array:  # pairs that end with these steps
            total = jnp.zeros(len(places))
            for k, term in enumerate(self.terms[:width]):
                first, second = places - k * batch, steps[places]
                pairs = second if k == 0 else jnp.concatenate([steps[first], second], axis=1)
                total += jnp.where((first >= 0) & real[first], term(pairs)[:, 0], 0.0)
            return total

        return _values_where(real, completed).reshape(width, batch).sum(axis=0)


def _pairs(columns: jax.Array, lag: int) -> jax.Array:
    """Put columns (F, N) on top of those a number of places later: (2F, N − lag).

    A step is no pair with itself: for lag = 0 they stay as they are.
    """
    if lag == 0:
        return columns
    return put_in_order(jnp.concatenate([columns[:, :-lag], columns[:, lag:]]))


_TILE = 256


def _values_where(wanted: jax.Array, values_of: Callable[[jax.Array], jax.Array]) -> jax.Array:
    """Compute values where they are wanted and put 0 elsewhere.

    The wanted places are moved together and gone through a tile at a time, up to the last one: in
    the mean a step stands in the middle of its interval, so half of a window is no history of it.

    Args:
        wanted: (N,), whether a place's value is wanted.
        values_of: the values of some places (M,).

    Returns:
        (N,).
    """
    number, size = len(wanted), min(_TILE, len(wanted))
    count = jnp.sum(wanted)
    places = jnp.nonzero(wanted, size=number, fill_value=0)[0]

    def compute(tile: jax.Array, values: jax.Array) -> jax.Array:
        start = (tile * size,)  # both slices move a tile that sticks out back to the end
        some = values_of(jax.lax.dynamic_slice(places, start, (size,)))
        return jax.lax.dynamic_update_slice(values, some, start)

    values = jax.lax.fori_loop(0, -(-count // size), compute, jnp.zeros(number))
    return jnp.zeros(number).at[places].add(jnp.where(jnp.arange(number) < count, values, 0.0))


def _sums_of_prefixes(values: jax.Array) -> jax.Array:
    """Sum the first m rows of values (W, B), for every m from 0 on: (W + 1, B).

    A product with ones, because the gradient of `jnp.cumsum` is slow.
    """
    width = len(values)
    return jnp.tril(jnp.ones((width + 1, width)), -1) @ values


@dataclass(frozen=True)
class Recurrent:
    """H is read off a GRU's hidden state after the last step of the history."""

    units: int = 48

    def build(self, rng: np.random.Generator, shape: ProblemShape) -> RecurrentHistory:
        """Make a freshly initialised H."""
        step = shape.observation_size + shape.action_size
        return RecurrentHistory(Reader(rng, step, self.units), Linear(rng, self.units, 1))


class RecurrentHistory(eqx.Module):
    """Fully connected → GRU → linear."""

    reader: Reader
    head: Linear

    def prefix_values(self, window: jax.Array, mask: jax.Array) -> jax.Array:
        """H of every prefix; 0 as long as no real step came."""
        states = self.reader.prefixes(window, mask)  # (W + 1, units, B)
        values = jnp.einsum("wub,u->wb", states, self.head.weight[:, 0]) + self.head.bias
        seen = jnp.pad(jnp.cumsum(mask, axis=0), ((1, 0), (0, 0))) > 0
        return jnp.where(seen, values, 0.0)

    def value(self, window: jax.Array, mask: jax.Array) -> jax.Array:
        """H of each whole window, with next to no work for padding."""
        values = self.head.columns(self.reader.last(window, mask))[0]
        return jnp.where(jnp.any(mask > 0, axis=0), values, 0.0)


@dataclass(frozen=True)
class HC:
    """The HC-decomposition with a given H and λ.

    Attributes:
        history: the form of H.
        regularizer: λ, the weight of (H(τ_i) − r(τ_i))².
    """

    history: HistoryConfig
    regularizer: float

    uses_windows: ClassVar[bool] = True

    def build(
        self, rng: np.random.Generator, shape: ProblemShape, hidden: tuple[int, ...]
    ) -> HCCritic:
        """Make a freshly initialised critic."""
        return HCCritic(
            history=self.history.build(rng, shape),
            current=MLP(rng, shape.observation_size + shape.action_size, hidden, 1),
            regularizer=self.regularizer,
            shape=shape,
        )


class Histories(NamedTuple):
    """H of what a critic needs to know, each of shape (B,)."""

    before: jax.Array  # τ_{t_i−c:t}
    whole: jax.Array  # τ_{t_i−c:t_i+n_i}


class HCCritic(eqx.Module):
    """Q = H + C."""

    history: History
    current: MLP
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

    def credit(self, batch: IntervalBatch) -> jax.Array:
        """What each step adds to H: H(τ_{t_i−c:t+1}) − H(τ_{t_i−c:t}), shape (B,)."""
        prefix = self._prefixes(batch)
        return prefix(batch.position + 1) - prefix(batch.position)

    def _current(self, observation: jax.Array, action: jax.Array) -> jax.Array:
        return self.current(jnp.concatenate([observation, action], axis=-1))[:, 0]

    def value(self, encoding: Histories, observation: jax.Array, action: jax.Array) -> jax.Array:
        """H(τ_{t_i−c:t}) + C(s_t, a)."""
        return encoding.before + self._current(observation, action)

    def next_value(self, batch: IntervalBatch, action: jax.Array) -> jax.Array:
        """H of the next step's history + C(s_{t+1}, a)."""
        history = self.history.value(*next_history(batch, self.shape))
        return history + self._current(batch.next_observation, action)

    def auxiliary_loss(self, encoding: Histories, batch: IntervalBatch) -> jax.Array:
        """λ·(H(τ_i) − r(τ_i))², the mean over the steps whose interval was revealed (Eq. 9)."""
        if self.regularizer == 0:
            return jnp.zeros(())
        errors = (encoding.whole - batch.interval_reward) ** 2
        revealed = batch.revealed
        return self.regularizer * jnp.sum(errors * revealed) / jnp.maximum(jnp.sum(revealed), 1)
