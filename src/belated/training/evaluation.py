"""Playing whole episodes: how good is a policy, and what happened in an episode?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from belated.envs.intervals import AnyEnv
from belated.replay import Step
from belated.training.lanes import ActionScale, Floats, episode_seed, make_step

Policy = Callable[[Floats], Floats]
"""From observations (B, D) to actions (B, A) in [−1, 1]."""

_EVALUATION_STREAM = 0xE7A1
"""Sets the seeds of evaluation episodes apart from those of training."""


@dataclass(frozen=True)
class Episode:
    """Everything that happened in an episode; actions are in [−1, 1]."""

    steps: tuple[Step, ...]

    @property
    def revealed_return(self) -> float:
        """The sum of the rewards that were revealed."""
        return float(sum(step.reward for step in self.steps))

    @property
    def dense_return(self) -> float:
        """The sum of the hidden per-step rewards, NaN where there are none."""
        return float(sum(step.dense_reward for step in self.steps))


@dataclass(frozen=True)
class Evaluation:
    """The outcome of some episodes."""

    returns: npt.NDArray[np.float64]
    """Dense returns, or revealed ones where the environment has no per-step reward."""
    revealed_returns: npt.NDArray[np.float64]
    lengths: npt.NDArray[np.int64]

    def summary(self) -> dict[str, float]:
        """The means that are logged."""
        return {
            "return_mean": float(self.returns.mean()),
            "return_std": float(self.returns.std()),
            "revealed_return_mean": float(self.revealed_returns.mean()),
            "length_mean": float(self.lengths.mean()),
        }


def play_episode(env: AnyEnv, policy: Policy, scale: ActionScale, seed: int) -> Episode:
    """Play one episode with a policy."""
    observation, _ = env.reset(seed=seed)
    steps: list[Step] = []
    ended = False
    while not ended:
        action = policy(np.asarray(observation, np.float32)[None])[0]
        following, reward, terminated, truncated, info = env.step(scale.to_env(action))
        ended = terminated or truncated
        steps.append(
            make_step(
                observation, action, float(reward), following, info,
                terminated=terminated, truncated=truncated,
            )
        )  # fmt: skip
        observation = following
    return Episode(tuple(steps))


def evaluate(
    env: AnyEnv, policy: Policy, scale: ActionScale, *, episodes: int, seed: int
) -> Evaluation:
    """Play some episodes; the same seed gives the same episodes every time."""
    if episodes < 1:
        raise ValueError(f"An evaluation needs at least one episode, got {episodes}.")
    played = [
        play_episode(env, policy, scale, episode_seed(seed, _EVALUATION_STREAM, number))
        for number in range(episodes)
    ]
    revealed = np.array([episode.revealed_return for episode in played])
    dense = np.array([episode.dense_return for episode in played])
    return Evaluation(
        returns=revealed if np.isnan(dense).any() else dense,
        revealed_returns=revealed,
        lengths=np.array([len(episode.steps) for episode in played]),
    )
