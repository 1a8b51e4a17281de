"""What backbones share that learn values by temporal differences from a replay."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
import optax

from belated.backbones.base import Backbone, discount, require_part
from belated.credit import Advance, Credit, Revealed
from belated.critics import HC, Critic, CriticConfig, Markov
from belated.critics.windows import is_interval_end
from belated.experience.base import Metrics
from belated.experience.batch import IntervalBatch, Needs
from belated.experience.off_policy import ReplayTraining
from belated.experience.step import ProblemShape
from belated.networks.descent import Optimizer, adam
from belated.ranges import checked, fraction, layers, non_negative, positive_int

Tree = TypeVar("Tree")
Critics = tuple[Critic, ...]


@dataclass(frozen=True)
class TemporalDifference(Backbone):
    """Hyperparameters of every backbone with critics and targets; the defaults are the paper's.

    Attributes:
        critic: what values depend on.
        credit: what reward the TD target sees.
        hidden: the hidden layers of the actor and of state-action networks.
        gamma: the discount of a step.
        learning_rate: Adam's, for the actor and the critics.
        tau: how far the targets move in an update of theirs.
        num_critics: how many critics are trained; the target uses the lowest.
    """

    learns_from: ClassVar[type[ReplayTraining]] = ReplayTraining

    critic: CriticConfig = field(default_factory=Markov)
    credit: Credit = field(default_factory=Revealed)
    hidden: tuple[int, ...] = (256, 256)
    gamma: float = 0.99
    learning_rate: float = 3e-4
    tau: float = 0.005
    num_critics: int = 2

    def __post_init__(self) -> None:
        require_part(self, self.critic, CriticConfig, "needs a recipe for critics")
        require_part(self, self.credit, Credit, "needs a credit rule for a replay")
        checked(
            self,
            hidden=layers,
            gamma=fraction,
            learning_rate=non_negative,
            tau=fraction,
            num_critics=positive_int,
        )

    @property
    def needs(self) -> Needs:
        """What the critics and the credit rule look at."""
        return self.critic.needs | self.credit.needs

    @property
    def tells_credit(self) -> bool:
        """Whether the credit rule or the critics tell steps apart."""
        return self.credit.tells_credit or self.critic.tells_credit

    def credit_of(self, state: Any, data: IntervalBatch) -> jax.Array:
        """What the credit rule gives each step, what it adds to the critics' H, or both: (B,)."""
        credit = jnp.zeros(len(data.reward))
        if self.credit.tells_credit:
            credit += self.credit.reward(state.credit, data)
        if self.critic.tells_credit and (self._leaves_a_rest or not self.credit.tells_credit):
            credit += jnp.mean(jnp.stack([c.credit(data) for c in self.tellers(state)]), axis=0)
        return jnp.where(data.revealed > 0, credit, jnp.nan)

    def tellers(self, state: Any) -> tuple[Any, ...]:
        """The parts of a state that assign credit, if the critics do."""
        tellers: tuple[Any, ...] = state.critics
        return tellers

    @property
    def _optimizer(self) -> Optimizer:
        return adam(self.learning_rate)

    def _critics(self, rng: np.random.Generator, shape: ProblemShape) -> Critics:
        if isinstance(self.critic, HC) and self.critic.shared:
            return (self.critic.build_shared(rng, shape, self.hidden, self.num_critics),)
        return tuple(self.critic.build(rng, shape, self.hidden) for _ in range(self.num_critics))

    def _credited(
        self, state: Any, batch: IntervalBatch, key: jax.Array
    ) -> tuple[Any, IntervalBatch, Metrics]:
        """What the credit rule has learned from a batch, and the batch with its rewards.

        A rule that pays for steps at once may leave a rest of the interval's reward. If the critics
        remember the interval, that is revealed on its last step and is all that H has to explain.
        """
        learned, metrics = self.credit.update(state.credit, batch, key)
        reward = self.credit.reward(learned, batch)
        if self._leaves_a_rest:
            assert isinstance(self.credit, Advance)
            rest = jnp.where(batch.revealed > 0, self.credit.rest(learned, batch), 0.0)
            reward += jnp.where(is_interval_end(batch), rest, 0.0)
            batch = batch._replace(interval_reward=rest)
        batch = batch._replace(reward=reward)
        return learned, jax.lax.stop_gradient(batch), metrics

    @property
    def _leaves_a_rest(self) -> bool:
        return isinstance(self.credit, Advance) and "window" in self.critic.needs


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
        metrics; those of the critics' own are means over them.
    """
    encodings = tuple(critic.encode(batch) for critic in critics)
    values = values_of(critics, encodings, batch.observation, batch.action)
    error = optax.huber_loss if smooth_l1 else jnp.square
    td_loss = jnp.sum(jnp.mean(error(values - target), axis=1))
    more = [c.auxiliary_loss(e, batch) for c, e in zip(critics, encodings, strict=True)]
    auxiliary = sum((loss for loss, _ in more), jnp.zeros(()))
    own = {name: jnp.mean(jnp.stack([m[name] for _, m in more])) for name in more[0][1]}
    metrics = own | {
        "td_loss": td_loss,
        "auxiliary_loss": auxiliary,
        "value_mean": jnp.mean(values),
        "value_largest": jnp.max(jnp.abs(values)),
        "target_mean": jnp.mean(target),
    }
    return td_loss + auxiliary, (encodings, metrics)


def values_of(
    critics: Critics, encodings: tuple[Any, ...], observation: jax.Array, action: jax.Array | None
) -> jax.Array:
    """What all critics say of steps: (K, B), or (K, J, B) of every action if there is None."""
    said = [c.value(e, observation, action) for c, e in zip(critics, encodings, strict=True)]
    return _rows(said, action)


def lowest_next_value(
    targets: Critics, batch: IntervalBatch, action: jax.Array | None
) -> jax.Array:
    """The smallest of the target critics' values of the step that follows: (B,), or (J, B)."""
    said = [target.next_value(batch, action) for target in targets]
    return jnp.min(_rows(said, action), axis=0)


def _rows(said: list[jax.Array], action: jax.Array | None) -> jax.Array:
    """What critics say, one row for each Q-function; some critics are several."""
    single = 2 if action is None else 1
    return jnp.concatenate([each[None] if each.ndim == single else each for each in said])


def bootstrapped(
    reward: jax.Array, batch: IntervalBatch, gamma: float, next_value: jax.Array
) -> jax.Array:
    """Y = R_t + γ^Δ·(1 − terminated)·(value of what follows); truncation does not stop it.

    Δ is the step's duration.
    """
    decay = discount(gamma, batch.duration)
    target: jax.Array = reward + decay * (1 - batch.terminated) * next_value
    return target


def move_towards(slow: Tree, fast: Tree, rate: float) -> Tree:
    """Move every parameter of ``slow`` a little towards the one of ``fast``."""
    moved: Tree = jax.tree.map(lambda s, f: s + rate * (f - s), slow, fast)
    return moved
