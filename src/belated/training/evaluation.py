"""Playing whole episodes: how good is a policy, and what happened in an episode?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from belated.envs.intervals import AnyEnv
from belated.experience.lanes import episode_seed
from belated.experience.spaces import Spaces
from belated.experience.step import Floats, ProblemShape, Step
from belated.methods import Method

Policy = Callable[[Floats], Floats]
"""From observations (B, D) to actions (B, A), in [−1, 1] or one-hot."""

_EVALUATION_STREAM = 0xE7A1
"""Sets the seeds of evaluation episodes apart from those of training."""


@dataclass(frozen=True)
class Episode:
    """Everything that happened in an episode; actions are in [−1, 1] or one-hot."""

    steps: tuple[Step, ...]

    @property
    def revealed_return(self) -> float:
        """The sum of the rewards that were revealed."""
        return float(sum(step.reward for step in self.steps))

    @property
    def dense_return(self) -> float:
        """The sum of the hidden per-step rewards, NaN where there are none."""
        return float(sum(step.dense_reward for step in self.steps))

    def discounted_return(self, gamma: float) -> float:
        """What was revealed, discounted by the time before it."""
        durations = np.array([0.0, *(step.duration for step in self.steps[:-1])])
        rewards = np.array([step.reward for step in self.steps])
        return float(rewards @ gamma ** np.cumsum(durations))


@dataclass(frozen=True)
class Evaluation:
    """The outcome of some episodes."""

    returns: npt.NDArray[np.float64]
    """Dense returns, or revealed ones where the environment has no per-step reward."""
    revealed_returns: npt.NDArray[np.float64]
    discounted_returns: npt.NDArray[np.float64]
    """Of the revealed rewards, with the method's γ."""
    lengths: npt.NDArray[np.int64]

    @property
    def episodes(self) -> int:
        """How many there were."""
        return len(self.returns)

    @property
    def return_mean(self) -> float:
        """The mean of the returns."""
        return float(self.returns.mean())

    @property
    def return_std(self) -> float:
        """Their standard deviation."""
        return float(self.returns.std())

    @property
    def revealed_return_mean(self) -> float:
        """The mean of what was revealed in an episode."""
        return float(self.revealed_returns.mean())

    @property
    def discounted_return_mean(self) -> float:
        """The mean of the same, discounted."""
        return float(self.discounted_returns.mean())

    @property
    def length_mean(self) -> float:
        """The mean number of steps of an episode."""
        return float(self.lengths.mean())

    def summary(self) -> dict[str, float]:
        """The means that are logged."""
        names = (
            "return_mean",
            "return_std",
            "revealed_return_mean",
            "discounted_return_mean",
            "length_mean",
        )
        return {name: getattr(self, name) for name in names}


def play_episode(env: AnyEnv, policy: Policy, spaces: Spaces, seed: int) -> Episode:
    """Play one episode with a policy."""
    observation, _ = env.reset(seed=seed)
    steps: list[Step] = []
    while not steps or not steps[-1].episode_end:
        action = policy(spaces.batch_of(observation))[0]
        steps.append(Step.of(observation, action, env.step(spaces.to_env(action))))
        observation = steps[-1].next_observation
    return Episode(tuple(steps))


def evaluate(
    env: AnyEnv, policy: Policy, spaces: Spaces, *, episodes: int, seed: int, gamma: float
) -> Evaluation:
    """Play some episodes; the same seed gives the same episodes every time.

    Args:
        env: where.
        policy: how.
        spaces: those of the environment.
        episodes: how many.
        seed: of the run.
        gamma: the discount of `Evaluation.discounted_returns`.
    """
    played = [
        play_episode(env, policy, spaces, episode_seed(seed, _EVALUATION_STREAM, number))
        for number in range(episodes)
    ]
    revealed = np.array([episode.revealed_return for episode in played])
    dense = np.array([episode.dense_return for episode in played])
    return Evaluation(
        returns=revealed if np.isnan(dense).any() else dense,
        revealed_returns=revealed,
        discounted_returns=np.array([episode.discounted_return(gamma) for episode in played]),
        lengths=np.array([len(episode.steps) for episode in played]),
    )


def credit_of(
    method: Method, state: Any, shape: ProblemShape, episode: Episode
) -> npt.NDArray[np.float64]:
    """What each step of an episode earned, as far as a method can say.

    Raises:
        ValueError: if it cannot.
    """
    if not method.backbone.tells_credit:
        raise ValueError(
            "This method does not assign credit to steps. Methods with a history function do "
            "(hc-singleton, hc-pairwise-K, hc-rnn), and those with a credit rule (ircr, rrd, "
            "rudder)."
        )
    parts = method.training.in_order(method.backbone, shape, episode.steps)
    credit = [np.ravel(method.trained.credit_of(state, part)) for part in parts]
    return np.concatenate(credit).astype(np.float64)
