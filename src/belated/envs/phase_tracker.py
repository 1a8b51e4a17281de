"""The phase for a policy that has left its training environment."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import numpy.typing as npt

from belated.envs.actions import flat_mask, options_of
from belated.envs.flat_observation import FlatObservation
from belated.envs.interval_phase import IntervalPhase
from belated.envs.intervals import IntervalSpec
from belated.envs.layers import layers
from belated.ranges import one_of


class PhaseTracker:
    """Appends to observations what `belated.delay` and `belated.mark` append in training.

    It needs no environment: it is for the plant, the shop or the robot itself. `PhaseTracker.of`
    makes one that fits an agent or an environment.

    Args:
        max_length: n_max, the most steps between two revealed rewards in training.
        space: the environment's own observations; flat vectors if it is left out.
        phase: False if the agent was trained with the phase turned off.
        options: how many options each component of the actions has, if the agent was trained with
            masks of actions.
        overdue: what to do if no reward was revealed for ``max_length`` steps, which never
            happened in training: ``"raise"`` an error, or ``"hold"`` the last phase.

    Example:
        >>> tracker = PhaseTracker(max_length=4)
        >>> tracker.reset([7.0]).tolist()
        [7.0, 0.0]
        >>> tracker.observe([8.0], reward_revealed=False).tolist()
        [8.0, 0.25]
        >>> tracker.observe([9.0], reward_revealed=True).tolist()
        [9.0, 0.0]
    """

    def __init__(
        self,
        max_length: int,
        *,
        space: gym.Space[Any] | None = None,
        phase: bool = True,
        options: tuple[int, ...] = (),
        overdue: str = "raise",
    ) -> None:
        self.spec = IntervalSpec(max_length, phase=phase, action_masks=bool(options))
        self.position = 0
        """How many steps were taken since the last reward was revealed; set it after a restart."""
        self._options = tuple(options)
        self._holds = one_of("raise", "hold")(overdue, "overdue") == "hold"
        self._layout = None if space is None else FlatObservation(space, self._options)

    @classmethod
    def of(
        cls, source: Any, *, space: gym.Space[Any] | None = None, overdue: str = "raise"
    ) -> PhaseTracker:
        """Make a tracker for an agent, or for whatever learned in an environment.

        Args:
            source: a `belated.Agent`, also a loaded one, or an environment as for training.
            space: for an agent, which remembers only how many numbers there are: the environment's
                own observations, if they are no flat vectors.
            overdue: as above.

        Raises:
            ValueError: if the environment has no phase, or the space is another one.
        """
        if isinstance(source, gym.Env):
            return cls._of_env(source, overdue)
        shape = getattr(getattr(source, "spaces", None), "shape", None)
        if shape is None:
            raise TypeError(f"Expected a belated.Agent or one gymnasium.Env, got {source!r}.")
        options = shape.choices if shape.masked else ()
        own = shape.state_size - sum(options)
        if space is None:
            space = gym.spaces.Box(-np.inf, np.inf, (own,))
        found = FlatObservation(space).own
        if found != own:
            raise ValueError(f"The agent observes {own} numbers, but {space} has {found}.")
        how: dict[str, Any] = {"phase": shape.phase, "options": options, "overdue": overdue}
        return cls(shape.max_length, space=space, **how)

    @classmethod
    def _of_env(cls, env: gym.Env[Any, Any], overdue: str) -> PhaseTracker:
        for layer in layers(env):
            if isinstance(layer, IntervalPhase):
                spec = layer.interval_spec
                options = options_of(env.action_space) if spec.action_masks else ()
                how: dict[str, Any] = {"phase": spec.phase, "options": options, "overdue": overdue}
                return cls(spec.max_length, space=layer.flat_observation.source, **how)
        raise ValueError(f"{env} has no phase: it lacks belated.IntervalPhase.")

    def reset(self, observation: Any, action_mask: Any = None) -> npt.NDArray[np.float32]:
        """Start an episode; return the first observation with its phase, 0."""
        self.position = 0
        return self._join(observation, action_mask)

    def observe(
        self, observation: Any, reward_revealed: bool, action_mask: Any = None
    ) -> npt.NDArray[np.float32]:
        """Return what the policy is to see after a step.

        Args:
            observation: what the environment showed after the step.
            reward_revealed: whether the step's reward was revealed, or its interval ended without.
            action_mask: which actions are allowed, if the agent was trained with masks: as in
                ``info["action_mask"]``.

        Raises:
            ValueError: if a reward is overdue, or the observation or the mask has another shape.
        """
        position = 0 if reward_revealed else self.position + 1
        if position >= self.spec.max_length:
            if not self._holds:
                raise ValueError(
                    f"No reward was revealed for {position} steps, the most in training: the "
                    "policy knows nothing of what comes then. Call reset to start again, or make "
                    'the tracker with overdue="hold".'
                )
            position = self.spec.max_length - 1
        self.position = position
        return self._join(observation, action_mask)

    def _join(self, observation: Any, action_mask: Any) -> npt.NDArray[np.float32]:
        if self._layout is None:
            shape = np.shape(observation)
            self._layout = FlatObservation(gym.spaces.Box(-np.inf, np.inf, shape), self._options)
        wanted = self._layout.source.shape
        if wanted is not None and np.shape(observation) != wanted:
            raise ValueError(
                f"The observation has the shape {np.shape(observation)}, expected {wanted}, the "
                "environment's own, without the phase."
            )
        if self._options and action_mask is None:
            raise ValueError("Pass action_mask=...: the agent was trained with masks of actions.")
        mask = flat_mask({"action_mask": action_mask}, self._options) if self._options else None
        return self._layout.join(observation, mask, self.spec.phase_at(self.position))
