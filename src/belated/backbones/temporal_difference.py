"""What SAC and TD3 share: the loss of the critics and their slow copies."""

from __future__ import annotations

from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import optax

from belated.critics import Critic
from belated.replay import IntervalBatch

Metrics = dict[str, jax.Array]
Tree = TypeVar("Tree")
Critics = tuple[Critic, ...]


def critic_loss(
    critics: Critics, batch: IntervalBatch, target: jax.Array, smooth_l1: bool = False
) -> tuple[jax.Array, tuple[tuple[Any, ...], Metrics]]:
    """Σ_k mean (Q_k(τ_{t_i−c:t+1}) − y)² + what each critic adds to it (Eqs. 4 and 8).

    Args:
        critics: the Q_k.
        batch: the steps.
        target: y, shape (B,).
        smooth_l1: take Huber's loss with δ = 1 in place of the square.

    Returns:
        The loss, and beside it the critics' encodings of the batch, for the actor's loss, and
        metrics.
    """
    encodings = tuple(critic.encode(batch) for critic in critics)
    observation, action = batch.observation, batch.action
    values = [c.value(e, observation, action) for c, e in zip(critics, encodings, strict=True)]
    error = optax.huber_loss if smooth_l1 else jnp.square
    td_loss = sum((jnp.mean(error(q - target)) for q in values), jnp.zeros(()))
    auxiliary = sum(
        (c.auxiliary_loss(e, batch) for c, e in zip(critics, encodings, strict=True)),
        jnp.zeros(()),
    )
    metrics = {
        "td_loss": td_loss,
        "auxiliary_loss": auxiliary,
        "value_mean": jnp.mean(jnp.stack(values)),
        "target_mean": jnp.mean(target),
    }
    return td_loss + auxiliary, (encodings, metrics)


def lowest_next_value(targets: Critics, batch: IntervalBatch, action: jax.Array) -> jax.Array:
    """The smallest of the target critics' values of the step that follows: (B,)."""
    return jnp.min(jnp.stack([target.next_value(batch, action) for target in targets]), axis=0)


def bootstrapped(
    reward: jax.Array, batch: IntervalBatch, gamma: float, next_value: jax.Array
) -> jax.Array:
    """Y = R_t + γ·(1 − terminated)·(value of what follows); truncation does not stop it."""
    target: jax.Array = reward + gamma * (1 - batch.terminated) * next_value
    return target


def move_towards(slow: Tree, fast: Tree, rate: float) -> Tree:
    """Move every parameter of ``slow`` a little towards the one of ``fast``."""
    moved: Tree = jax.tree.map(lambda s, f: s + rate * (f - s), slow, fast)
    return moved
