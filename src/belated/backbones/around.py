"""What a backbone around another backbone is: the same state, with more beside the actor."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import jax

from belated.backbones.base import Backbone
from belated.experience.base import Training
from belated.experience.batch import Needs
from belated.experience.off_policy import ReplayTraining


class AroundState(NamedTuple):
    """The state of the backbone inside, its actor and key apart."""

    actor: Any  # has the one of the backbone inside as its `actor`
    rest: Any  # that backbone's state without them
    key: jax.Array

    @classmethod
    def of(cls, actor: Any, inner: Any) -> AroundState:
        """A state around that of the backbone inside."""
        return cls(actor, inner._replace(actor=None, key=None), inner.key)

    @property
    def inner(self) -> Any:
        """The state of the backbone inside."""
        return self.rest._replace(actor=self.actor.actor, key=self.key)


@dataclass(frozen=True)
class Around(Backbone):
    """A backbone around one that learns from a replay, which does the learning.

    Attributes:
        backbone: what learns.
    """

    learns_from: ClassVar[type[Training]] = ReplayTraining

    backbone: Backbone

    @property
    def needs(self) -> Needs:
        """What the backbone looks at."""
        return self.backbone.needs

    @property
    def tells_credit(self) -> bool:
        """Whether the backbone does."""
        return self.backbone.tells_credit
