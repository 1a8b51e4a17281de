"""What a store of experience must be able to do, and the settings that say how one is used."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

import numpy as np

from belated.experience.batch import Needs
from belated.experience.step import Array, ProblemShape, Step

Metrics = dict[str, Any]
"""Numbers by name; on the device until somebody looks at them."""


class Learns(Protocol):
    """Learns from data; `belated.training.learner.Learner` does."""

    def update(self, data: Any) -> Metrics:
        """Run one update."""

    def update_many(self, data: list[Any]) -> Metrics:
        """Run several updates in one go."""


class Log(Protocol):
    """Rows that are saved by appending: those before ``settled`` change no more."""

    settled: int
    """The number of the first row that may still change; numbers are never reset."""

    @property
    def oldest(self) -> int:
        """The number of the oldest row that is still needed."""

    @property
    def record_type(self) -> np.dtype[Any]:
        """What a row is, in a file."""

    def records(self, first: int, end: int) -> Array:
        """Copy the rows with these numbers."""

    def put(self, first: int, records: Array) -> None:
        """Write rows to where they were."""


class Experience(Protocol):
    """Steps of some environments that a backbone learns from. A lane is one environment."""

    @property
    def logs(self) -> Sequence[Log]:
        """What grows with experience; all else is in `state`."""

    def add(self, step: Step, lane: int) -> None:
        """Record a step."""

    def learn(self, learner: Learns, steps: int) -> Metrics:
        """Run the updates that some more steps bring; return the last one's metrics, if any."""

    def start_episode(self, lane: int) -> None:
        """Start an episode although the last one did not end."""

    def state(self) -> dict[str, Array]:
        """Everything that is to be saved beside the logs, as arrays by name."""

    def restore(self, state: dict[str, Array]) -> None:
        """Take over what `state` returned; the logs were filled before."""


class LearnsFrom(Protocol):
    """What experience needs to know of a backbone."""

    @property
    def needs(self) -> Needs:
        """The optional fields of a batch that its parts look at."""


class Training(Protocol):
    """Settings of training: how steps are kept, and how often they are learned from."""

    @property
    def learning_starts(self) -> int:
        """How many uniformly random steps come first."""

    @property
    def precision(self) -> str:
        """The precision of the factors of hidden layers' products in an update."""

    @property
    def normalize_observations(self) -> bool:
        """Whether the backbone sees observations that were normalised for it."""

    @property
    def policy_average(self) -> int:
        """Over how many updates the policy in use is averaged; 0 for the last one."""

    def experience(
        self, backbone: Any, shape: ProblemShape, lanes: int, rng: np.random.Generator
    ) -> Experience:
        """Make an empty store for a backbone; ``rng`` draws from it."""

    def in_order(self, backbone: Any, shape: ProblemShape, steps: Sequence[Step]) -> Iterator[Any]:
        """Yield an episode in the form that a backbone looks at, in order of time."""
