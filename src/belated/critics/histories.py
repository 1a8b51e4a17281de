"""Functions H of a history: `Singleton`, `Pairwise` and `Recurrent`.

Whichever it is, one pass over a window gives H of every prefix, and H of the empty history is 0.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from belated.experience.step import ProblemShape
from belated.kernels.columns import as_columns, pairs, sums_of_prefixes
from belated.kernels.tiles import values_where
from belated.networks import MLP, Linear, Reader
from belated.parts import register
from belated.ranges import checked, layers, non_negative_int, positive_int


class History(eqx.Module):
    """A function H of histories."""

    @abstractmethod
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
        return self.prefix_values(window, mask)[-1]


@runtime_checkable
class HistoryConfig(Protocol):
    """A recipe for H."""

    def build(self, rng: np.random.Generator, shape: ProblemShape) -> History:
        """Make a freshly initialised H."""


@register
@dataclass(frozen=True)
class Singleton:
    """H = Σ_j b(x_j).

    Attributes:
        units: the hidden layers of b.
    """

    units: tuple[int, ...] = (64, 64)

    def __post_init__(self) -> None:
        checked(self, units=layers)

    def build(self, rng: np.random.Generator, shape: ProblemShape) -> PairwiseHistory:
        """Make a freshly initialised H."""
        return Pairwise(0, self.units).build(rng, shape)


@register
@dataclass(frozen=True)
class Pairwise:
    """H = Σ_{k ≤ K} Σ_j c^k(x_j, x_{j+k}), where c⁰ takes a single step.

    Attributes:
        reach: K, how many steps apart the steps of a pair may be.
        units: the hidden layers of each c^k.
    """

    reach: int
    units: tuple[int, ...] = (64, 64)

    def __post_init__(self) -> None:
        checked(self, reach=non_negative_int, units=layers)

    def build(self, rng: np.random.Generator, shape: ProblemShape) -> PairwiseHistory:
        """Make a freshly initialised H."""
        sizes = [shape.step_size] + [2 * shape.step_size] * self.reach
        return PairwiseHistory(tuple(MLP(rng, size, self.units, 1) for size in sizes))


class PairwiseHistory(History):
    """A sum of networks c^k over pairs of steps k apart; with c⁰ alone, the singleton form."""

    terms: tuple[MLP, ...]

    def prefix_values(self, window: jax.Array, mask: jax.Array) -> jax.Array:
        """H of every prefix: the sum of the pairs that are complete within it."""
        width, batch, _ = window.shape
        columns = as_columns(window)
        completed = jnp.zeros((width, batch))  # pairs that end with each step
        for k, term in enumerate(self.terms[:width]):
            values = term.columns(pairs(columns, k * batch)).reshape(width - k, batch)
            completed = completed.at[k:].add(values * mask[k:] * mask[: width - k])
        return sums_of_prefixes(completed)

    def value(self, window: jax.Array, mask: jax.Array) -> jax.Array:
        """H of each whole window, with no work for padding."""
        width, batch, features = window.shape
        steps, real = jnp.asarray(window).reshape(-1, features), jnp.asarray(mask).ravel() > 0

        def completed(places: jax.Array) -> jax.Array:  # pairs that end with these steps
            total = jnp.zeros(len(places))
            for k, term in enumerate(self.terms[:width]):
                first, second = places - k * batch, steps[places]
                pair = second if k == 0 else jnp.concatenate([steps[first], second], axis=1)
                total += jnp.where((first >= 0) & real[first], term(pair)[:, 0], 0.0)
            return total

        return values_where(real, completed).reshape(width, batch).sum(axis=0)


@register
@dataclass(frozen=True)
class Recurrent:
    """H is read off a GRU's hidden state after the last step of the history.

    Attributes:
        units: the size of the GRU's hidden state, and of the layer before it.
    """

    units: int = 48

    def __post_init__(self) -> None:
        checked(self, units=positive_int)

    def build(self, rng: np.random.Generator, shape: ProblemShape) -> RecurrentHistory:
        """Make a freshly initialised H."""
        reader = Reader(rng, shape.step_size, self.units)
        return RecurrentHistory(reader, Linear(rng, self.units, 1))


class RecurrentHistory(History):
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
