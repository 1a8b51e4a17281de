"""Proximal policy optimisation (Schulman et al., 2017) for any credit rule over rollouts."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from belated.backbones.base import Backbone, require_part
from belated.backbones.policy_gradient import (
    ClippedAdam,
    clipped_loss,
    discounted_so_far,
    flat,
    generalized_advantages,
    minibatch_orders,
    pick,
    standardize,
    weighted_mean,
)
from belated.credit import Revealed, RolloutCredit
from belated.experience.base import Metrics
from belated.experience.batch import Needs
from belated.experience.on_policy import RolloutTraining
from belated.experience.rollout import Rollout
from belated.experience.step import ProblemShape
from belated.networks import ChoicePolicy, Moments, NormalizedPolicy, TanhMLP, UnsquashedPolicy
from belated.parts import register
from belated.ranges import checked, fraction, layers, non_negative, positive, positive_int


class Networks(NamedTuple):
    """What the loss is differentiated by."""

    policy: UnsquashedPolicy | ChoicePolicy
    value: TanhMLP


class Samples(NamedTuple):
    """What the loss looks at, one row for each step; observations are normalised."""

    observation: jax.Array  # (N, D)
    action: jax.Array  # (N, A)
    log_prob: jax.Array  # (N,) of the policy that acted
    advantage: jax.Array  # (N,) standardised
    target: jax.Array  # (N,) for the value
    weight: jax.Array  # (N,) 0 for padding
    allowed: jax.Array | None  # (N, A) which options were allowed


class PPOState(NamedTuple):
    """Everything that an update changes."""

    actor: NormalizedPolicy
    value: TanhMLP
    optimizer: Any
    returns: Moments
    credit: Any
    key: jax.Array


@register
@dataclass(frozen=True)
class PPO(Backbone):
    """Hyperparameters of PPO; the defaults are the usual ones for MuJoCo.

    Observations are normalised by their running mean and variance, rewards are divided by the
    running standard deviation of their discounted sum. Both see no more than the method does.

    Attributes:
        credit: what reward the policy learns from.
        hidden: the hidden layers of the policy and of its value function.
        gamma: the discount of a step.
        gae_lambda: λ of the generalised advantages.
        learning_rate: Adam's.
        clip: ε, how far the ratio of new and old policy counts.
        epochs: how many times an update looks at every step of a rollout.
        minibatches: how many gradient steps an epoch has.
        rollout_steps: how many steps a rollout has at least.
        value_coefficient: the weight of the value's loss.
        entropy_coefficient: the weight of the policy's entropy.
        max_gradient_norm: longer gradients are shortened to it.
    """

    learns_from: ClassVar[type[RolloutTraining]] = RolloutTraining

    credit: RolloutCredit = field(default_factory=Revealed)
    hidden: tuple[int, ...] = (64, 64)
    gamma: float = 0.99
    gae_lambda: float = 0.95
    learning_rate: float = 3e-4
    clip: float = 0.2
    epochs: int = 10
    minibatches: int = 32
    rollout_steps: int = 2048
    value_coefficient: float = 0.5
    entropy_coefficient: float = 0.0
    max_gradient_norm: float = 0.5

    def __post_init__(self) -> None:
        require_part(self, self.credit, RolloutCredit, "needs a credit rule for rollouts")
        checked(
            self,
            hidden=layers,
            gamma=fraction,
            gae_lambda=fraction,
            learning_rate=non_negative,
            clip=positive,
            epochs=positive_int,
            minibatches=positive_int,
            rollout_steps=positive_int,
            value_coefficient=non_negative,
            entropy_coefficient=non_negative,
            max_gradient_norm=positive,
        )
        if self.rollout_steps < self.minibatches:
            raise ValueError(
                f"A rollout of {self.rollout_steps} steps cannot be split into {self.minibatches} "
                "minibatches; lower minibatches or raise rollout_steps."
            )

    @property
    def needs(self) -> Needs:
        """What the credit rule looks at."""
        return self.credit.needs

    @property
    def tells_credit(self) -> bool:
        """Whether the credit rule tells steps apart."""
        return self.credit.tells_credit

    def credit_of(self, state: Any, data: Rollout) -> jax.Array:
        """What the credit rule gives each step: (T, L)."""
        return self.credit.credit(state.credit, data)

    def init(self, seed: int, shape: ProblemShape) -> PPOState:
        """Make a fresh state."""
        rng = np.random.default_rng(seed)
        sizes = shape.observation_size, self.hidden, shape.action_size
        policy: UnsquashedPolicy | ChoicePolicy
        if shape.choices:
            policy = ChoicePolicy(rng, shape, self.hidden)
        else:
            policy = UnsquashedPolicy(rng, *sizes)
        value = TanhMLP(rng, shape.observation_size, self.hidden, 1)
        return PPOState(
            actor=NormalizedPolicy(policy, Moments((shape.observation_size,)), shape),
            value=value,
            optimizer=self.optimizer.init(Networks(policy, value)),
            returns=Moments(),
            credit=self.credit.init(rng, shape),
            key=jax.random.key(rng.integers(2**32, dtype=np.uint32)),
        )

    @property
    def optimizer(self) -> ClippedAdam:
        """The optimiser of policy and value."""
        return ClippedAdam(self.learning_rate, self.max_gradient_norm)

    def act(self, actor: NormalizedPolicy, observation: jax.Array, noise: jax.Array) -> jax.Array:
        """Explore: a sample of the policy, given standard normal noise (B, A)."""
        return actor.act(observation, noise)

    def update(self, state: Any, data: Rollout) -> tuple[Any, Metrics]:
        """All epochs of gradient steps on one rollout."""
        rollout = data
        state, reward, order_key, credit_metrics = self.rewarded(state, rollout)
        networks = Networks(state.actor.policy, state.value)
        advantage, value = self.advantages(reward, rollout, state.actor.normalizer, state.value)
        samples = Samples(
            **acted(rollout, state.actor),
            advantage=flat(standardize(advantage, rollout.mask)),
            target=flat(advantage + value),
        )
        orders = minibatch_orders(order_key, samples.weight, self.epochs, self.minibatches)

        def step(carry: tuple[Networks, Any], order: jax.Array) -> tuple[Any, Metrics]:
            networks, optimizer = carry
            gradients, metrics = jax.grad(self.loss, has_aux=True)(networks, pick(samples, order))
            return self.optimizer.step(gradients, optimizer, networks), metrics

        (networks, optimizer), metrics = jax.lax.scan(step, (networks, state.optimizer), orders)
        state = state._replace(
            actor=next_actor(state.actor, networks.policy, rollout),
            value=networks.value,
            optimizer=optimizer,
        )
        return state, credit_metrics | means(metrics) | {
            "value_mean": weighted_mean(value, rollout.mask) * state.returns.scale
        }

    def rewarded(self, state: Any, rollout: Rollout) -> tuple[Any, jax.Array, jax.Array, Metrics]:
        """What the credit rule makes of a rollout.

        Rewards are divided by the running standard deviation of their discounted sums.

        Returns:
            The state with what was learned of credit and scale, the rewards (T, L), a key to draw
            minibatches with, and metrics.
        """
        key, credit_key, order_key = jax.random.split(state.key, 3)
        learned, reward, metrics = self.credit.redistribute(state.credit, rollout, credit_key)
        so_far = discounted_so_far(reward, rollout, self.gamma)
        returns = state.returns.update(so_far, rollout.mask)
        state = state._replace(returns=returns, credit=learned, key=key)
        return state, reward / returns.scale, order_key, metrics

    def advantages(
        self, reward: jax.Array, rollout: Rollout, normalizer: Moments, value: TanhMLP
    ) -> tuple[jax.Array, jax.Array]:
        """The advantages of a rollout's steps and the values of their states, (T, L) each."""
        now, following = (
            value(normalizer.normalize(observation))[..., 0]
            for observation in (rollout.observation, rollout.next_observation)
        )
        decay = (self.gamma, self.gae_lambda)
        return generalized_advantages(reward, now, following, rollout, decay), now

    def loss(self, networks: Networks, samples: Samples) -> tuple[jax.Array, Metrics]:
        """The clipped loss, with the value's loss and the entropy."""
        seen = samples.observation
        log_prob = networks.policy.log_prob(seen, samples.action, samples.allowed)
        log_ratio = log_prob - samples.log_prob
        actor_loss = clipped_loss(log_ratio, samples.advantage, samples.weight, self.clip)
        value = networks.value(seen)[:, 0]
        value_loss = weighted_mean((value - samples.target) ** 2, samples.weight)
        entropy = weighted_mean(
            jnp.broadcast_to(networks.policy.entropy(seen, samples.allowed), value.shape),
            samples.weight,
        )
        loss = actor_loss + self.value_coefficient * value_loss - self.entropy_coefficient * entropy
        ratio = jnp.exp(log_ratio)
        outside = (jnp.abs(ratio - 1) > self.clip).astype(ratio.dtype)
        return loss, {
            "actor_loss": actor_loss,
            "value_loss": value_loss,
            "entropy": entropy,
            "kl": weighted_mean(ratio - 1 - log_ratio, samples.weight),
            "clip_fraction": weighted_mean(outside, samples.weight),
        }


def acted(rollout: Rollout, actor: NormalizedPolicy) -> dict[str, Any]:
    """What was seen and done in a rollout, and how likely that was, as rows of `Samples`.

    The actor must be the one that acted, its normaliser included: then the log densities are those
    of the behaviour, without having been stored.
    """
    observation = actor.normalizer.normalize(flat(rollout.observation))
    action = flat(rollout.action)
    allowed = actor.shape.allowed(flat(rollout.observation))
    return {
        "observation": observation,
        "action": action,
        "log_prob": actor.policy.log_prob(observation, action, allowed),
        "weight": flat(rollout.mask),
        "allowed": allowed,
    }


def next_actor(
    actor: NormalizedPolicy, policy: UnsquashedPolicy | ChoicePolicy, rollout: Rollout
) -> NormalizedPolicy:
    """The actor for the next rollout: only now does its normaliser take this one's states in."""
    normalizer = actor.normalizer.update(rollout.observation, rollout.mask)
    return NormalizedPolicy(policy, normalizer, actor.shape)


def means(metrics: Metrics) -> Metrics:
    """The mean of each metric over the gradient steps of an update."""
    return {name: jnp.mean(values) for name, values in metrics.items()}
