"""A traffic light that is told every five minutes how long trips take; needs `belated[traffic]`."""

import argparse
import os
from itertools import product
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import gymnasium as gym
import numpy as np
import sumo

import belated

os.environ.setdefault("SUMO_HOME", sumo.SUMO_HOME)
os.environ["LIBSUMO_AS_TRACI"] = "1"  # in this process, so only one simulation at a time

import sumo_rl
import traci

REPORT, EPISODE = 60, 600  # decisions, of five seconds each
SMALL: dict[str, Any] = {"hidden": (64, 64), "batch_size": 64, "learning_rate": 1e-3}
BUSY, QUIET, RUSH = 0.5, 0.15, 600  # vehicles a second; the rush changes streets after RUSH seconds


class Trips(traci.StepListener):  # type: ignore[misc]
    """Takes the time of all trips, from when a vehicle wants to enter until it has left."""

    def __init__(self) -> None:
        super().__init__()
        self.began: dict[str, float] = {}  # of vehicles under way
        self.finished: list[float] = []

    def step(self, t: float = 0) -> bool:
        self.now = traci.simulation.getTime()  # a second later
        self.began |= dict.fromkeys(traci.simulation.getLoadedIDList(), self.now)
        for vehicle in traci.simulation.getArrivedIDList():
            self.finished.append(self.now - self.began.pop(vehicle))
        return True

    def mean(self, since: int = 0) -> float:
        """Mean trip time, 0 without any vehicle; who is under way counts with the time so far."""
        # Of those who left alone, a light that never lets one street go would have the best mean.
        times = self.finished[since:] + [self.now - began for began in self.began.values()]
        return float(np.mean(times)) if times else 0.0


class LateReport(gym.Wrapper[Any, Any, Any, Any]):
    """Reveals minus the mean trip time, in minutes, every REPORT decisions and nothing between."""

    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        result = self.env.reset(seed=seed and seed % 2**31, options=options)  # SUMO's are 31 bits
        self.trips, self.decisions, self.reported = Trips(), 0, 0
        traci.addStepListener(self.trips)
        return result

    def step(self, action: Any) -> Any:
        observation, _, terminated, truncated, info = self.env.step(action)
        self.decisions += 1
        report, reward = self.decisions % REPORT == 0 or truncated, 0.0
        if report:
            reward = -self.trips.mean(since=self.reported) / 60
            self.reported = len(self.trips.finished)
        info |= {"report": report, "mean_trip": self.trips.mean()}
        return observation, reward, terminated, truncated, info


def traffic() -> str:
    """Write a file of traffic whose rush comes from the north and from the west by turns."""
    text = '<route id="north" edges="n_t t_s"/><route id="west" edges="w_t t_e"/>'
    for begin, street in product(range(0, 5 * EPISODE, RUSH), ("north", "west")):
        busy = (begin // RUSH % 2 == 0) == (street == "north")
        text += (
            f'<flow id="{street}{begin}" route="{street}" begin="{begin}" end="{begin + RUSH}" '
            f'probability="{BUSY if busy else QUIET}" departSpeed="max" departLane="best"/>'
        )
    file = Path(mkdtemp()) / "traffic.rou.xml"
    file.write_text(f"<routes>{text}</routes>")
    return str(file)


def crossing() -> gym.Env[Any, Any]:
    """The environment as an agent sees it: which street is green, densities and queues of lanes."""
    net = Path(sumo_rl.__file__).parent / "nets/single-intersection/single-intersection.net.xml"
    plain = {"single_agent": True, "add_system_info": False, "add_per_agent_info": False}
    env = sumo_rl.SumoEnvironment(str(net), traffic(), num_seconds=5 * EPISODE, **plain)
    late = LateReport(env)
    late.action_space = env.action_space  # sumo-rl's is another one after each reset, unseeded
    return belated.mark(late, max_length=REPORT, info_key="report")


def trip_time(env: Any, episodes: int, agent: belated.Agent | None = None, green: int = 1) -> float:
    """Mean trip time in seconds, in the same traffic for every agent and every fixed green time."""
    means = []
    for seed in range(episodes):
        observation, info = env.reset(seed=1_000_000 + seed)
        for decision in range(EPISODE):
            action = agent.predict(observation)[0] if agent else decision // green % 2
            observation, _, _, _, info = env.step(action)
        means.append(info["mean_trip"])
    return float(np.mean(means))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--methods", nargs="+", default=["dqn-hc-singleton", "dqn"])
    parser.add_argument("--steps", type=int, default=12_000)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--episodes", type=int, default=5, help="of evaluation")
    asked = parser.parse_args()
    env = crossing()  # the one simulation: training and evaluation take turns in it
    for green in (4, 6, 8):
        print(f"green for {5 * green} s: {trip_time(env, asked.episodes, green=green):.1f} s")
    for method, seed in product(asked.methods, range(asked.seeds)):
        explore = {"epsilon_updates": 6_000} if method.startswith("dqn") else {}
        agent = belated.Agent(method, env, seed=seed, learning_starts=1_200, **SMALL, **explore)
        agent.learn(asked.steps)
        print(f"{method:16} seed {seed}: {trip_time(env, asked.episodes, agent):.1f} s", flush=True)
