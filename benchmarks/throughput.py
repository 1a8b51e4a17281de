"""Environment steps per second of learning, beside Stable-Baselines3's SAC, in one run.

HalfCheetah-v5, batch 128, 256×256, one update per step, everything on one core. Rounds of all
competitors are interleaved, and ratios are taken within a round, so that whatever else the machine
does falls on all alike. Needs the ``bench`` extra; install a CPU build of torch first.
"""

from __future__ import annotations

import json
import os
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})  # before any library counts the cores

import gymnasium as gym
import numpy as np
import tyro
from rich.console import Console
from rich.table import Table

import belated

WARM_UP = 700

Competitor = Callable[[int], Any]
"""Learns for some more steps."""


def stable_baselines3() -> Competitor:
    import torch
    from stable_baselines3 import SAC

    torch.set_num_threads(1)
    model = SAC(
        "MlpPolicy", "HalfCheetah-v5", batch_size=128, learning_starts=500, seed=0, device="cpu"
    )
    return lambda steps: model.learn(steps, reset_num_timesteps=False)


def ours(method: str) -> Competitor:
    env = gym.make("belated/HalfCheetah-sum-n20-v0")
    agent = belated.Agent(method, env, seed=0, learning_starts=500)
    return agent.learn


def sgemm_gflops(size: int = 1024) -> float:
    """The best square product of this core, the yardstick for what is possible."""
    matrix = np.random.default_rng(0).normal(size=(size, size)).astype(np.float32)
    times = []
    for _ in range(10):
        start = time.perf_counter()
        matrix @ matrix
        times.append(time.perf_counter() - start)
    return 2 * size**3 / min(times) / 1e9


def main(
    methods: tuple[str, ...] = ("sac", "hc-singleton", "hc-pairwise-1"),
    rounds: int = 5,
    steps: int = 300,
    json_file: Path | None = None,
) -> None:
    """Measure and print steps per second.

    Args:
        methods: Which of belated's methods to measure.
        rounds: How many rounds to run.
        steps: How many steps each competitor learns for in a round.
        json_file: Also write the figures to this file.
    """
    peer = "Stable-Baselines3 SAC"
    competitors = {peer: stable_baselines3()} | {name: ours(name) for name in methods}
    for learn in competitors.values():
        learn(WARM_UP)
    speeds: dict[str, list[float]] = {name: [] for name in competitors}
    for _ in range(rounds):
        for name, learn in competitors.items():
            start = time.perf_counter()
            learn(steps)
            speeds[name].append(steps / (time.perf_counter() - start))

    table = Table("", "steps/s (median)", "spread", "ratio to SB3 (median of rounds)")
    report: dict[str, Any] = {"sgemm_gflops": sgemm_gflops(), "methods": {}, "peers": {}}
    for name, measured in speeds.items():
        median = statistics.median(measured)
        ratio = statistics.median(a / b for a, b in zip(measured, speeds[peer], strict=True))
        spread = f"{min(measured):.0f}–{max(measured):.0f}"
        table.add_row(name, f"{median:.0f}", spread, f"{ratio:.2f}")
        figures = {"steps_per_second": median, "ratio_to_sb3": ratio, "rounds": measured}
        report["peers" if name == peer else "methods"][name] = figures
    Console().print(table)
    print(f"one core's sgemm: {report['sgemm_gflops']:.0f} GFLOPS")
    if json_file is not None:
        json_file.write_text(json.dumps(report, indent=2) + "\n")


if __name__ == "__main__":
    tyro.cli(main)
