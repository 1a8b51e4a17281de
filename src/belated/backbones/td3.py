"""Twin delayed deep deterministic policy gradient (Fujimoto et al., 2018), for any critic."""

from __future__ import annotations

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
from belated.networks import DeterministicPolicy
from belated.replay import IntervalBatch


class TD3State(NamedTuple):
    """Everything that an update changes."""

    actor: DeterministicPolicy
    critics: Critics
    target_actor: DeterministicPolicy
    targets: Critics
    actor_optimizer: Any
    critic_optimizer: Any
    updates: jax.Array
    credit: Any
    key: jax.Array


@dataclass(frozen=True)
class TD3:
    """Hyperparameters of TD3; what it shares with SAC has the paper's values.

    Attributes:
        gamma: the discount of a step.
        learning_rate: Adam's, for the actor and the critics.
        tau: how far the targets move in an update of theirs.
        num_critics: how many critics are trained; targets use the lowest, the actor the first.
        exploration_noise: standard deviation of the noise on actions taken.
        target_noise: standard deviation of the noise on the target policy's actions.
        target_noise_clip: where that noise is clipped.
        policy_delay: how many updates of the critics come with one of the actor and the targets.
    """

    on_policy: ClassVar[bool] = False

    gamma: float = 0.99
    learning_rate: float = 3e-4
    tau: float = 0.005
    num_critics: int = 2
    exploration_noise: float = 0.1
    target_noise: float = 0.2
    target_noise_clip: float = 0.5
    policy_delay: int = 2

    def init(
        self,
        seed: int,
        shape: ProblemShape,
        critic: CriticConfig,
        credit: Credit,
        hidden: tuple[int, ...],
    ) -> TD3State:
        """Make a fresh state."""
        rng = np.random.default_rng(seed)
        actor = DeterministicPolicy(rng, shape.observation_size, hidden, shape.action_size)
        critics = tuple(critic.build(rng, shape, hidden) for _ in range(self.num_critics))
        key = jax.random.key(rng.integers(2**32, dtype=np.uint32))
        return TD3State(
            actor=actor,
            critics=critics,
            target_actor=jax.tree.map(jnp.copy, actor),
            targets=jax.tree.map(jnp.copy, critics),
            actor_optimizer=self._optimizer.init(actor),
            critic_optimizer=self._optimizer.init(critics),
            updates=jnp.zeros((), jnp.int32),
            credit=credit.init(rng, shape),
            key=key,
        )

    @property
    def _optimizer(self) -> optax.GradientTransformation:
        return optax.flatten(optax.adam(self.learning_rate))

    def act(
        self, actor: DeterministicPolicy, observation: jax.Array, noise: jax.Array
    ) -> jax.Array:
        """Explore: the policy's action with noise, given standard normal noise (B, A)."""
        return jnp.clip(actor.mode(observation) + self.exploration_noise * noise, -1, 1)

    def update(
        self, state: TD3State, batch: IntervalBatch, credit: Credit
    ) -> tuple[TD3State, Metrics]:
        """One gradient step of the critics and, every so often, of the actor."""
        key, noise_key = jax.random.split(state.key)
        noise = self.target_noise * jax.random.normal(noise_key, batch.action.shape)
        noise = jnp.clip(noise, -self.target_noise_clip, self.target_noise_clip)
        next_action = state.target_actor.mode(batch.next_observation) + noise
        learned, credit_metrics = credit.update(state.credit, batch, jax.random.fold_in(key, 0))
        reward = jax.lax.stop_gradient(credit.reward(learned, batch))
        next_value = lowest_next_value(state.targets, batch, jnp.clip(next_action, -1, 1))
        target = bootstrapped(reward, batch, self.gamma, next_value)
        (_, (encodings, metrics)), gradients = jax.value_and_grad(critic_loss, has_aux=True)(
            state.critics, batch, target
        )
        updates, critic_optimizer = self._optimizer.update(gradients, state.critic_optimizer)
        state = state._replace(
            critics=optax.apply_updates(state.critics, updates),
            critic_optimizer=critic_optimizer,
            updates=state.updates + 1,
            credit=learned,
            key=key,
        )
        state = jax.lax.cond(
            state.updates % self.policy_delay == 0,
            lambda s: self._update_actor(s, encodings[0], batch),
            lambda s: s,
            state,
        )
        return state, metrics | credit_metrics

    def _update_actor(self, state: TD3State, encoding: Any, batch: IntervalBatch) -> TD3State:
        gradients = jax.grad(_actor_loss)(state.actor, state.critics[0], encoding, batch)
        updates, actor_optimizer = self._optimizer.update(gradients, state.actor_optimizer)
        actor = optax.apply_updates(state.actor, updates)
        return state._replace(
            actor=actor,
            actor_optimizer=actor_optimizer,
            target_actor=move_towards(state.target_actor, actor, self.tau),
            targets=move_towards(state.targets, state.critics, self.tau),
        )


def _actor_loss(
    actor: DeterministicPolicy, critic: Any, encoding: Any, batch: IntervalBatch
) -> jax.Array:
    """−mean Q(τ_{t_i−c:t} ∘ (s_t, π(s_t))); the history takes no gradient."""
    observation = batch.observation
    encoding = jax.lax.stop_gradient(encoding)
    return -jnp.mean(critic.value(encoding, observation, actor.mode(observation)))
