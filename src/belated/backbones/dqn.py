"""Deep Q-learning with double targets (van Hasselt et al., 2016) for critics that are H + C.

H does not depend on the action, so the greedy policy looks at C alone and needs no history.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from belated.backbones.base import require_part
from belated.backbones.temporal_difference import (
    Critics,
    TemporalDifference,
    bootstrapped,
    critic_loss,
    lowest_next_value,
    move_towards,
)
from belated.critics import GreedyConfig
from belated.experience.base import Metrics
from belated.experience.batch import IntervalBatch
from belated.experience.choices import joint_codes
from belated.experience.step import ProblemShape
from belated.networks import categorical
from belated.networks.descent import descend
from belated.networks.plain import PlainPolicy
from belated.parts import register
from belated.ranges import checked, flag, fraction, positive_int

_NEEDS = "acts on what is best whatever the history, and needs a critic that knows (HC, Markov)"


class GreedyPolicy(eqx.Module):
    """Takes the action that the critics' C, in the mean, say is best."""

    critics: Critics
    updates: jax.Array  # so far, for the schedule of exploration
    shape: ProblemShape = eqx.field(static=True)

    def scores(self, observation: jax.Array) -> jax.Array:
        """What the joint actions are worth, but for what they have in common: (B, J)."""
        said = [critic.preferences(observation) for critic in self.critics]
        scores = jnp.mean(jnp.stack(said), axis=0).T
        allowed = self.shape.allowed(observation)
        if allowed is None:
            return scores
        together = allowed @ jnp.asarray(joint_codes(self.shape.choices)).T
        return jnp.where(together > len(self.shape.choices) - 0.5, scores, categorical.NEVER)

    def mode(self, observation: jax.Array) -> jax.Array:
        """The best action: (B, A)."""
        best = jnp.argmax(self.scores(observation), axis=-1)
        return jnp.asarray(joint_codes(self.shape.choices))[best]

    def plain(self) -> PlainPolicy | None:
        """The best actions, without JAX, if one network tells them."""
        layers = self.critics[0].preference_layers()
        if len(self.critics) > 1 or layers is None:
            return None
        return PlainPolicy.of(layers, "relu", "choose").choosing(self.shape, joint=True)


class DQNState(NamedTuple):
    """Everything that an update changes."""

    actor: GreedyPolicy
    targets: Critics
    optimizer: Any
    credit: Any
    key: jax.Array


@register
@dataclass(frozen=True)
class DQN(TemporalDifference):
    """Hyperparameters of DQN beside those of `TemporalDifference`; for discrete actions only.

    Each component of an action is drawn at random with the probability ε, which falls in a line
    with the updates.

    Attributes:
        epsilon_start: ε before the first update.
        epsilon_end: ε in the end.
        epsilon_updates: how many updates that takes.
        double: whether the online critics choose the action whose value the targets tell.
        smooth_l1: whether large TD errors count linearly, not squared.
    """

    num_critics: int = 1
    epsilon_start: float = 1.0
    epsilon_end: float = 0.05
    epsilon_updates: int = 10_000
    double: bool = True
    smooth_l1: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        require_part(
            self,
            self.critic,
            GreedyConfig,
            _NEEDS,
        )
        if not self.critic.has_preferences:  # type: ignore[attr-defined]  # (it is a GreedyConfig)
            raise ValueError(f"DQN {_NEEDS}, not {self.critic!r}.")
        checked(
            self,
            epsilon_start=fraction,
            epsilon_end=fraction,
            epsilon_updates=positive_int,
            double=flag,
            smooth_l1=flag,
        )

    def init(self, seed: int, shape: ProblemShape) -> DQNState:
        """Make a fresh state.

        Raises:
            ValueError: if actions are not discrete.
        """
        if not shape.choices:
            raise ValueError(
                "DQN compares all actions with each other, so they must be discrete. For a Box "
                "there are `sac`, `crossq` and `td3`, with the same variants."
            )
        rng = np.random.default_rng(seed)
        critics = self._critics(rng, shape)
        key = jax.random.key(rng.integers(2**32, dtype=np.uint32))
        return DQNState(
            actor=GreedyPolicy(critics, jnp.zeros((), jnp.int32), shape),
            targets=jax.tree.map(jnp.copy, critics),
            optimizer=self._optimizer.init(critics),
            credit=self.credit.init(rng, shape),
            key=key,
        )

    def tellers(self, state: DQNState) -> tuple[Any, ...]:
        """The parts of a state that assign credit, if the critics do."""
        return state.actor.critics

    def act(self, actor: GreedyPolicy, observation: jax.Array, noise: jax.Array) -> jax.Array:
        """Explore: the best action, or a random one, given standard normal noise (B, A)."""
        choices, allowed = actor.shape.choices, actor.shape.allowed(observation)
        epsilon = self.epsilon(actor.updates)
        anything = categorical.log_probabilities(jnp.zeros_like(noise), choices, allowed)
        mixed = (1 - epsilon) * actor.mode(observation) + epsilon * jnp.exp(anything)
        return categorical.drawn(jnp.log(mixed), noise, choices)

    def epsilon(self, updates: jax.Array) -> jax.Array:
        """ε after some updates."""
        done = jnp.minimum(updates / self.epsilon_updates, 1.0)
        return self.epsilon_start + done * (self.epsilon_end - self.epsilon_start)

    def update(self, state: DQNState, data: IntervalBatch) -> tuple[DQNState, Metrics]:
        """One gradient step of the critics."""
        key, credit_key = jax.random.split(state.key)
        learned, data, credit_metrics = self._credited(state, data, credit_key)
        actor = state.actor
        chooser = actor if self.double else GreedyPolicy(state.targets, actor.updates, actor.shape)
        action = chooser.mode(data.next_observation)
        next_value = lowest_next_value(state.targets, data, action)
        target = bootstrapped(data.reward, data, self.gamma, next_value)
        (_, (_, metrics)), gradients = jax.value_and_grad(critic_loss, has_aux=True)(
            actor.critics, data, target, self.smooth_l1
        )
        critics, optimizer = descend(self._optimizer, gradients, state.optimizer, actor.critics)
        state = DQNState(
            actor=GreedyPolicy(critics, actor.updates + 1, actor.shape),
            targets=move_towards(state.targets, critics, self.tau),
            optimizer=optimizer,
            credit=learned,
            key=key,
        )
        return state, metrics | credit_metrics | {"epsilon": self.epsilon(actor.updates)}
