"""What lanes are, and what those have in common whose episodes are seeded."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from belated.envs.intervals import IntervalSpec
from belated.envs.rules import IntervalRules, RuleError, refuse
from belated.experience.spaces import Spaces
from belated.experience.step import Array, Floats, ProblemShape, Step


def episode_seed(*numbers: int) -> int:
    """A seed for an episode, from a run's seed and whatever tells the episode from others."""
    return int(np.random.SeedSequence(numbers).generate_state(1)[0])


class RepeatError(ValueError):
    """An open episode could not be played again as it was."""


class Lanes(Protocol):
    """Environments that are stepped together; lane i is the i-th."""

    shape: ProblemShape
    observation: Floats
    """What each environment shows now: (lanes, D)."""

    def start(self) -> None:
        """Start the first episodes, unless they were started already."""

    def give_up(self) -> None:
        """Leave the open episodes; `start` begins new ones."""

    def rebuild(self) -> None:
        """Make the environments anew and leave the open episodes.

        Raises:
            ValueError: if they cannot be made again.
        """

    def wait_at_most(self, seconds: float | None) -> None:
        """Raise an error if a step takes longer.

        Raises:
            ValueError: if it could not be stopped.
        """

    def step(self, actions: Floats) -> list[tuple[int, Step]]:
        """Take flat actions, (lanes, A), and return (lane, step) of each transition."""

    def state(self) -> dict[str, Array]:
        """Everything there is to save, as arrays by name."""

    def restore(self, state: dict[str, Array]) -> bool:
        """Take over what `state` returned; return whether the open episodes go on."""


class SeededLanes:
    """Lanes whose episodes are all seeded, from (run seed, lane, episode number).

    With the actions of the open episodes that makes a run resumable at any step, without
    serialising an environment.
    """

    def __init__(self, spaces: Spaces, lanes: int, seed: int) -> None:
        self.seed = seed
        self.shape = spaces.shape
        self.observation = np.zeros((lanes, self.shape.observation_size), np.float32)
        self._spaces = spaces
        self._episodes = [0] * lanes  # finished so far
        self._taken: list[list[Floats]] = [[] for _ in range(lanes)]  # in the open episodes
        self._rules = [rules_for(self.shape) for _ in range(lanes)]
        self._started = False

    def start(self) -> None:
        """Start the first episodes, unless they were started already."""
        if not self._started:
            self._start_episodes(np.ones(len(self._episodes), bool))
            self._started = True

    def give_up(self) -> None:
        """Leave the open episodes; `start` begins new ones."""
        self._episodes = [count + 1 for count in self._episodes]
        self._started = False

    def _seed(self, lane: int) -> int:
        """The seed of a lane's open episode."""
        return episode_seed(self.seed, lane, self._episodes[lane])

    @abstractmethod
    def _start_episodes(self, fresh: npt.NDArray[np.bool_]) -> None:
        """Reset some lanes, each with its seed, and `_show` what they observe."""

    @abstractmethod
    def _step(self, actions: Floats) -> list[tuple[int, Step]]:
        """Step every lane; those whose episode ended start the next one."""

    def _show(self, lane: int, observation: Any) -> None:
        """Take over what a lane shows at the start of an episode."""
        self._rules[lane].episode = self._episodes[lane]
        refuse(self._rules[lane].reset(observation))
        self.observation[lane] = observation
        self._taken[lane] = []

    def step(self, actions: Floats) -> list[tuple[int, Step]]:
        """Take flat actions, (lanes, A), and return (lane, step) of each transition.

        After an error the lanes are as they were before, although the environments are not.
        """
        observation, episodes = self.observation.copy(), self._episodes.copy()
        taken = [(own, len(own)) for own in self._taken]
        try:
            return self._step(actions)
        except BaseException as error:
            self.observation, self._episodes = observation, episodes
            self._taken = [own[:count] for own, count in taken]
            self._explain(error)
            raise

    def _explain(self, error: BaseException) -> None:
        """Say how to see an error again."""
        for lane, (count, own) in enumerate(zip(self._episodes, self._taken, strict=True)):
            error.add_note(
                f"Environment {lane} was in episode {count}, after {len(own)} steps: reset(seed="
                f"{self._seed(lane)}) and the same actions lead there, if it repeats itself."
            )

    def state(self) -> dict[str, Array]:
        """The seeds and actions of the open episodes, and where they led."""
        if not self._started:
            return closed(self._episodes)
        nothing = np.zeros((0, self.shape.action_size), np.float32)
        taken = {
            f"lanes.taken.{lane}": np.stack(actions) if actions else nothing
            for lane, actions in enumerate(self._taken)
        }
        episodes = np.array(self._episodes)
        return {"lanes.episodes": episodes, "lanes.observation": self.observation} | taken

    def restore(self, state: dict[str, Array]) -> bool:
        """Bring the environments to where they were by playing the open episodes again.

        Raises:
            RepeatError: if that leads somewhere else: then the environment is not deterministic.
        """
        if "lanes.episodes" not in state:
            return True  # nothing was open
        lanes = len(self._episodes)
        if state["lanes.episodes"].shape != (lanes,) or state["lanes.episodes"].dtype.kind != "i":
            raise RepeatError("The open episodes are those of other environments.")
        self._episodes = state["lanes.episodes"].tolist()
        if "lanes.observation" not in state:  # none was open, or they are not seeded
            self.give_up()
            return False
        nothing = np.zeros((0, self.shape.action_size), np.float32)
        taken = [state.get(f"lanes.taken.{lane}", nothing) for lane in range(lanes)]
        if any(own.ndim != 2 or own.shape[1] != self.shape.action_size for own in taken):
            raise RepeatError("The actions of the open episodes are those of other environments.")
        self._started = True
        try:
            self._play(taken)
        except RuleError as error:
            raise RepeatError(f"{_ANOTHER} {error}") from error
        if not np.array_equal(self.observation, state["lanes.observation"]):
            raise RepeatError(_ANOTHER)
        return True

    @abstractmethod
    def _play(self, actions: list[Array]) -> None:
        """Start the open episodes again and take their actions, (n, A) for each lane."""

    def rebuild(self) -> None:
        """Make the environments anew and leave the open episodes.

        Raises:
            ValueError: if they cannot be made again.
        """
        raise ValueError('on_env_error="rebuild" is for single environments.')

    def wait_at_most(self, seconds: float | None) -> None:
        """Raise an error if a step takes longer.

        Raises:
            ValueError: if it could not be stopped.
        """
        refuse_time_limit(seconds)


_ANOTHER = (
    "Playing the open episode again led to another observation: the environment does not repeat "
    "itself for the same seed and actions, or it is another one. belated.check_delayed_env says "
    "more."
)


def closed(episodes: list[int]) -> dict[str, Array]:
    """What there is to save when no episode is open: restoring leaves one more behind."""
    return {"lanes.episodes": np.array(episodes) - 1} if any(episodes) else {}


def refuse_time_limit(seconds: float | None) -> None:
    """Refuse a limit for environments that could not be stopped.

    Raises:
        ValueError: if there is one.
    """
    if seconds is not None:
        raise ValueError(
            "step_timeout needs a gymnasium.vector.AsyncVectorEnv: what hangs in this process "
            "cannot be stopped from it."
        )


def rules_for(shape: ProblemShape) -> IntervalRules:
    """What the steps of a lane are held to."""
    spec = IntervalSpec(shape.max_length, shape.overlap, shape.phase, shape.masked)
    return IntervalRules(spec, shape.observation_size, shape.choices)
