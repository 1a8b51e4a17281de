"""Twin delayed deep deterministic policy gradient (Fujimoto et al., 2018), for any critic."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from belated.backbones.temporal_difference import (
    Critics,
    TemporalDifference,
    bootstrapped,
    critic_loss,
    lowest_next_value,
    move_towards,
    values_of,
)
from belated.experience.base import Metrics
from belated.experience.batch import IntervalBatch
from belated.experience.step import ProblemShape
from belated.networks import DeterministicPolicy
from belated.networks.descent import descend
from belated.parts import register
from belated.ranges import checked, non_negative, positive_int


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


@register
@dataclass(frozen=True)
class TD3(TemporalDifference):
    """Hyperparameters of TD3 beside those of `TemporalDifference`; the actor uses the first critic.

    Attributes:
        exploration_noise: standard deviation of the noise on actions taken.
        target_noise: standard deviation of the noise on the target policy's actions.
        target_noise_clip: where that noise is clipped.
        policy_delay: how many updates of the critics come with one of the actor and the targets.
    """

    exploration_noise: float = 0.1
    target_noise: float = 0.2
    target_noise_clip: float = 0.5
    policy_delay: int = 2

    def __post_init__(self) -> None:
        super().__post_init__()
        checked(
            self,
            exploration_noise=non_negative,
            target_noise=non_negative,
            target_noise_clip=non_negative,
            policy_delay=positive_int,
        )

    def init(self, seed: int, shape: ProblemShape) -> TD3State:
        """Make a fresh state.

        Raises:
            ValueError: if actions are discrete.
        """
        if shape.choices:
            raise ValueError(
                "TD3 moves actions along the critic's gradient, so they cannot be discrete. For "
                "those there are `dqn`, its relative, and `sac`, with the same variants."
            )
        rng = np.random.default_rng(seed)
        actor = DeterministicPolicy(rng, shape.observation_size, self.hidden, shape.action_size)
        critics = self._critics(rng, shape)
        key = jax.random.key(rng.integers(2**32, dtype=np.uint32))
        return TD3State(
            actor=actor,
            critics=critics,
            target_actor=jax.tree.map(jnp.copy, actor),
            targets=jax.tree.map(jnp.copy, critics),
            actor_optimizer=self._optimizer.init(actor),
            critic_optimizer=self._optimizer.init(critics),
            updates=jnp.zeros((), jnp.int32),
            credit=self.credit.init(rng, shape),
            key=key,
        )

    def act(
        self, actor: DeterministicPolicy, observation: jax.Array, noise: jax.Array
    ) -> jax.Array:
        """Explore: the policy's action with noise, given standard normal noise (B, A)."""
        return jnp.clip(actor.mode(observation) + self.exploration_noise * noise, -1, 1)

    def update(self, state: TD3State, data: IntervalBatch) -> tuple[TD3State, Metrics]:
        """One gradient step of the critics and, every so often, of the actor."""
        key, noise_key, credit_key = jax.random.split(state.key, 3)
        noise = self.target_noise * jax.random.normal(noise_key, data.action.shape)
        noise = jnp.clip(noise, -self.target_noise_clip, self.target_noise_clip)
        next_action = state.target_actor.mode(data.next_observation) + noise
        learned, data, credit_metrics = self._credited(state, data, credit_key)
        next_value = lowest_next_value(state.targets, data, jnp.clip(next_action, -1, 1))
        target = bootstrapped(data.reward, data, self.gamma, next_value)
        (_, (encodings, metrics)), gradients = jax.value_and_grad(critic_loss, has_aux=True)(
            state.critics, data, target
        )
        critics, critic_optimizer = descend(
            self._optimizer, gradients, state.critic_optimizer, state.critics
        )
        state = state._replace(
            critics=critics,
            critic_optimizer=critic_optimizer,
            updates=state.updates + 1,
            credit=learned,
            key=key,
        )
        state = jax.lax.cond(
            state.updates % self.policy_delay == 0,
            lambda s: self._update_actor(s, encodings, data),
            lambda s: s,
            state,
        )
        return state, metrics | credit_metrics

    def _update_actor(
        self, state: TD3State, encodings: tuple[Any, ...], batch: IntervalBatch
    ) -> TD3State:
        first = state.critics[:1], encodings[:1]
        gradients = jax.grad(_actor_loss)(state.actor, *first, batch)
        actor, actor_optimizer = descend(
            self._optimizer, gradients, state.actor_optimizer, state.actor
        )
        return state._replace(
            actor=actor,
            actor_optimizer=actor_optimizer,
            target_actor=move_towards(state.target_actor, actor, self.tau),
            targets=move_towards(state.targets, state.critics, self.tau),
        )


def _actor_loss(
    actor: DeterministicPolicy, critics: Critics, encodings: tuple[Any, ...], batch: IntervalBatch
) -> jax.Array:
    """−mean Q_1(τ_{t_i−c:t} ∘ (s_t, π(s_t))); the history takes no gradient."""
    observation = batch.observation
    return -jnp.mean(values_of(critics, encodings, observation, actor.mode(observation))[0])
