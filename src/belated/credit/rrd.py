"""Randomized return decomposition: a per-step reward fitted to the intervals' sums."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from belated.experience.base import Metrics
from belated.experience.batch import IntervalBatch, Needs
from belated.experience.step import ProblemShape
from belated.networks import MLP
from belated.networks.descent import Optimizer, adam, descend
from belated.parts import register
from belated.ranges import checked, flag, layers, non_negative, positive_int


class RewardNetwork(eqx.Module):
    """r̂(s, a, s − s'), which does not see the phase."""

    network: MLP
    shape: ProblemShape = eqx.field(static=True)

    def __init__(
        self, rng: np.random.Generator, shape: ProblemShape, units: tuple[int, ...]
    ) -> None:
        self.network = MLP(rng, 2 * shape.state_size + shape.action_size, units, 1)
        self.shape = shape

    def inputs(self, observation: jax.Array, action: jax.Array, following: jax.Array) -> jax.Array:
        """What r̂ sees of steps: (..., F)."""
        state = self.shape.state_of(observation)
        change = state - self.shape.state_of(following)
        return jnp.concatenate([state, action, change], axis=-1)

    def steps_of_windows(self, batch: IntervalBatch, intervals: int) -> tuple[jax.Array, jax.Array]:
        """The steps of the first windows of a batch, as r̂ sees them, and which of them count.

        Returns:
            (W, I, F), and (W, I): 1.0 for the steps that the interval's reward sums over.
        """
        window, mask = batch.window[:, :intervals], batch.window_mask[:, :intervals]
        length, end = batch.length[:intervals], batch.window_end[:intervals]
        observation, action = self.shape.split(window)
        places = jnp.arange(len(window))[:, None]
        last = jnp.max(jnp.where(mask > 0, places, 0), axis=0)
        following = jnp.concatenate([observation[1:], end[None]])
        following = jnp.where((places == last)[:, :, None], end, following)
        return self.inputs(observation, action, following), mask * (places < length)


class RRDState(NamedTuple):
    """The reward network r̂ and its optimiser."""

    network: RewardNetwork
    optimizer: Any


@register
@dataclass(frozen=True)
class RRD:
    """Least squares of mean r̂ over (a random part of) an interval against r(τ_i)/n_i.

    r̂ sees (s, a, s − s'), but not the phase: with a fixed length any function of the phase that
    sums to zero over an interval would be free. With an overlap c the steps that count are those
    of [t_i − c, t_i + n_i − c), as in the paper's r_c. (Ren et al., 2022; with all steps of an
    interval it is the plain RD of Efroni et al., 2021.)

    Attributes:
        reward_units: the hidden layers of r̂.
        reward_learning_rate: Adam's.
        intervals: how many of a batch's intervals an update of r̂ looks at.
        subset: K, how many steps of each it looks at; shorter intervals are taken whole.
        unbiased: with K < n_i, subtract the variance that the choice of steps adds to the loss.
    """

    reward_units: tuple[int, ...] = (256, 256)
    reward_learning_rate: float = 3e-4
    intervals: int = 32
    subset: int = 64
    unbiased: bool = True

    needs: ClassVar[Needs] = frozenset({"window", "window_end"})
    tells_credit: ClassVar[bool] = True

    def __post_init__(self) -> None:
        checked(
            self,
            reward_units=layers,
            reward_learning_rate=non_negative,
            intervals=positive_int,
            subset=positive_int,
            unbiased=flag,
        )

    def init(self, rng: np.random.Generator, shape: ProblemShape) -> RRDState:
        """Make a fresh state."""
        network = RewardNetwork(rng, shape, self.reward_units)
        return RRDState(network, self._optimizer.init(network))

    @property
    def _optimizer(self) -> Optimizer:
        return adam(self.reward_learning_rate)

    def update(
        self, state: RRDState, batch: IntervalBatch, key: jax.Array
    ) -> tuple[RRDState, Metrics]:
        """One gradient step of r̂."""
        gradients, metrics = jax.grad(self.loss, has_aux=True)(state.network, batch, key)
        updated = descend(self._optimizer, gradients, state.optimizer, state.network)
        return RRDState(*updated), metrics

    def loss(
        self, network: RewardNetwork, batch: IntervalBatch, key: jax.Array
    ) -> tuple[jax.Array, Metrics]:
        """The mean of (mean r̂ − r(τ_i)/n_i)², less the chance of the choice of steps."""
        steps, counts = network.steps_of_windows(batch, self.intervals)  # (W, I, F), (W, I)
        rewards, revealed = (x[: self.intervals] for x in (batch.interval_reward, batch.revealed))
        n = jnp.sum(counts, axis=0)
        if len(steps) > self.subset:
            lots = jnp.where(counts > 0, jax.random.uniform(key, counts.shape), -1.0)
            chosen = jnp.argsort(-lots, axis=0)[: self.subset]
            steps = jnp.take_along_axis(steps, chosen[:, :, None], axis=0)
            counts = jnp.take_along_axis(counts, chosen, axis=0)
        k = jnp.sum(counts, axis=0)
        values = network.network.columns(steps.reshape(-1, steps.shape[-1]).T).reshape(counts.shape)
        mean = jnp.sum(values * counts, axis=0) / jnp.maximum(k, 1)
        missing = mean - rewards / jnp.maximum(n, 1)
        errors = missing**2
        if self.unbiased:
            variance = jnp.sum(counts * (values - mean) ** 2, axis=0) / jnp.maximum(k - 1, 1)
            errors -= variance * (1 - k / jnp.maximum(n, 1)) / jnp.maximum(k, 1)
        weight = revealed * (n > 0)
        total = jnp.maximum(jnp.sum(weight), 1)
        loss = jnp.sum(weight * errors) / total
        return loss, {
            "reward_loss": loss,
            "reward_sum_error": jnp.sqrt(jnp.sum(weight * (n * missing) ** 2) / total),
        }

    def rest(self, state: RRDState, batch: IntervalBatch) -> jax.Array:
        """R(τ_i) − Σ r̂, over the steps that count: (B,)."""
        steps, counts = state.network.steps_of_windows(batch, len(batch.reward))
        values = state.network.network.columns(steps.reshape(-1, steps.shape[-1]).T)
        paid = jnp.sum(values.reshape(counts.shape) * counts, axis=0)
        return jnp.asarray(batch.interval_reward) - paid

    def reward(self, state: RRDState, batch: IntervalBatch) -> jax.Array:
        """r̂ of each step: (B,)."""
        network = state.network
        inputs = network.inputs(batch.observation, batch.action, batch.next_observation)
        return network.network(inputs)[:, 0]
