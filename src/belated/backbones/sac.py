"""Soft actor-critic (Haarnoja et al., 2018) for any critic and credit rule."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from belated.backbones.maximum_entropy import MaximumEntropy
from belated.backbones.temporal_difference import (
    Critics,
    bootstrapped,
    critic_loss,
    lowest_next_value,
    move_towards,
    values_of,
)
from belated.experience.base import Metrics
from belated.experience.batch import IntervalBatch
from belated.experience.step import ProblemShape
from belated.networks import StochasticPolicy
from belated.networks.descent import descend
from belated.parts import register


class SACState(NamedTuple):
    """Everything that an update changes."""

    actor: StochasticPolicy
    critics: Critics
    targets: Critics
    log_alpha: jax.Array
    actor_optimizer: Any
    critic_optimizer: Any
    alpha_optimizer: Any
    credit: Any
    key: jax.Array


@register
@dataclass(frozen=True)
class SAC(MaximumEntropy):
    """Soft actor-critic: the hyperparameters of `MaximumEntropy`; the defaults are the paper's."""

    def init(self, seed: int, shape: ProblemShape) -> SACState:
        """Make a fresh state."""
        rng = np.random.default_rng(seed)
        actor = StochasticPolicy(rng, shape, self.hidden)
        critics = self._critics(rng, shape)
        log_alpha = self._initial_log_alpha
        key = jax.random.key(rng.integers(2**32, dtype=np.uint32))
        return SACState(
            actor=actor,
            critics=critics,
            # A copy: buffers that are given away to an update must not be shared.
            targets=jax.tree.map(jnp.copy, critics),
            log_alpha=log_alpha,
            actor_optimizer=self._optimizer.init(actor),
            critic_optimizer=self._optimizer.init(critics),
            alpha_optimizer=self._temperature_optimizer.init(log_alpha),
            credit=self.credit.init(rng, shape),
            key=key,
        )

    def act(self, actor: StochasticPolicy, observation: jax.Array, noise: jax.Array) -> jax.Array:
        """Explore: a sample of the policy, given standard normal noise (B, A)."""
        return actor.act(observation, noise)

    def update(self, state: SACState, data: IntervalBatch) -> tuple[SACState, Metrics]:
        """One gradient step of critics, actor and temperature."""
        key, noise_key, credit_key = jax.random.split(state.key, 3)
        next_noise, noise = jax.random.normal(noise_key, (2, *data.action.shape))
        alpha = jnp.exp(state.log_alpha)

        learned, data, credit_metrics = self._credited(state, data, credit_key)
        ahead = state.actor.outlook(data.next_observation, next_noise)
        next_value = lowest_next_value(state.targets, data, ahead.action) - alpha * ahead.log_prob
        next_value = ahead.expected(next_value)
        target = bootstrapped(data.reward, data, self.gamma, next_value)
        (_, (encodings, metrics)), gradients = jax.value_and_grad(critic_loss, has_aux=True)(
            state.critics, data, target, self.smooth_l1
        )
        critics, critic_optimizer = descend(
            self._optimizer, gradients, state.critic_optimizer, state.critics
        )
        (actor_loss, log_prob), gradients = jax.value_and_grad(_actor_loss, has_aux=True)(
            state.actor, critics, encodings, data, noise, alpha
        )
        actor, actor_optimizer = descend(
            self._optimizer, gradients, state.actor_optimizer, state.actor
        )
        state = state._replace(
            actor=actor,
            critics=critics,
            targets=move_towards(state.targets, critics, self.tau),
            actor_optimizer=actor_optimizer,
            critic_optimizer=critic_optimizer,
            credit=learned,
            key=key,
        )
        state = self._adapt_temperature(state, log_prob, data.observation)
        return state, metrics | credit_metrics | {
            "actor_loss": actor_loss,
            "entropy": -jnp.mean(log_prob),
            "temperature": alpha,
        }


def _actor_loss(
    actor: StochasticPolicy,
    critics: Critics,
    encodings: tuple[Any, ...],
    batch: IntervalBatch,
    noise: jax.Array,
    alpha: jax.Array,
) -> tuple[jax.Array, jax.Array]:
    """Mean of α·log π − min_k Q_k(τ_{t_i−c:t} ∘ (s_t, a)), a ~ π; and log π.

    The mean over discrete actions is exact; of others one is drawn for each state. The history
    enters through encodings that the critics' loss has made already: it takes no gradient, but it
    takes part in deciding which critic is the lowest.
    """
    observation = batch.observation
    now = actor.outlook(observation, noise)
    values = values_of(critics, encodings, observation, now.action)
    loss = now.expected(alpha * now.log_prob - jnp.min(values, axis=0))
    return jnp.mean(loss), now.expected(now.log_prob)
