"""Randomized return decomposition: a per-step reward fitted to the intervals' sums."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from belated.credit.base import Metrics
from belated.critics import ProblemShape
from belated.networks import MLP
from belated.replay import IntervalBatch


class RRDState(NamedTuple):
    """The reward network r̂ and its optimiser."""

    network: MLP
    optimizer: Any


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

    needs_dense: ClassVar[bool] = False
    uses_windows: ClassVar[bool] = True
    tells_steps_apart: ClassVar[bool] = True

    def init(self, rng: np.random.Generator, shape: ProblemShape) -> RRDState:
        """Make a fresh state."""
        inputs = 2 * (shape.observation_size - 1) + shape.action_size
        network = MLP(rng, inputs, self.reward_units, 1)
        return RRDState(network, self._optimizer.init(network))

    @property
    def _optimizer(self) -> optax.GradientTransformation:
        return optax.flatten(optax.adam(self.reward_learning_rate))

    def update(
        self, state: RRDState, batch: IntervalBatch, key: jax.Array
    ) -> tuple[RRDState, Metrics]:
        """One gradient step of r̂."""
        gradients, metrics = jax.grad(self.loss, has_aux=True)(state.network, batch, key)
        updates, optimizer = self._optimizer.update(gradients, state.optimizer)
        return RRDState(optax.apply_updates(state.network, updates), optimizer), metrics

    def loss(self, network: MLP, batch: IntervalBatch, key: jax.Array) -> tuple[jax.Array, Metrics]:
        """The mean of (mean r̂ − r(τ_i)/n_i)², less the chance of the choice of steps."""
        steps, counts = _steps_of_windows(batch, self.intervals)  # (W, I, F), (W, I)
        rewards, revealed = (x[: self.intervals] for x in (batch.interval_reward, batch.revealed))
        n = jnp.sum(counts, axis=0)
        if len(steps) > self.subset:
            lots = jnp.where(counts > 0, jax.random.uniform(key, counts.shape), -1.0)
            chosen = jnp.argsort(-lots, axis=0)[: self.subset]
            steps = jnp.take_along_axis(steps, chosen[:, :, None], axis=0)
            counts = jnp.take_along_axis(counts, chosen, axis=0)
        k = jnp.sum(counts, axis=0)
        values = network.columns(steps.reshape(-1, steps.shape[-1]).T).reshape(counts.shape)
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

    def reward(self, state: RRDState, batch: IntervalBatch) -> jax.Array:
        """r̂ of each step: (B,)."""
        inputs = _inputs(batch.observation, batch.action, batch.next_observation)
        return state.network(inputs)[:, 0]


def _inputs(observation: jax.Array, action: jax.Array, following: jax.Array) -> jax.Array:
    """What r̂ sees of a step: (s, a, s − s'), without the phase, the last number of s."""
    state = observation[..., :-1]
    return jnp.concatenate([state, action, state - following[..., :-1]], axis=-1)


def _steps_of_windows(batch: IntervalBatch, intervals: int) -> tuple[jax.Array, jax.Array]:
    """The steps of the first windows of a batch, as r̂ sees them, and which of them count.

    Returns:
        (W, I, F), and (W, I): 1.0 for the steps that the interval's reward sums over.
    """
    window, mask = batch.window[:, :intervals], batch.window_mask[:, :intervals]
    length, end = batch.length[:intervals], batch.window_end[:intervals]
    size = end.shape[-1]
    observation, action = window[..., :size], window[..., size:]
    places = jnp.arange(len(window))[:, None]
    last = jnp.max(jnp.where(mask > 0, places, 0), axis=0)
    following = jnp.concatenate([observation[1:], end[None]])
    following = jnp.where((places == last)[:, :, None], end, following)
    return _inputs(observation, action, following), mask * (places < length)
