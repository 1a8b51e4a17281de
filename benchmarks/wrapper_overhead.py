"""What DelayReward and IntervalPhase cost per environment step, beside the bare environment.

Interleaves rounds of both, so that whatever else the machine does falls on both alike.
"""

from __future__ import annotations

import statistics
import time
from typing import Any

import gymnasium as gym
import tyro
from rich.console import Console
from rich.table import Table

import belated


def microseconds_per_step(env: gym.Env[Any, Any], actions: list[Any]) -> float:
    env.reset(seed=0)
    start = time.perf_counter()
    for action in actions:
        _, _, terminated, truncated, _ = env.step(action)
        if terminated or truncated:
            env.reset()
    return 1e6 * (time.perf_counter() - start) / len(actions)


def main(env: str = "HalfCheetah-v5", rounds: int = 15, steps: int = 3_000) -> None:
    """Measure and print the cost.

    Args:
        env: The Gymnasium id of the environment underneath.
        rounds: How many rounds of each kind to run.
        steps: How many steps a round has.
    """
    competitors = {
        "bare": gym.make(env),
        "delayed": belated.make(env, interval="15:20"),
        "delayed, c = 5": belated.make(env, interval="15:20", overlap=5),
    }
    space = competitors["bare"].action_space
    space.seed(0)
    actions = [space.sample() for _ in range(steps)]
    times: dict[str, list[float]] = {name: [] for name in competitors}
    for _ in range(rounds):
        for name, competitor in competitors.items():
            times[name].append(microseconds_per_step(competitor, actions))

    table = Table("environment", "µs per step (median)", "added (median of rounds)", title=env)
    for name, measured in times.items():
        added = [a - b for a, b in zip(measured, times["bare"], strict=True)]
        table.add_row(
            name, f"{statistics.median(measured):.1f}", f"{statistics.median(added):+.1f}"
        )
    Console().print(table)


if __name__ == "__main__":
    tyro.cli(main)
