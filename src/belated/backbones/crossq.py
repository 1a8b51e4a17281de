"""CrossQ (Bhatt et al., 2024) for critics of the form H + C: batch normalisation, no target for C.

A slow copy of a normalised network would be normalised by statistics that are not its own. CrossQ
does without: the critic sees (s, a) and (s', a') in one pass, normalised by what they have in
common, and what it says of the second half is the target. H, which sums over a whole history, is
not normalised and keeps a slow target.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from belated.backbones.base import require_part
from belated.backbones.maximum_entropy import MaximumEntropy
from belated.backbones.temporal_difference import bootstrapped, move_towards
from belated.critics import AdditiveConfig, action_values
from belated.critics.hc import HistoryTerm
from belated.experience.base import Metrics
from belated.experience.batch import IntervalBatch
from belated.experience.off_policy import ReplayTraining
from belated.experience.step import ProblemShape
from belated.networks import BatchNormPolicy, NormalizedMLP
from belated.networks.descent import Optimizer, adam, descend
from belated.networks.heads import Outlook
from belated.networks.normalization import GRADIENTS, NetworkStatistics, dead_units, moved
from belated.parts import register
from belated.ranges import checked, fraction, one_of, positive_int


class CrossQState(NamedTuple):
    """Everything that an update changes."""

    actor: BatchNormPolicy
    histories: tuple[HistoryTerm, ...]  # H: none, one of all critics, or one of each
    currents: tuple[NormalizedMLP, ...]  # C_k
    statistics: tuple[NetworkStatistics, ...]  # running ones of the C_k
    targets: tuple[HistoryTerm, ...]  # of H
    log_alpha: jax.Array
    actor_optimizer: Any
    critic_optimizer: Any
    alpha_optimizer: Any
    updates: jax.Array
    credit: Any
    key: jax.Array


@register
@dataclass(frozen=True)
class CrossQ(MaximumEntropy):
    """Hyperparameters of CrossQ beside those of `MaximumEntropy`; ``tau`` is that of H's target.

    Attributes:
        momentum: Adam's β₁.
        statistics_rate: how far the running statistics move in an update.
        statistics_gradient: how the gradient treats the joint statistics; see `NormalizedMLP`.
        policy_delay: how many updates of the critics come with one of actor and temperature.
    """

    learning_rate: float = 1e-3
    momentum: float = 0.5
    statistics_rate: float = 0.01
    statistics_gradient: str = "straight-through"
    policy_delay: int = 3

    def __post_init__(self) -> None:
        super().__post_init__()
        require_part(
            self,
            self.critic,
            AdditiveConfig,
            "normalises the C of critics that are H + C, or C alone (HC, Markov), and needs one",
        )
        checked(
            self,
            momentum=fraction,
            statistics_rate=fraction,
            statistics_gradient=one_of(*GRADIENTS),
            policy_delay=positive_int,
        )

    def init(self, seed: int, shape: ProblemShape) -> CrossQState:
        """Make a fresh state."""
        rng = np.random.default_rng(seed)
        actor = BatchNormPolicy(rng, shape, self.hidden)
        inputs, outputs = action_values.sizes(shape)
        histories = self._recipe.build_histories(rng, shape, self.num_critics)
        currents = tuple(
            NormalizedMLP(rng, inputs, self.hidden, outputs) for _ in range(self.num_critics)
        )
        log_alpha = self._initial_log_alpha
        key = jax.random.key(rng.integers(2**32, dtype=np.uint32))
        return CrossQState(
            actor=actor,
            histories=histories,
            currents=currents,
            statistics=tuple(current.fresh_statistics for current in currents),
            targets=jax.tree.map(jnp.copy, histories),
            log_alpha=log_alpha,
            actor_optimizer=self._optimizer.init(actor.trunk),
            critic_optimizer=self._optimizer.init((histories, currents)),
            alpha_optimizer=self._temperature_optimizer.init(log_alpha),
            updates=jnp.zeros((), jnp.int32),
            credit=self.credit.init(rng, shape),
            key=key,
        )

    @property
    def usual_training(self) -> ReplayTraining:
        """The policy in use is an average: single ones stumble more often than SAC's."""
        return ReplayTraining(policy_average=1_000)

    @property
    def _recipe(self) -> AdditiveConfig:
        assert isinstance(self.critic, AdditiveConfig)
        return self.critic

    @property
    def _optimizer(self) -> Optimizer:
        return adam(self.learning_rate, self.max_gradient_norm, self.momentum)

    def tellers(self, state: CrossQState) -> tuple[Any, ...]:
        """The parts of a state that assign credit, if the critics do."""
        return state.histories

    def act(self, actor: BatchNormPolicy, observation: jax.Array, noise: jax.Array) -> jax.Array:
        """Explore: a sample of the policy, given standard normal noise (B, A)."""
        return actor.act(observation, noise)

    def update(self, state: CrossQState, data: IntervalBatch) -> tuple[CrossQState, Metrics]:
        """One gradient step of the critics and, every so often, of actor and temperature."""
        key, noise_key, credit_key = jax.random.split(state.key, 3)
        next_noise, noise = jax.random.normal(noise_key, (2, *data.action.shape))
        alpha = jnp.exp(state.log_alpha)

        learned, data, credit_metrics = self._credited(state, data, credit_key)
        ahead = state.actor.outlook(data.next_observation, next_noise)
        following = _Following(
            outlook=ahead,
            history=_stacked([target.following(data) for target in state.targets]),
            bonus=-alpha * ahead.log_prob,
        )
        parameters = state.histories, state.currents
        (_, (seen, before, metrics)), gradients = jax.value_and_grad(
            self._critic_loss, has_aux=True
        )(parameters, state.actor.shape, data, following)
        parameters, critic_optimizer = descend(
            self._optimizer, gradients, state.critic_optimizer, parameters
        )
        histories, currents = parameters
        statistics = tuple(
            moved(old, new, self.statistics_rate)
            for old, new in zip(state.statistics, seen, strict=True)
        )
        state = state._replace(
            histories=histories,
            currents=currents,
            statistics=statistics,
            targets=move_towards(state.targets, histories, self.tau),
            critic_optimizer=critic_optimizer,
            updates=state.updates + 1,
            credit=learned,
            key=key,
        )
        state = jax.lax.cond(
            state.updates % self.policy_delay == 0,
            lambda s: self._update_actor(s, before, data, noise),
            lambda s: s,
            state,
        )
        return state, metrics | credit_metrics | {
            "entropy": -jnp.mean(ahead.expected(ahead.log_prob)),
            "temperature": alpha,
            "dead_units": dead_units(seen),
        }

    def _critic_loss(
        self, parameters: Any, shape: ProblemShape, batch: IntervalBatch, following: _Following
    ) -> tuple[jax.Array, tuple[tuple[NetworkStatistics, ...], jax.Array, Metrics]]:
        """Σ_k mean (H_k(τ_{t_i−c:t}) + C_k(s_t, a_t) − y)² + λ·Σ_k (H_k(τ_i) − r(τ_i))².

        y = R + γ·(1 − terminated)·(min_k [H'_k(next history) + C_k(s', a')] − α·log π), where H' is
        the slow H, and C_k(s', a') comes from the same pass as C_k(s, a), without a gradient.

        Returns:
            The loss, and beside it the statistics of the C_k, H before the steps, and metrics.
        """
        histories, currents = parameters
        ahead = following.outlook
        here = action_values.inputs(shape, batch.observation, batch.action)
        there = action_values.inputs(shape, batch.next_observation, ahead.action)
        values, next_values, seen = zip(
            *(each.trained_on_both(here, there, self.statistics_gradient) for each in currents),
            strict=True,
        )
        next_lowest = _lowest(following.history, _rows(shape, next_values, ahead.action))
        next_value = ahead.expected(next_lowest + following.bonus)
        target = bootstrapped(batch.reward, batch, self.gamma, next_value)
        encodings = [history.encode(batch) for history in histories]
        before = _stacked([encoding.before for encoding in encodings])
        value = before + _rows(shape, values, batch.action)
        error = optax.huber_loss if self.smooth_l1 else jnp.square
        td_loss = jnp.sum(jnp.mean(error(value - target), axis=1))
        more = [
            history.auxiliary_loss(encoding, batch)[0]
            for history, encoding in zip(histories, encodings, strict=True)
        ]
        # One H of all critics counts as often as it is used: λ then weighs it as without sharing.
        auxiliary = len(currents) * jnp.mean(jnp.stack(more)) if more else jnp.zeros(())
        metrics = {
            "td_loss": td_loss,
            "auxiliary_loss": auxiliary,
            "value_mean": jnp.mean(value),
            "value_largest": jnp.max(jnp.abs(value)),
            "target_mean": jnp.mean(target),
        }
        return td_loss + auxiliary, (seen, before, metrics)

    def _update_actor(
        self, state: CrossQState, before: jax.Array, batch: IntervalBatch, noise: jax.Array
    ) -> CrossQState:
        """One gradient step of the actor, normalised by its own batch, and of the temperature."""

        def loss(trunk: NormalizedMLP) -> tuple[jax.Array, tuple[jax.Array, NetworkStatistics]]:
            """Mean of α·log π − min_k [H_k + C_k(s, a)], a ~ π, by the C's running statistics."""
            outputs, seen = trunk.trained(batch.observation)
            now = state.actor.head.outlook(outputs, batch.observation, noise)
            step = action_values.inputs(shape, batch.observation, now.action)
            values = [c(step, s) for c, s in zip(state.currents, state.statistics, strict=True)]
            lowest = _lowest(before, _rows(shape, values, now.action))
            cost = now.expected(jnp.exp(state.log_alpha) * now.log_prob - lowest)
            return jnp.mean(cost), (now.expected(now.log_prob), seen)

        shape, trunk = state.actor.shape, state.actor.trunk
        gradients, (log_prob, seen) = jax.grad(loss, has_aux=True)(trunk)
        trunk, actor_optimizer = descend(self._optimizer, gradients, state.actor_optimizer, trunk)
        statistics = moved(state.actor.statistics, seen, self.statistics_rate)
        state = state._replace(
            actor=state.actor.replaced(trunk, statistics), actor_optimizer=actor_optimizer
        )
        return self._adapt_temperature(state, log_prob, batch.observation)


class _Following(NamedTuple):
    """What is known of the steps that follow those of a batch."""

    outlook: Outlook  # what the policy may do
    history: jax.Array  # (1 or K, B), what the slow H says
    bonus: jax.Array  # (B,) or (J, B), −α·log π


def _stacked(values: list[jax.Array]) -> jax.Array:
    """Values of H as rows, to be added to those of the C_k: (1 or K, B), or 0 if there is no H."""
    return jnp.stack(values) if values else jnp.zeros((1, 1))


def _rows(shape: ProblemShape, outputs: Any, action: jax.Array | None) -> jax.Array:
    """What the C_k say of actions, or of every one: (K, B) or (K, J, B)."""
    return jnp.stack([action_values.value(shape, each, action) for each in outputs])


def _lowest(history: jax.Array, currents: jax.Array) -> jax.Array:
    """min_k [H_k + C_k]: (B,) or (J, B)."""
    shared = history if currents.ndim == history.ndim else history[:, None]
    return jnp.min(shared + currents, axis=0)
