"""What backbones share that keep their policy's entropy near a target."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import optax

from belated.backbones.temporal_difference import TemporalDifference
from belated.networks.descent import Optimizer, adam, descend
from belated.ranges import checked, flag, fraction, non_negative, number, optional, positive

State = TypeVar("State", bound=Any)


@dataclass(frozen=True)
class MaximumEntropy(TemporalDifference):
    """Hyperparameters beside those of `TemporalDifference`.

    Attributes:
        initial_temperature: α at the start.
        target_entropy: what α is adapted to; None or "auto" for −|A|, and for discrete actions for
            ``entropy_fraction`` of the largest possible entropy.
        entropy_fraction: which part of it that is; for discrete actions only.
        temperature_learning_rate: Adam's for the temperature; None for the same as the others'.
        max_gradient_norm: where the gradients' norm is clipped; None for nowhere.
        smooth_l1: whether large TD errors count linearly, not squared.
    """

    initial_temperature: float = 1.0
    target_entropy: float | None = None
    entropy_fraction: float = 0.5
    temperature_learning_rate: float | None = None
    max_gradient_norm: float | None = None
    smooth_l1: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        checked(
            self,
            initial_temperature=positive,
            target_entropy=optional(number, "auto"),
            entropy_fraction=fraction,
            temperature_learning_rate=optional(non_negative),
            max_gradient_norm=optional(positive),
            smooth_l1=flag,
        )

    @property
    def _optimizer(self) -> Optimizer:
        return adam(self.learning_rate, self.max_gradient_norm)

    @property
    def _temperature_optimizer(self) -> Optimizer:
        rate = self.temperature_learning_rate
        return optax.adam(self.learning_rate if rate is None else rate)

    @property
    def _initial_log_alpha(self) -> jax.Array:
        return jnp.asarray(math.log(self.initial_temperature), jnp.float32)

    def _adapt_temperature(
        self, state: State, log_prob: jax.Array, observation: jax.Array
    ) -> State:
        """One step down −log α·(log π + target) for a state with ``log_alpha`` and an actor."""
        wanted: Any = self.target_entropy
        if wanted is None:
            wanted = state.actor.head.target_entropy(observation, self.entropy_fraction)
        gradient = -(jnp.mean(log_prob) + wanted)
        log_alpha, alpha_optimizer = descend(
            self._temperature_optimizer, gradient, state.alpha_optimizer, state.log_alpha
        )
        changed: State = state._replace(log_alpha=log_alpha, alpha_optimizer=alpha_optimizer)
        return changed
