"""A stirred tank that is judged by lab samples: the worst excursion since the last one."""

import argparse
import warnings
from typing import Any

import gymnasium as gym
import numpy as np

import belated

warnings.filterwarnings("ignore", module=r"casadi|do_mpc|gymnasium|pcgym")
from pcgym import make_env  # noqa: E402
from pcgym.oracle import oracle  # noqa: E402

LAB, STEPS, MINUTES, GAMMA = 15, 120, 0.25, 0.97  # steps to a sample, in an episode; minutes each
TOLERANCE, SCALE_END = 0.02, 10  # mol/l, and how many of them the lab can tell
COOLANT = {"low": np.array([290], "f"), "high": np.array([305], "f")}  # K
SENSORS = {"low": np.array([0.75, 310, 0.8], "f"), "high": np.array([0.95, 340, 0.92], "f")}
FEED: Any = {"low": np.array([347, 0.95], "f"), "high": np.array([353, 1.05], "f")}  # K, mol/l


class Reactor(gym.Env[Any, Any]):
    """Hold a concentration by the coolant while the feed changes; too hot, and it runs away."""

    action_space = gym.spaces.Box(-1, 1, (1,))  # the coolant's temperature
    observation_space = gym.spaces.Box(-1, 1, (5,))  # mol/l, K, set-point and feed

    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.set_point = self.np_random.uniform(0.82, 0.9)
        steady = self.np_random.integers(8, 25, 16)  # steps until the feed changes
        feed = self.np_random.uniform(**FEED, size=(16, 2)).repeat(steady, 0)[: STEPS + 1]
        self.settings: dict[str, Any] = {
            "model": "cstr",
            "N": STEPS + 1,
            "tsim": (STEPS + 1) * MINUTES,
            "SP": {"Ca": np.full(STEPS + 1, self.set_point)},
            "x0": np.array([self.set_point, 325, self.set_point]),
            "a_space": COOLANT,
            "o_space": SENSORS,
            "disturbances": {"Ti": feed[:, 0], "Caf": feed[:, 1]},
            "disturbance_bounds": FEED,
        }
        self.plant, self.course = make_env(self.settings), np.zeros(0)
        return self._seen(self.plant.reset()[0]), {}

    def _seen(self, observation: Any) -> Any:
        return observation.clip(-1, 1).astype(np.float32)

    def step(self, action: Any) -> Any:
        observation, _, ended, _, _ = self.plant.step(action)
        self.course = np.append(self.course, self.plant.state[0])
        sampled, worst = len(self.course) % LAB == 0, self.errors()[-LAB:].max() / TOLERANCE
        reward = -min(worst, SCALE_END) if sampled else 0.0
        return self._seen(observation), reward, False, ended, {"lab_sample": sampled}

    def errors(self) -> Any:
        return abs(self.course - self.set_point)


def marked() -> gym.Env[Any, Any]:
    """The environment as an agent sees it; nothing tells it how good a single step was."""
    return belated.mark(Reactor(), max_length=LAB, info_key="lab_sample")


def predictive(reactor: Any) -> Any:
    """The model-predictive controller of pcgym, which knows the plant's equations."""
    shifted = {name: np.roll(feed, -1) for name, feed in reactor.settings["disturbances"].items()}
    settings = reactor.settings | {"disturbances": shifted}  # it looks up the step before
    controller, _ = oracle(make_env, settings, {"N": 10}).setup_mpc()
    look_up = controller.p_fun
    controller.p_fun = lambda time: look_up(float(np.squeeze(time)))  # for NumPy 2.4 and later
    controller.x0 = reactor.plant.state[:2]
    controller.set_initial_guess()
    low, high = COOLANT.values()

    def act(observation: Any) -> Any:
        coolant = controller.make_step(reactor.plant.state[:2, None])[0]
        return np.clip(2 * (coolant - low) / (high - low) - 1, -1, 1), None

    return act


def trained(method: str, seed: int, steps: int) -> Any:
    """The policy of an agent that has learned for so many steps."""
    small: dict[str, Any] = {"hidden": (64, 64), "learning_starts": 1_000, "learning_rate": 1e-3}
    agent = belated.Agent(method, marked(), seed=seed, gamma=GAMMA, **small)
    agent.learn(steps)
    return lambda reactor: agent.predict


def measure(name: str, policy: Any, episodes: int) -> tuple[float, float]:
    """The mean reward of a sample and the mean error, over the same episodes for all."""
    env, rewards, errors = marked(), list[Any](), list[Any]()
    reactor: Any = env.unwrapped
    for seed in range(20_000, 20_000 + episodes):
        observation, _ = env.reset(seed=seed)
        act, ended = policy(reactor), False
        while not ended:
            observation, reward, _, ended, info = env.step(act(observation)[0])
            rewards += [reward] if info["lab_sample"] else []
        errors.append(reactor.errors())
    print(f"{name:28} {np.mean(rewards):.2f} a sample, {np.mean(errors):.4f} mol/l off", flush=True)
    return float(np.mean(rewards)), float(np.mean(errors))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--methods", nargs="+", default=["hc-pairwise-1", "sac"])
    parser.add_argument("--steps", type=int, default=10_000)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--episodes", type=int, default=20)
    arguments = parser.parse_args()
    measure("predictive control", predictive, arguments.episodes)
    for method in arguments.methods:
        for seed in range(arguments.seeds):
            policy = trained(method, seed, arguments.steps)
            measure(f"{method} seed {seed}", policy, arguments.episodes)
