"""Rollouts: what on-policy methods learn from, once, and then forget."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from belated.experience.step import ProblemShape, Step

RolloutArray = Any
"""A NumPy array on the host, a JAX array once it is inside a jitted function."""


class Rollout(NamedTuple):
    """Steps of several lanes in order of time; every interval in it is whole.

    T is the most steps that a lane can have, L the number of lanes. A lane starts with the first
    step of an interval, and after its last step there is padding, all zeros.
    """

    observation: RolloutArray  # (T, L, D)
    action: RolloutArray  # (T, L, A) as the policy drew it: not yet clipped to [−1, 1]
    reward: RolloutArray  # (T, L) R_t as experienced
    dense_reward: RolloutArray  # (T, L) the hidden per-step reward, NaN where there is none
    next_observation: RolloutArray  # (T, L, D)
    terminated: RolloutArray  # (T, L) 1.0 where nothing follows
    episode_end: RolloutArray  # (T, L) 1.0 where the next step belongs to another episode
    interval_end: RolloutArray  # (T, L) 1.0 at an interval's last step
    revealed: RolloutArray  # (T, L) 1.0 where the reward is the interval's
    duration: RolloutArray  # (T, L) how much time the step took
    mask: RolloutArray  # (T, L) 1.0 for steps, 0.0 for padding


def empty_rollout(steps: int, lanes: int, shape: ProblemShape) -> Rollout:
    """Make a rollout of padding alone, to be filled with `write_step`."""
    sizes = {
        "observation": (shape.observation_size,),
        "next_observation": (shape.observation_size,),
        "action": (shape.action_size,),
    }
    return Rollout(
        **{
            name: np.zeros((steps, lanes, *sizes.get(name, ())), np.float32)
            for name in Rollout._fields
        }
    )


def write_step(rollout: Rollout, time: int, lane: int, step: Step) -> None:
    """Put a step into its place."""
    row = Rollout(
        observation=step.observation,
        action=step.action,
        reward=step.reward,
        dense_reward=step.dense_reward,
        next_observation=step.next_observation,
        terminated=step.terminated,
        episode_end=step.episode_end,
        interval_end=step.interval_end,
        revealed=step.revealed,
        duration=step.duration,
        mask=1.0,
    )
    for array, value in zip(rollout, row, strict=True):
        array[time, lane] = value


def rollout_of(steps: Sequence[Step], shape: ProblemShape) -> Rollout:
    """Make a rollout of one lane that holds just these steps."""
    rollout = empty_rollout(len(steps), 1, shape)
    for time, step in enumerate(steps):
        write_step(rollout, time, 0, step)
    return rollout
