"""LIRPG (Zheng et al., 2018): learn the reward that makes the policy gradient work, on PPO."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from belated.backbones.policy_gradient import (
    ClippedAdam,
    clipped_loss,
    flat,
    generalized_advantages,
    minibatch_orders,
    pick,
    standardize,
    weighted_mean,
)
from belated.backbones.ppo import PPO, Networks, Samples, acted, means, next_actor
from belated.experience.base import Metrics
from belated.experience.rollout import Rollout
from belated.experience.step import ProblemShape
from belated.networks import Moments, NormalizedPolicy, TanhMLP
from belated.parts import register
from belated.ranges import checked, non_negative, number


class RewardNetworks(NamedTuple):
    """η: the reward that the policy learns from, and the value of the one it is judged by."""

    intrinsic: TanhMLP
    value: TanhMLP


class LIRPGState(NamedTuple):
    """Everything that an update changes."""

    actor: NormalizedPolicy
    value: TanhMLP
    optimizer: Any
    rewards: RewardNetworks
    reward_optimizer: Any
    returns: Moments
    credit: Any
    key: jax.Array


class Constants(NamedTuple):
    """What stays the same during all gradient steps of an update; N = T·L."""

    rollout: Rollout
    observation: jax.Array  # (T, L, D) normalised
    reward: jax.Array  # (T, L) extrinsic
    value: jax.Array  # (T, L) of the mixed reward, and of the following states
    next_value: jax.Array
    extrinsic: Samples  # (N, ...) with the advantages of the extrinsic reward


class Learning(NamedTuple):
    """What each gradient step changes."""

    networks: Networks  # θ
    optimizer: Any
    rewards: RewardNetworks  # η
    reward_optimizer: Any


@register
@dataclass(frozen=True)
class LIRPG(PPO):
    """Hyperparameters of LIRPG; those it shares with PPO mean the same.

    θ, the policy and its value, takes a PPO step on c_in·r_in + c_ex·r_ex; η, the intrinsic reward
    r_in(s, a), follows the gradient of PPO's loss on r_ex alone *through that step*.

    Attributes:
        intrinsic_learning_rate: Adam's, for η.
        intrinsic_coefficient: c_in, the weight of r_in for the policy.
        extrinsic_coefficient: c_ex, that of the revealed reward.
    """

    intrinsic_learning_rate: float = 1e-4
    intrinsic_coefficient: float = 1.0
    extrinsic_coefficient: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        checked(
            self,
            intrinsic_learning_rate=non_negative,
            intrinsic_coefficient=number,
            extrinsic_coefficient=number,
        )

    def init(self, seed: int, shape: ProblemShape) -> LIRPGState:  # type: ignore[override]
        """Make a fresh state."""
        plain = super().init(seed, shape)
        rng = np.random.default_rng([seed, 1])
        rewards = RewardNetworks(
            intrinsic=TanhMLP(rng, shape.step_size, self.hidden, 1),
            value=TanhMLP(rng, shape.observation_size, self.hidden, 1),
        )
        return LIRPGState(
            **plain._asdict(),
            rewards=rewards,
            reward_optimizer=self.reward_optimizer.init(rewards),
        )

    @property
    def reward_optimizer(self) -> ClippedAdam:
        """The optimiser of η."""
        return ClippedAdam(self.intrinsic_learning_rate, self.max_gradient_norm)

    def update(self, state: LIRPGState, data: Rollout) -> tuple[LIRPGState, Metrics]:
        """All epochs of gradient steps on one rollout."""
        rollout = data
        state, reward, order_key, credit_metrics = self.rewarded(state, rollout)
        constants = self.constants(state, rollout, reward)
        mask = constants.extrinsic.weight
        orders = minibatch_orders(order_key, mask, self.epochs, self.minibatches)
        learning = Learning(
            networks=Networks(state.actor.policy, state.value),
            optimizer=state.optimizer,
            rewards=state.rewards,
            reward_optimizer=state.reward_optimizer,
        )
        learning, metrics = jax.lax.scan(
            lambda learning, order: self.step(learning, constants, order), learning, orders
        )
        intrinsic = intrinsic_reward(learning.rewards.intrinsic, constants)
        state = state._replace(
            actor=next_actor(state.actor, learning.networks.policy, rollout),
            value=learning.networks.value,
            optimizer=learning.optimizer,
            rewards=learning.rewards,
            reward_optimizer=learning.reward_optimizer,
        )
        return state, credit_metrics | means(metrics) | {
            "value_mean": weighted_mean(constants.value, rollout.mask),
            "intrinsic_reward_mean": weighted_mean(intrinsic, rollout.mask),
        }

    def constants(self, state: LIRPGState, rollout: Rollout, reward: jax.Array) -> Constants:
        """Work out what the gradient steps on a rollout have in common."""
        normalizer = state.actor.normalizer
        advantage, value = self.advantages(reward, rollout, normalizer, state.rewards.value)
        now, following = (
            normalizer.normalize(x) for x in (rollout.observation, rollout.next_observation)
        )
        return Constants(
            rollout=rollout,
            observation=now,
            reward=reward,
            value=state.value(now)[..., 0],
            next_value=state.value(following)[..., 0],
            extrinsic=Samples(
                **acted(rollout, state.actor),
                advantage=flat(standardize(advantage, rollout.mask)),
                target=flat(advantage + value),
            ),
        )

    def step(
        self, learning: Learning, constants: Constants, order: jax.Array
    ) -> tuple[Learning, Metrics]:
        """One step of θ, and one of η through it, on the steps with these numbers."""
        gradients, (networks, optimizer, metrics) = jax.grad(self.meta_loss, has_aux=True)(
            learning.rewards, learning, constants, order
        )
        rewards, reward_optimizer = self.reward_optimizer.step(
            gradients, learning.reward_optimizer, learning.rewards
        )
        return Learning(networks, optimizer, rewards, reward_optimizer), metrics

    def meta_loss(
        self, rewards: RewardNetworks, learning: Learning, constants: Constants, order: jax.Array
    ) -> tuple[jax.Array, tuple[Networks, Any, Metrics]]:
        """How well θ', one step of Adam after θ, does on the extrinsic reward; and θ' itself."""
        mixed = pick(self.mixed(rewards.intrinsic, constants), order)
        gradients, metrics = jax.grad(self.loss, has_aux=True)(learning.networks, mixed)
        networks, optimizer = self.optimizer.step(gradients, learning.optimizer, learning.networks)

        samples: Samples = pick(constants.extrinsic, order)
        log_prob = networks.policy.log_prob(samples.observation, samples.action, samples.allowed)
        log_ratio = log_prob - samples.log_prob
        actor_loss = clipped_loss(log_ratio, samples.advantage, samples.weight, self.clip)
        value = rewards.value(samples.observation)[:, 0]
        value_loss = weighted_mean((value - samples.target) ** 2, samples.weight)
        metrics |= {"meta_actor_loss": actor_loss, "meta_value_loss": value_loss}
        return actor_loss + self.value_coefficient * value_loss, (networks, optimizer, metrics)

    def mixed(self, intrinsic: TanhMLP, constants: Constants) -> Samples:
        """The samples with the advantages of the mixed reward, as a function of r_in."""
        reward = (
            self.intrinsic_coefficient * intrinsic_reward(intrinsic, constants)
            + self.extrinsic_coefficient * constants.reward
        )
        advantage = generalized_advantages(
            reward,
            constants.value,
            constants.next_value,
            constants.rollout,
            (self.gamma, self.gae_lambda),
        )
        return constants.extrinsic._replace(
            advantage=flat(standardize(advantage, constants.rollout.mask)),
            target=flat(advantage + constants.value),
        )


def intrinsic_reward(network: TanhMLP, constants: Constants) -> jax.Array:
    """r_in(s, a) in [−1, 1] for every step, the action as the environment got it: (T, L)."""
    action = jnp.clip(constants.rollout.action, -1, 1)
    return jnp.tanh(network(jnp.concatenate([constants.observation, action], axis=-1))[..., 0])
