"""Soft actor-critic (Haarnoja et al., 2018) for any critic and credit rule."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from belated.backbones.temporal_difference import (
    Critics,
    Metrics,
    bootstrapped,
    critic_loss,
    lowest_next_value,
    move_towards,
)
from belated.credit import Credit
from belated.critics import CriticConfig, ProblemShape
from belated.networks import GaussianPolicy
from belated.replay import IntervalBatch


class SACState(NamedTuple):
    """Everything that an update changes."""

    actor: GaussianPolicy
    critics: Critics
    targets: Critics
    log_alpha: jax.Array
    actor_optimizer: Any
    critic_optimizer: Any
    alpha_optimizer: Any
    credit: Any
    key: jax.Array


@dataclass(frozen=True)
class SAC:
    """Hyperparameters of SAC; the defaults are the paper's.

    Attributes:
        gamma: the discount of a step.
        learning_rate: Adam's, for the actor, the critics and the temperature.
        tau: how far the target critics move towards the critics in an update.
        num_critics: how many critics are trained; targets and actor use the lowest.
        initial_temperature: α at the start.
        target_entropy: what α is adapted to; None for −|A|.
        temperature_learning_rate: Adam's for the temperature; None for the same as the others'.
        max_gradient_norm: where the gradients' norm is clipped; None for nowhere.
        smooth_l1: whether large TD errors count linearly, not squared.
    """

    on_policy: ClassVar[bool] = False

    gamma: float = 0.99
    learning_rate: float = 3e-4
    tau: float = 0.005
    num_critics: int = 2
    initial_temperature: float = 1.0
    target_entropy: float | None = None
    temperature_learning_rate: float | None = None
    max_gradient_norm: float | None = None
    smooth_l1: bool = False

    def init(
        self,
        seed: int,
        shape: ProblemShape,
        critic: CriticConfig,
        credit: Credit,
        hidden: tuple[int, ...],
    ) -> SACState:
        """Make a fresh state."""
        rng = np.random.default_rng(seed)
        actor = GaussianPolicy(rng, shape.observation_size, hidden, shape.action_size)
        critics = tuple(critic.build(rng, shape, hidden) for _ in range(self.num_critics))
        log_alpha = jnp.asarray(math.log(self.initial_temperature), jnp.float32)
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
            credit=credit.init(rng, shape),
            key=key,
        )

    @property
    def _optimizer(self) -> optax.GradientTransformation:
        adam = optax.adam(self.learning_rate)
        if self.max_gradient_norm is not None:
            adam = optax.chain(optax.clip_by_global_norm(self.max_gradient_norm), adam)
        return optax.flatten(adam)

    @property
    def _temperature_optimizer(self) -> optax.GradientTransformation:
        rate = self.temperature_learning_rate
        return optax.adam(self.learning_rate if rate is None else rate)

    def act(self, actor: GaussianPolicy, observation: jax.Array, noise: jax.Array) -> jax.Array:
        """Explore: a sample of the policy, given standard normal noise (B, A)."""
        return actor.sample(observation, noise)[0]

    def update(
        self, state: SACState, batch: IntervalBatch, credit: Credit
    ) -> tuple[SACState, Metrics]:
        """One gradient step of critics, actor and temperature."""
        key, noise_key = jax.random.split(state.key)
        shape = batch.action.shape
        next_noise, noise = jax.random.normal(noise_key, (2, *shape))
        alpha = jnp.exp(state.log_alpha)

        learned, credit_metrics = credit.update(state.credit, batch, jax.random.fold_in(key, 0))
        reward = jax.lax.stop_gradient(credit.reward(learned, batch))
        next_action, next_log_prob = state.actor.sample(batch.next_observation, next_noise)
        next_value = lowest_next_value(state.targets, batch, next_action) - alpha * next_log_prob
        target = bootstrapped(reward, batch, self.gamma, next_value)
        (_, (encodings, metrics)), gradients = jax.value_and_grad(critic_loss, has_aux=True)(
            state.critics, batch, target, self.smooth_l1
        )
        critics, critic_optimizer = _step(
            self._optimizer, gradients, state.critic_optimizer, state.critics
        )

        (actor_loss, log_prob), gradients = jax.value_and_grad(_actor_loss, has_aux=True)(
            state.actor, critics, encodings, batch, noise, alpha
        )
        actor, actor_optimizer = _step(
            self._optimizer, gradients, state.actor_optimizer, state.actor
        )

        target_entropy = -shape[1] if self.target_entropy is None else self.target_entropy
        gradient = -(jnp.mean(log_prob) + target_entropy)  # of −log α·(log π + target)
        log_alpha, alpha_optimizer = _step(
            self._temperature_optimizer, gradient, state.alpha_optimizer, state.log_alpha
        )

        state = SACState(
            actor=actor,
            critics=critics,
            targets=move_towards(state.targets, critics, self.tau),
            log_alpha=log_alpha,
            actor_optimizer=actor_optimizer,
            critic_optimizer=critic_optimizer,
            alpha_optimizer=alpha_optimizer,
            credit=learned,
            key=key,
        )
        return state, metrics | credit_metrics | {
            "actor_loss": actor_loss,
            "entropy": -jnp.mean(log_prob),
            "temperature": alpha,
        }


def _step(
    optimizer: optax.GradientTransformation, gradients: Any, state: Any, parameters: Any
) -> tuple[Any, Any]:
    updates, state = optimizer.update(gradients, state)
    return optax.apply_updates(parameters, updates), state


def _actor_loss(
    actor: GaussianPolicy,
    critics: Critics,
    encodings: tuple[Any, ...],
    batch: IntervalBatch,
    noise: jax.Array,
    alpha: jax.Array,
) -> tuple[jax.Array, jax.Array]:
    """Mean of α·log π − min_k Q_k(τ_{t_i−c:t} ∘ (s_t, a)), a ~ π.

    The history enters through encodings that the critics' loss has made already. It takes no
    gradient, but it takes part in deciding which critic is the lowest.
    """
    observation = batch.observation
    action, log_prob = actor.sample(observation, noise)
    values = [
        critic.value(jax.lax.stop_gradient(encoding), observation, action)
        for critic, encoding in zip(critics, encodings, strict=True)
    ]
    loss = jnp.mean(alpha * log_prob - jnp.min(jnp.stack(values), axis=0))
    return loss, log_prob
