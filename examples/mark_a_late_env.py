"""Train on an environment whose reward is already late: a lab reports now and then."""

from typing import Any

import gymnasium as gym
import numpy as np

import belated

STEPS = 1_000


class Reactor(gym.Env[Any, Any]):
    """Keep a concentration at 0.5; the lab reports the mean error since its last report."""

    observation_space = gym.spaces.Box(-1, 2, (1,), np.float32)
    action_space = gym.spaces.Box(-1.0, 1.0, (1,), np.float32)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.level, self.time = 0.0, 0
        self.errors: list[float] = []
        return np.array([self.level], np.float32), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        noise = self.np_random.normal(0, 0.01)
        self.level = float(np.clip(self.level + 0.1 * float(action[0]) + noise, -1, 2))
        self.errors.append(abs(self.level - 0.5))
        self.time += 1
        waited = len(self.errors)
        reported = waited == 20 or (waited >= 8 and self.np_random.random() < 0.3)
        reward = 0.0
        if reported:
            reward = -float(np.mean(self.errors))
            self.errors = []
        info = {"lab_report": reported}
        return np.array([self.level], np.float32), reward, False, self.time == 100, info


def main() -> None:
    env = belated.mark(Reactor(), max_length=20, info_key="lab_report")
    print(belated.check_delayed_env(env, steps=500))

    # There is no per-step reward underneath, so evaluation reports the revealed return.
    # Reactor has no registered id, so evaluation needs an environment to be given.
    second = belated.mark(Reactor(), max_length=20, info_key="lab_report")
    agent = belated.Agent("hc-rnn", env, seed=0, hidden=(64, 64), learning_starts=500)
    agent.learn(STEPS, callback=belated.Evaluate(every=500, episodes=3, env=second))
    for row in agent.history:
        print(f"step {row['step']:6.0f}  revealed return {row['revealed_return_mean']:8.3f}")

    credit = agent.credit(agent.play(env=second))
    print("credit of the first steps:", np.round(credit[:8], 3))


if __name__ == "__main__":
    main()
