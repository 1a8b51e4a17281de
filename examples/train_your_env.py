"""Train on your own environment, with its reward delayed.

A heater keeps a room at 20 degrees while the weather changes. Nobody reads the thermometer at every
step: the agent receives the comfort of the last 10 to 15 steps, added up.
"""

from typing import Any

import gymnasium as gym
import numpy as np

import belated

STEPS = 1_500  # enough to see it run; 20,000 are enough to learn


class Heater(gym.Env[Any, Any]):
    """Room temperature, outdoor temperature; the action is the heating power."""

    observation_space = gym.spaces.Box(-50, 50, (2,), np.float32)
    action_space = gym.spaces.Box(0.0, 1.0, (1,), np.float32)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.room, self.outdoors, self.time = 15.0, self.np_random.uniform(-5, 10), 0
        return self._observe(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.room += 3.0 * float(action[0]) + 0.1 * (self.outdoors - self.room)
        self.outdoors = float(np.clip(self.outdoors + self.np_random.normal(0, 0.5), -10, 15))
        self.time += 1
        reward = -abs(self.room - 20.0) / 10
        return self._observe(), reward, False, self.time == 100, {}

    def _observe(self) -> Any:
        return np.array([self.room, self.outdoors], np.float32)


gym.register("Heater-v0", entry_point=f"{__name__}:Heater")


def main() -> None:
    env = belated.delay(gym.make("Heater-v0"), interval="10:15", reward="sum")
    print(belated.check_delayed_env(env, steps=500))

    agent = belated.Agent("hc-singleton", env, seed=0, hidden=(64, 64), learning_starts=500)
    agent.learn(STEPS, callback=belated.Evaluate(every=500, episodes=3))
    for row in agent.history:
        print(f"step {row['step']:6.0f}  return {row['return_mean']:8.2f}")


if __name__ == "__main__":
    main()
