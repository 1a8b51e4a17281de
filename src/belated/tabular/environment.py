"""A tabular problem as a Gymnasium environment, for rollouts and for agents."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import numpy.typing as npt

from belated.envs.intervals import IntervalCounter, IntervalSpec
from belated.tabular import examples
from belated.tabular.drmdp import TabularDRMDP, Trajectory


class TabularEnv(gym.Env[npt.NDArray[np.float32], Any]):
    """Plays a `TabularDRMDP`.

    Observations are one-hot states. An action is its number, and ``info["action_mask"]`` says which
    the state has. For methods without discrete actions it can be one number in [−1, 1], cut into as
    many equal bins as the state has actions. The reward comes with an interval's last step.

    Args:
        problem: what to play, or the name of one of the paper's: XOR, FixedPointBias, …
        max_steps: truncates episodes after this many steps; None for never.
        discrete: whether actions are numbers, not bins.
    """

    def __init__(
        self,
        problem: TabularDRMDP | str,
        max_steps: int | None = None,
        *,
        discrete: bool = False,
    ) -> None:
        if isinstance(problem, str):
            problem = find_example(problem)
        if problem.ends != "reveal":
            raise ValueError("An environment's end reveals: play a problem with ends='reveal'.")
        self.problem = problem
        self.max_steps = max_steps
        self.interval_spec = IntervalSpec(problem.max_length, problem.overlap)
        self.observation_space = gym.spaces.Box(0, 1, (len(problem.start),), np.float32)
        self.discrete = discrete
        actions = problem.transition.shape[1]
        bins = gym.spaces.Box(-1, 1, (1,), np.float32)
        self.action_space: gym.Space[Any] = gym.spaces.Discrete(actions) if discrete else bins
        self._counter = IntervalCounter()
        self.state = 0
        self._steps = 0
        self._length = 1
        self._trajectory: Trajectory = ()

    def action_index(self, action: npt.ArrayLike) -> int:
        """Which of the state's actions is meant by one of the environment's.

        Raises:
            ValueError: if the state has no such action.
        """
        bins = self.problem.number_of_actions(self.state)
        if self.discrete:
            number = int(np.asarray(action).reshape(()))
            if not 0 <= number < bins:
                raise ValueError(f"There are {bins} actions here; {action!r} is none of them.")
            return number
        share = (float(np.asarray(action).reshape(())) + 1) / 2
        if not 0 <= share <= 1:
            raise ValueError(f"The action must be in [−1, 1], got {action!r}.")
        return min(int(share * bins), bins - 1)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[npt.NDArray[np.float32], dict[str, Any]]:
        """Draw the first state and the first interval's length."""
        super().reset(seed=seed)
        self._counter.reset()
        self._steps = 0
        self.state = self._draw(self.problem.start)
        self._trajectory = (None,) * self.problem.overlap
        self._length = 1 + self._draw(self.problem.lengths)
        return self._observe(), self._mask()

    def _mask(self) -> dict[str, Any]:
        if not self.discrete:
            return {}
        numbers = np.arange(self.problem.transition.shape[1])
        own = numbers < self.problem.number_of_actions(self.state)
        return {"action_mask": own.astype(np.int8)}

    def step(
        self, action: npt.ArrayLike
    ) -> tuple[npt.NDArray[np.float32], float, bool, bool, dict[str, Any]]:
        """Take an action; at an interval's end reveal its reward."""
        index = self.action_index(np.reshape(action, ()))
        self._trajectory = (*self._trajectory, (self.state, index))
        self.state = self._draw(self.problem.transition[self.state, index])
        self._steps += 1
        terminated = self.state in self.problem.terminal
        truncated = self._steps == self.max_steps and not terminated
        end = terminated or truncated or self._counter.step + 1 == self._length
        reward = 0.0
        if end:
            reward = self.problem.worth(self._trajectory)
            self._trajectory = self._trajectory[len(self._trajectory) - self.problem.overlap :]
            self._length = 1 + self._draw(self.problem.lengths)
        info = {"interval": self._counter.count(end=end, revealed=end), **self._mask()}
        return self._observe(), reward, terminated, truncated, info

    def _draw(self, probabilities: npt.NDArray[np.float64]) -> int:
        return int(self.np_random.choice(len(probabilities), p=probabilities))

    def _observe(self) -> npt.NDArray[np.float32]:
        observation = np.zeros(len(self.problem.start), np.float32)
        observation[self.state] = 1
        return observation


EXAMPLES = {
    "XOR": examples.xor,
    "FixedPointBias": examples.fixed_point_bias,
    "OffPolicyBias": examples.off_policy_bias,
    "BigAndLittle": examples.big_and_little,
}


def find_example(name: str) -> TabularDRMDP:
    """Return one of the paper's examples.

    Raises:
        ValueError: if there is none by that name.
    """
    if name not in EXAMPLES:
        raise ValueError(f"There is no example {name!r}. There are {', '.join(EXAMPLES)}.")
    return EXAMPLES[name]()
