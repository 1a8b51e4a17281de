"""Compose a method of your own from the parts of the table."""

import gymnasium as gym

import belated
from belated.methods import HC, TD3, Method, Pairwise

STEPS = 1_000


def main() -> None:
    history = Pairwise(reach=2, units=(32, 32))
    method = Method(TD3(gamma=0.98), HC(history, regularizer=1.0), hidden=(64, 64))

    env = belated.delay(gym.make("Pendulum-v1"), interval=10)
    agent = belated.Agent(method, env, seed=0, learning_starts=500)
    agent.learn(STEPS, progress_bar=True)
    print(agent.evaluate(episodes=3).summary())


if __name__ == "__main__":
    main()
