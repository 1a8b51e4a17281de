"""Learning from a replay: every step brings updates on batches of earlier ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from belated.experience.base import Learns, LearnsFrom, Log, Metrics
from belated.experience.batch import IntervalBatch, join
from belated.experience.best_episodes import BestEpisodes
from belated.experience.replay import IntervalReplay, replay_of
from belated.experience.step import Array, ProblemShape, Step
from belated.parts import register
from belated.ranges import checked, flag, non_negative_int, one_of, positive_int


@register
@dataclass(frozen=True)
class ReplayTraining:
    """Settings for backbones that learn from a replay; the defaults are the paper's.

    Attributes:
        batch_size: how many steps an update looks at.
        replay_size: how many steps are kept.
        learning_starts: how many uniformly random steps come first.
        best_episodes: how many episodes with the highest returns are kept beside the replay; if
            any, half of each batch comes from them.
        updates_per_step: how many updates each environment step brings.
        updates_per_dispatch: how many updates are run in one go. More than one saves overhead;
            the policy then acts for as many steps before it is updated.
        precision: of the factors of hidden layers' products in an update, "float32" or "bfloat16".
            The latter is faster on CPUs with instructions for it; sums, parameters, and what enters
            or leaves a network, stay float32.
        normalize_observations: whether observations are shifted and scaled by the running mean and
            standard deviation of those that were sampled; masks of actions and the phase are not.
        policy_average: over about how many updates the parameters of the deterministic policy are
            averaged, which is evaluated, predicts and is exported; 0 for the last ones. Samples of
            the policy, and learning, are the same.
    """

    batch_size: int = 128
    replay_size: int = 1_000_000
    learning_starts: int = 5_000
    best_episodes: int = 0
    updates_per_step: int = 1
    updates_per_dispatch: int = 1
    precision: str = "float32"
    normalize_observations: bool = False
    policy_average: int = 0

    def __post_init__(self) -> None:
        checked(
            self,
            batch_size=positive_int,
            replay_size=positive_int,
            learning_starts=non_negative_int,
            best_episodes=non_negative_int,
            updates_per_step=positive_int,
            updates_per_dispatch=positive_int,
            precision=one_of("float32", "bfloat16"),
            normalize_observations=flag,
            policy_average=non_negative_int,
        )
        if self.replay_size < self.batch_size:
            raise ValueError(
                f"replay_size must be at least batch_size ({self.batch_size}), got "
                f"{self.replay_size}."
            )

    def experience(
        self, backbone: LearnsFrom, shape: ProblemShape, lanes: int, rng: np.random.Generator
    ) -> OffPolicy:
        """Make an empty replay for a backbone; ``rng`` draws from it."""
        replay = IntervalReplay(self.replay_size, shape, lanes, backbone.needs)
        best = BestEpisodes(self.best_episodes, shape, lanes, backbone.needs)
        return OffPolicy(self, replay, best, rng)

    def in_order(
        self, backbone: LearnsFrom, shape: ProblemShape, steps: Sequence[Step]
    ) -> Iterator[IntervalBatch]:
        """Yield an episode as batches, in order of time."""
        return replay_of(steps, shape, backbone.needs).in_order(batch_size=256)


class OffPolicy:
    """A replay, the best episodes beside it, and how often they are learned from."""

    def __init__(
        self,
        settings: ReplayTraining,
        replay: IntervalReplay,
        best: BestEpisodes,
        rng: np.random.Generator,
    ) -> None:
        self.settings = settings
        self.replay = replay
        self.best = best
        self._rng = rng
        self._updates_due = 0

    def add(self, step: Step, lane: int) -> None:
        """Record a step."""
        self.replay.add(step, lane)
        self.best.add(step, lane)

    def learn(self, learner: Learns, steps: int) -> Metrics:
        """Run the updates that some more steps bring; return the last one's metrics, if any."""
        at_once = self.settings.updates_per_dispatch
        self._updates_due += steps * self.settings.updates_per_step
        metrics: Metrics = {}
        while self._updates_due >= at_once and len(self.replay) >= self.settings.batch_size:
            metrics = learner.update_many([self.sample() for _ in range(at_once)])
            self._updates_due -= at_once
        return metrics

    def sample(self) -> IntervalBatch:
        """Draw a batch; if the best episodes are kept, half of it comes from those."""
        size = self.settings.batch_size
        if len(self.best) == 0:
            return self.replay.sample(self._rng, size)
        rest = self.replay.sample(self._rng, size - size // 2)
        return join([rest, self.best.sample(self._rng, size // 2)])

    def start_episode(self, lane: int) -> None:
        """Start an episode although the last one did not end."""
        self.replay.start_episode(lane)
        self.best.start_episode(lane)

    @property
    def logs(self) -> Sequence[Log]:
        """The rings of the replay."""
        return self.replay.rings

    def state(self) -> dict[str, Array]:
        """Everything that is to be saved beside the logs, as arrays by name."""
        due = np.array(self._updates_due)
        return {"updates_due": due} | self.replay.state() | self.best.state()

    def restore(self, state: dict[str, Array]) -> None:
        """Take over what `state` returned."""
        self._updates_due = int(state["updates_due"])
        self.replay.restore(state)
        self.best.restore(state)
