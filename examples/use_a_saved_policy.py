"""Save an agent, load it without an environment, and use its policy."""

import tempfile
from pathlib import Path

import gymnasium as gym

import belated

STEPS = 1_000


def main() -> None:
    env = belated.delay(gym.make("Pendulum-v1"), interval=10)
    agent = belated.Agent("hc-singleton", env, seed=0, hidden=(64, 64), learning_starts=500)
    agent.learn(STEPS)

    with tempfile.TemporaryDirectory() as folder:
        agent.save(Path(folder) / "agent")
        policy = belated.Agent.load(Path(folder) / "agent")  # runs no code from the folder

    # The observation must end with the phase, as it did in training: keep the wrapper.
    env = belated.delay(gym.make("Pendulum-v1"), interval=10)
    observation, _ = env.reset(seed=1)
    total, ended = 0.0, False
    while not ended:
        action, _ = policy.predict(observation)
        observation, reward, terminated, truncated, _ = env.step(action)
        total += float(reward)
        ended = terminated or truncated
    print(f"return of one episode: {total:.1f}")


if __name__ == "__main__":
    main()
