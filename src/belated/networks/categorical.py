"""Distributions over discrete actions, as vectors with a part for each component."""

from __future__ import annotations

import itertools

import jax
import jax.numpy as jnp
import numpy as np

from belated.experience.choices import Choices, joint_codes

NEVER = -1e9
"""The logit of an option that is not allowed: finite, so that 0·log 0 is 0."""


def log_probabilities(
    logits: jax.Array, choices: Choices, allowed: jax.Array | None = None
) -> jax.Array:
    """The log probabilities of each component's options: (..., A)."""
    if allowed is not None:
        logits = jnp.where(allowed > 0, logits, NEVER)
    return _joined(jax.nn.log_softmax(_apart(logits, choices), axis=-1), choices)


def likeliest(scores: jax.Array, choices: Choices) -> jax.Array:
    """The actions whose options have the largest scores, as vectors (..., A)."""
    parts = _apart(scores, choices)
    best = jax.nn.one_hot(jnp.argmax(parts, axis=-1), parts.shape[-1], dtype=scores.dtype)
    return _joined(best, choices)


def drawn(log_probability: jax.Array, noise: jax.Array, choices: Choices) -> jax.Array:
    """Turn standard normal noise (..., A) into actions drawn from a distribution, (..., A).

    The option with the largest log p − log(−log u), u uniform, is a draw (Gumbel); Φ(noise) is
    uniform.
    """
    gumbel = -jnp.log(-jax.scipy.special.log_ndtr(noise))
    return likeliest(log_probability + gumbel, choices)


def joint(log_probability: jax.Array, choices: Choices) -> jax.Array:
    """The log probabilities of all joint actions: (B, A) to (J, B)."""
    if len(choices) == 1:
        return log_probability.T
    return jnp.asarray(joint_codes(choices)) @ log_probability.T


def joint_one_hot(action: jax.Array, choices: Choices) -> jax.Array:
    """Which joint action vectors are: (B, A) to (B, J)."""
    if len(choices) == 1:
        return action
    agreeing = action @ jnp.asarray(joint_codes(choices)).T
    return (agreeing > len(choices) - 0.5).astype(action.dtype)


def entropy(log_probability: jax.Array) -> jax.Array:
    """The entropy of distributions (..., A), the sum over their components: (...)."""
    return -jnp.sum(jnp.exp(log_probability) * log_probability, axis=-1)


def largest_entropy(choices: Choices, allowed: jax.Array | None = None) -> jax.Array:
    """The entropy if all options that are allowed are equally likely: () or (...)."""
    if allowed is None:
        return jnp.asarray(np.log(choices).sum(), jnp.float32)
    options = jnp.sum(_apart(allowed, choices, padding=0.0), axis=-1)
    return jnp.sum(jnp.log(jnp.maximum(options, 1.0)), axis=-1)


def _apart(vectors: jax.Array, choices: Choices, padding: float = 2 * NEVER) -> jax.Array:
    """Vectors (..., A) as one row for each component, (..., K, most options)."""
    if len(set(choices)) == 1:
        return vectors.reshape(*vectors.shape[:-1], len(choices), choices[0])
    ends = list(itertools.accumulate(choices))
    missing = [(0, 0)] * (vectors.ndim - 1)
    rows = [
        jnp.pad(
            vectors[..., end - size : end],
            [*missing, (0, max(choices) - size)],
            constant_values=padding,
        )
        for size, end in zip(choices, ends, strict=True)
    ]
    return jnp.stack(rows, axis=-2)


def _joined(rows: jax.Array, choices: Choices) -> jax.Array:
    """Undo `_apart`."""
    if len(set(choices)) == 1:
        return rows.reshape(*rows.shape[:-2], -1)
    return jnp.concatenate([rows[..., k, :size] for k, size in enumerate(choices)], axis=-1)
