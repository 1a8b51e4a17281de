"""What a backbone is: the part that acts and learns, and owns all other parts of a method.

A backbone is a frozen dataclass of hyperparameters and parts; what it learns is a state that it
makes, a NamedTuple whose leaves are arrays. `actor` is the state's first field, all that acting
looks at, and `key` is the key of its random numbers. Whatever no gradient trains (targets, running
statistics, temperatures) is a field of its own. All functions are pure.
"""

from __future__ import annotations

from typing import Any, ClassVar, Protocol, runtime_checkable

import jax
import jax.numpy as jnp

from belated.experience.base import Metrics, Training
from belated.experience.batch import Needs
from belated.experience.step import ProblemShape
from belated.networks.plain import PlainPolicy


@runtime_checkable
class Backbone(Protocol):
    """A way to act and to learn; inherit from it to get its defaults."""

    learns_from: ClassVar[type[Training]]
    """What experience it learns from: `ReplayTraining` or `RolloutTraining`."""

    @property
    def usual_training(self) -> Training:
        """The settings of training for whoever gives none."""
        return self.learns_from()

    @property
    def needs(self) -> Needs:
        """The optional fields of the experience that its parts look at."""
        return frozenset()

    @property
    def tells_credit(self) -> bool:
        """Whether it can say which steps earned the reward."""
        return False

    def init(self, seed: int, shape: ProblemShape) -> Any:
        """Make a fresh state."""

    def act(self, actor: Any, observation: jax.Array, noise: jax.Array) -> jax.Array:
        """Explore: actions for observations (B, D), given standard normal noise (B, A)."""

    def mode(self, actor: Any, observation: jax.Array) -> jax.Array:
        """The deterministic actions, in [−1, 1] or one-hot, for observations (B, D)."""
        action: jax.Array = actor.mode(observation)
        return action

    def plain(self, actor: Any) -> PlainPolicy | None:
        """The deterministic actions without JAX, if the actor has such a form."""
        as_usual = type(self).mode is Backbone.mode and hasattr(actor, "plain")
        policy: PlainPolicy | None = actor.plain() if as_usual else None
        return policy

    def update(self, state: Any, data: Any) -> tuple[Any, Metrics]:
        """Learn from an `IntervalBatch` or a `Rollout`; return the new state and metrics."""

    def credit_of(self, state: Any, data: Any) -> jax.Array:
        """What each step earned, (B,) or (T, L), NaN where that was never revealed."""
        raise TypeError(f"{type(self).__name__} does not assign credit to steps.")


def require_part(owner: Any, part: Any, kind: type, why: str) -> None:
    """Refuse a part that its owner could do nothing with.

    Raises:
        ValueError: if it is not of the kind.
    """
    if isinstance(part, type):
        raise ValueError(
            f"{type(owner).__name__} {why}: write {part.__name__}(...), not the class."
        )
    if not isinstance(part, kind):
        raise ValueError(f"{type(owner).__name__} {why}, not {part!r}.")


def discount(gamma: float, duration: jax.Array) -> jax.Array:
    """γ^Δ for steps of some duration Δ, and just γ where that is 1."""
    return jnp.where(duration == 1, gamma, gamma**duration)
