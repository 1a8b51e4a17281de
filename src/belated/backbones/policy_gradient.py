"""What PPO and LIRPG share: advantages, the clipped loss, minibatches, and Adam's step."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import optax

from belated.backbones.base import discount
from belated.experience.rollout import Rollout
from belated.networks.descent import descend


def linear_recurrence(decay: jax.Array, x: jax.Array, *, reverse: bool = False) -> jax.Array:
    """y_t = x_t + decay_t·y_{t−1} along the first axis (y_{t+1} in reverse), in log T steps."""

    def compose(
        before: tuple[jax.Array, jax.Array], after: tuple[jax.Array, jax.Array]
    ) -> tuple[jax.Array, jax.Array]:
        return before[0] * after[0], after[1] + after[0] * before[1]

    result: jax.Array = jax.lax.associative_scan(compose, (decay, x), reverse=reverse)[1]
    return result


def generalized_advantages(
    reward: jax.Array,
    value: jax.Array,
    next_value: jax.Array,
    rollout: Rollout,
    gamma_lambda: tuple[float, float],
) -> jax.Array:
    """A_t = δ_t + γλ·A_{t+1}, δ_t = R_t + γ·V(s_{t+1}) − V(s_t) (Schulman et al., 2016): (T, L).

    γ is γ^Δ for a step of duration Δ.

    V(s_{t+1}) counts unless the episode terminated; A_{t+1} counts unless it belongs to another
    episode. A truncated episode is therefore bootstrapped, and so is the end of the rollout.

    Args:
        reward: (T, L).
        value: V(s_t), (T, L).
        next_value: V(s_{t+1}), (T, L).
        rollout: says where episodes end and what is padding.
        gamma_lambda: γ and λ.
    """
    gamma, lam = discount(gamma_lambda[0], rollout.duration), gamma_lambda[1]
    delta = reward + gamma * (1 - rollout.terminated) * next_value - value
    # 0 in padding, so that the last step of a lane has nothing after it.
    return linear_recurrence(
        gamma * lam * (1 - rollout.episode_end), delta * rollout.mask, reverse=True
    )


def discounted_so_far(reward: jax.Array, rollout: Rollout, gamma: float) -> jax.Array:
    """G_t = R_t + γ·G_{t−1} within an episode, from the rollout's start on: (T, L)."""
    first = ((1, 0), (0, 0))
    ended_before = jnp.pad(rollout.episode_end[:-1], first)
    decay = discount(gamma, jnp.pad(rollout.duration[:-1], first, constant_values=1.0))
    return linear_recurrence(decay * (1 - ended_before), reward)


def weighted_mean(x: jax.Array, weight: jax.Array) -> jax.Array:
    """Σ weight·x / Σ weight, 0 where there is no weight at all."""
    return jnp.sum(x * weight) / jnp.maximum(jnp.sum(weight), 1)


def standardize(x: jax.Array, mask: jax.Array) -> jax.Array:
    """Shift and scale to mean 0 and variance 1 over the unmasked; 0 elsewhere."""
    centered = (x - weighted_mean(x, mask)) * mask
    # The small number is under the root: the gradient is finite where all advantages are the same.
    return centered / jnp.sqrt(weighted_mean(centered**2, mask) + 1e-12)


def clipped_loss(
    log_ratio: jax.Array, advantage: jax.Array, weight: jax.Array, clip: float
) -> jax.Array:
    """−mean min(ρ·A, clip(ρ, 1 ± ε)·A), ρ = π/π_old (Schulman et al., 2017): a scalar."""
    ratio = jnp.exp(log_ratio)
    clipped = jnp.clip(ratio, 1 - clip, 1 + clip)
    return -weighted_mean(jnp.minimum(ratio * advantage, clipped * advantage), weight)


def minibatch_orders(key: jax.Array, mask: jax.Array, epochs: int, minibatches: int) -> jax.Array:
    """Shuffle steps anew for each epoch: (epochs · minibatches, size) numbers of steps.

    The steps are dealt like cards, padding last, so that minibatches hold as many steps as each
    other, give or take one. Numbers from ``len(mask)`` on stand for nothing.

    Args:
        key: where the randomness comes from.
        mask: (N,), 0 for padding.
        epochs: how many times every step is looked at.
        minibatches: how many parts an epoch has.
    """
    size = -(-len(mask) // minibatches)
    score = jax.random.uniform(key, (epochs, len(mask))) + (1 - mask)
    nothing = ((0, 0), (0, size * minibatches - len(mask)))
    order = jnp.argsort(jnp.pad(score, nothing, constant_values=2.0), axis=1)
    dealt = order.reshape(epochs, size, minibatches).transpose(0, 2, 1)
    return dealt.reshape(-1, size)


def pick(rows: Any, numbers: jax.Array) -> Any:
    """Take rows of every array of a pytree; rows that do not exist are zeros."""
    return jax.tree.map(lambda x: jnp.take(x, numbers, axis=0, mode="fill", fill_value=0), rows)


def flat(x: jax.Array) -> jax.Array:
    """Put lanes after each other: (T, L, ...) to (T·L, ...)."""
    return jnp.reshape(x, (-1, *x.shape[2:]))


class ClippedAdam:
    """Adam after clipping the gradient's norm; its step can be differentiated.

    Args:
        learning_rate: Adam's.
        max_norm: how long the gradient may be.
    """

    def __init__(self, learning_rate: float, max_norm: float) -> None:
        # eps_root: the root's derivative is infinite at 0, where a gradient was always 0.
        self._adam = optax.flatten(optax.adam(learning_rate, eps=1e-5, eps_root=1e-16))
        self._max_norm = max_norm

    def init(self, parameters: Any) -> Any:
        """Make a fresh state."""
        return self._adam.init(parameters)

    def step(self, gradients: Any, state: Any, parameters: Any) -> tuple[Any, Any]:
        """Return the parameters and the state after one step."""
        squares = sum(jnp.sum(gradient**2) for gradient in jax.tree.leaves(gradients))
        shrink = jnp.minimum(1, self._max_norm / jnp.sqrt(squares + 1e-12))
        gradients = jax.tree.map(lambda gradient: gradient * shrink, gradients)
        return descend(self._adam, gradients, state, parameters)
