"""Gradient descent: Adam over one vector, and its step."""

from __future__ import annotations

from typing import Any, TypeAlias

import optax

Optimizer: TypeAlias = optax.GradientTransformation


def adam(learning_rate: float, max_norm: float | None = None, momentum: float = 0.9) -> Optimizer:
    """Adam with β₁ = ``momentum``; gradients longer than ``max_norm`` are first shortened to it.

    The moments of all parameters are kept in one vector: fewer buffers to pass, fewer loops.
    """
    optimizer = optax.adam(learning_rate, b1=momentum)
    if max_norm is not None:
        optimizer = optax.chain(optax.clip_by_global_norm(max_norm), optimizer)
    return optax.flatten(optimizer)


def descend(optimizer: Optimizer, gradients: Any, state: Any, parameters: Any) -> tuple[Any, Any]:
    """Return the parameters and the optimiser's state after one step."""
    updates, state = optimizer.update(gradients, state, parameters)
    return optax.apply_updates(parameters, updates), state
