"""Tell the agent where in the interval it is."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, SupportsFloat

import gymnasium as gym
import numpy as np
import numpy.typing as npt
from gymnasium.utils import RecordConstructorArgs

from belated.envs.actions import flat_mask, options_of
from belated.envs.flat_observation import FlatObservation
from belated.envs.intervals import AnyEnv, find_interval_spec, is_number


class IntervalPhase(gym.Wrapper[Any, Any, Any, Any], RecordConstructorArgs):
    """Flattens observations and appends the phase (t − t_i)/n_max, as float32.

    If it is told to, it also appends which actions are allowed, before the phase: policies then
    take no others.

    Boxes of any shape, ``Discrete``, ``MultiDiscrete``, ``MultiBinary``, and ``Dict`` and ``Tuple``
    of these are flattened as Gymnasium does it; discrete ones become one-hot.

    Policies of the class Π_s see it alongside the state. It is 0 at reset and in the observation
    that follows an interval's end, so it is always in [0, 1).

    Turned off, its place is still there, so that networks and saved agents keep their layout, but
    it always reads 0. The learner is told so by ``interval_spec`` and keeps the phase from all else
    that it looks at, such as the windows of histories.

    Args:
        env: an environment with intervals (`DelayReward`, `MarkIntervals`, or one that declares
            ``interval_spec`` and sets ``info["interval"]`` itself).
        phase: whether to tell the phase.
        action_masks: whether ``info["action_mask"]`` says which actions are allowed: 0 or 1 for
            each action of a ``Discrete`` space, for each option of each component of another.

    Raises:
        ValueError: if there are no intervals, observations cannot be flattened, or there are masks
            of actions that are not discrete.
    """

    def __init__(self, env: AnyEnv, *, phase: bool = True, action_masks: bool = False) -> None:
        RecordConstructorArgs.__init__(self, phase=phase, action_masks=action_masks)
        gym.Wrapper.__init__(self, env)
        spec = find_interval_spec(env)
        if spec is None:
            raise ValueError(
                f"{env} declares no interval_spec, so it has no phase. Use belated.delay(env, ...) "
                "for an environment with a reward at every step, belated.mark(env, ...) for one "
                "whose reward is already late."
            )
        self._options = options_of(env.action_space) if action_masks else ()
        self._may_be_masked = not action_masks and bool(options_of(env.action_space))
        if action_masks and not self._options:
            raise ValueError(f"Only discrete actions can be masked, not {env.action_space}.")
        self.flat_observation = FlatObservation(env.observation_space, self._options)
        """What is where in observations."""
        self.observation_space = self.flat_observation.space()
        self.interval_spec = replace(spec, phase=phase, action_masks=action_masks)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[npt.NDArray[np.float32], dict[str, Any]]:
        """Reset the inner environment; the phase is 0."""
        observation, info = self.env.reset(seed=seed, options=options)
        if self._may_be_masked and "action_mask" in info:
            self._may_be_masked = False
            gym.logger.warn(
                'info["action_mask"] says which actions are allowed, but agents will not know: '
                "pass action_masks=True to belated.delay, belated.mark or IntervalPhase."
            )
        mask = flat_mask(info, self._options) if self._options else None
        return self.flat_observation.join(observation, mask, 0.0), info

    def step(
        self, action: Any
    ) -> tuple[npt.NDArray[np.float32], SupportsFloat, bool, bool, dict[str, Any]]:
        """Step the inner environment and append the phase of the *next* step."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        interval = info["interval"]
        position = 0 if interval["end"] else interval["step"] + 1
        phase = self.interval_spec.phase_at(position)
        if is_number(info.get("duration")):  # vector environments take the first one's type
            info["duration"] = float(info["duration"])
        mask = self._mask(info, terminated) if self._options else None
        joined = self.flat_observation.join(observation, mask, phase)
        return joined, reward, terminated, truncated, info

    def _mask(self, info: dict[str, Any], terminated: bool) -> Any:
        unmasked = terminated and "action_mask" not in info  # nothing will be done there
        return 1 if unmasked else flat_mask(info, self._options)
