"""What an environment's problem looks like to a learner, and what makes it unfit for one."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import VectorEnv

from belated.critics import ProblemShape
from belated.envs.interval_phase import IntervalPhase
from belated.envs.intervals import AnyEnv, find_interval_spec
from belated.envs.layers import has_time_limit_outside_intervals, layers
from belated.training.lanes import ActionScale


def problem_of(env: Any) -> tuple[ProblemShape, ActionScale]:
    """Return the sizes of an environment's problem and its action bounds.

    Raises:
        ValueError: if an agent cannot learn in it; the message says what to do.
    """
    if isinstance(env, VectorEnv):
        observations, actions = env.single_observation_space, env.single_action_space
        try:
            spec = env.get_attr("interval_spec")[0]  # type: ignore[attr-defined]
        except AttributeError:
            spec = None
    elif isinstance(env, gym.Env):
        observations, actions = env.observation_space, env.action_space
        spec = find_interval_spec(env)
        _check_layers(env)
    else:
        raise TypeError(f"Expected a gymnasium environment, got {env!r}.")
    if spec is None:
        raise ValueError(
            f"{env} does not say when its rewards are revealed. Use belated.delay(env, ...) to "
            "delay an environment with a reward at every step, belated.mark(env, ...) for one "
            "whose reward is late already."
        )
    if not isinstance(actions, gym.spaces.Box) or not actions.is_bounded():
        raise ValueError(f"Actions must be a Box with finite bounds, not {actions}.")
    for what, space in (("Actions", actions), ("Observations", observations)):
        if not isinstance(space, gym.spaces.Box) or len(space.shape) != 1:
            raise ValueError(f"{what} must be a flat Box, not {space}.")
    scale = ActionScale(actions.low.astype(np.float32), actions.high.astype(np.float32))
    sizes = len(observations.low), len(actions.low)  # type: ignore[attr-defined]
    return ProblemShape(*sizes, spec.max_length, spec.overlap), scale


def _check_layers(env: AnyEnv) -> None:
    """Refuse stacks of wrappers whose order would spoil the intervals or the phase."""
    if find_interval_spec(env) is None:
        return
    if has_time_limit_outside_intervals(env):
        raise ValueError(
            f"A TimeLimit is outside the intervals of {env}: the last reward of its episodes "
            "would be lost. Wrap belated's wrappers outside TimeLimit."
        )
    for layer in layers(env):
        if isinstance(layer, IntervalPhase):
            return
        if isinstance(layer, gym.ObservationWrapper):
            raise ValueError(
                f"{type(layer).__name__} changes observations outside IntervalPhase, but the phase "
                "must come last and unchanged. Wrap belated's wrappers outside it."
            )
    raise ValueError(f"{env} lacks the phase: wrap it in belated.IntervalPhase.")
