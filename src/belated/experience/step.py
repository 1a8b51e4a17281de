"""One step of an environment, and the sizes of the problem it belongs to."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Floats = npt.NDArray[np.float32]
Outcome = tuple[Any, Any, bool, bool, dict[str, Any]]
"""What ``env.step`` returns: observation, reward, terminated, truncated, info."""


class Step(NamedTuple):
    """One step, as a learner records it."""

    observation: Array
    action: Array  # in [−1, 1], except for policies that are clipped on the way out; or one-hot
    reward: float
    next_observation: Array
    terminated: bool
    truncated: bool
    position: int  # t − t_i
    interval_end: bool
    revealed: bool
    dense_reward: float = float("nan")
    duration: float = 1.0  # how much time passed; γ is the discount of a unit of it

    @property
    def episode_end(self) -> bool:
        """Whether the next step belongs to another episode."""
        return self.terminated or self.truncated

    @classmethod
    def of(cls, observation: Array, action: Array, outcome: Outcome) -> Step:
        """Put together what was seen and done and what came of it."""
        following, reward, terminated, truncated, info = outcome
        interval = info["interval"]
        return cls(
            observation=observation,
            action=action,
            reward=float(reward),
            next_observation=following,
            terminated=bool(terminated),
            truncated=bool(truncated),
            position=int(interval["step"]),
            interval_end=bool(interval["end"]),
            revealed=bool(interval["revealed"]),
            dense_reward=float(info.get("dense_reward", np.nan)),
            duration=float(info.get("duration", 1.0)),
        )


class ProblemShape(NamedTuple):
    """The sizes that networks depend on, and where things are in an observation.

    An observation is the environment's own, then which actions are allowed, if that is told, then
    the phase.
    """

    observation_size: int  # phase included
    action_size: int
    max_length: int
    overlap: int
    phase: bool = True  # whether it is told: its place in an observation is there in any case
    choices: tuple[int, ...] = ()  # how many options each component of a discrete action has
    masked: bool = False  # whether observations say which options are allowed

    @property
    def state_size(self) -> int:
        """The size of an observation without the phase."""
        return self.observation_size - 1

    @property
    def step_size(self) -> int:
        """The size of an observation and an action side by side."""
        return self.observation_size + self.action_size

    @property
    def window_size(self) -> int:
        """The most steps that an interval's reward may depend on: c + n_max."""
        return self.overlap + self.max_length

    def state_of(self, observation: Any) -> Any:
        """Observations without the phase: (..., D) to (..., D − 1)."""
        return observation[..., : self.state_size]

    def allowed(self, observation: Any) -> Any:
        """Which options are allowed, (..., A) of 0 and 1, or None if all are, always."""
        if not self.masked:
            return None
        return observation[..., self.state_size - self.action_size : self.state_size]

    def split(self, steps: Any) -> tuple[Any, Any]:
        """Observations (..., D) and actions (..., A) out of steps (..., D + A)."""
        return steps[..., : self.observation_size], steps[..., self.observation_size :]

    @property
    def phase_place(self) -> int:
        """Where in an observation the phase is."""
        return self.state_size

    def phases(self, first: int, last: int) -> Floats:
        """The phases j/n_max of positions from ``first`` to before ``last``, as a column (·, 1).

        They are 0 if the phase is not told.
        """
        positions = np.arange(first, last)[:, None]
        return (positions * self.phase / self.max_length).astype(np.float32)
