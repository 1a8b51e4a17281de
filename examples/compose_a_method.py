"""Compose a method of your own from the parts of the table."""

import gymnasium as gym

import belated
from belated.methods import HC, TD3, Method, Pairwise, ReplayTraining

STEPS = 1_000


def main() -> None:
    critic = HC(Pairwise(reach=2, units=(32, 32)), regularizer=1.0)
    backbone = TD3(critic=critic, hidden=(64, 64), gamma=0.98)
    method = Method(backbone, ReplayTraining(batch_size=64, learning_starts=500))

    env = belated.delay(gym.make("Pendulum-v1"), interval=10)
    agent = belated.Agent(method, env, seed=0)
    agent.learn(STEPS, progress_bar=True)
    print(agent.evaluate(episodes=3).summary())


if __name__ == "__main__":
    main()
