"""How the cost of an update grows, and how far several runs disturb each other.

HalfCheetah's sizes, random steps, everything on one core, except for the runs side by side.
Interleaved rounds, medians: compare figures within a table, not between machines.
"""

from __future__ import annotations

import json as json_module
import os
import statistics
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

CORES = sorted(os.sched_getaffinity(0))
os.sched_setaffinity(0, {CORES[0]})  # before any library counts the cores

import gymnasium as gym
import numpy as np
import tyro
from contestant import Contestant, Figures, Learn
from rich.console import Console
from rich.progress import track
from rich.table import Table

import belated
from belated.experience.lanes import lanes_of
from belated.experience.off_policy import OffPolicy
from belated.experience.step import ProblemShape
from belated.methods import METHODS, Method, find_method
from belated.parts import override
from belated.training.learner import Learner

LENGTHS = (5, 10, 20, 50, 100, 200)
BATCHES = (32, 64, 128, 256, 512, 1024)
REACHES = (0, 1, 2, 3, 5)
REPLAYS = (10_000, 100_000, 1_000_000)


def filled(method: Method, length: int, rows: int) -> tuple[OffPolicy, ProblemShape]:
    """A replay full of random steps of HalfCheetah: an episode of 1,000, over and over."""
    env = belated.make("HalfCheetah-v5", interval=length)
    lanes, rng = lanes_of(env, 1, seed=0), np.random.default_rng(0)
    lanes.start()
    episode = [lanes.step(rng.uniform(-1, 1, (1, 6)).astype(np.float32)) for _ in range(1_000)]
    agent = belated.Agent(method, env, replay_size=rows)
    assert isinstance(agent.loop.experience, OffPolicy)
    for number in range(rows):
        ((_, step),) = episode[number % 1_000]
        agent.loop.experience.add(step, lane=0)
    return agent.loop.experience, agent.shape


def update_of(method: Method, length: int = 20, rows: int = 10_000) -> Callable[[], None]:
    """A function that samples a batch and runs an update on it."""
    experience, shape = filled(method, length, rows)
    learner = Learner(method.backbone, shape, seed=0, precision=method.training.precision)

    def update() -> None:
        learner.update(experience.sample())["td_loss"].block_until_ready()

    update()  # compiles
    return update


def milliseconds(updates: dict[Any, Callable[[], None]], rounds: int) -> dict[Any, float]:
    """The median time of each, in interleaved rounds."""
    times: dict[Any, list[float]] = {name: [] for name in updates}
    for _ in range(rounds):
        for name, update in updates.items():
            start = time.perf_counter()
            update()
            times[name].append(1e3 * (time.perf_counter() - start))
    return {name: statistics.median(measured) for name, measured in times.items()}


def table_of(
    title: str, values: Iterable[Any], methods: Iterable[str], make: Any, rounds: int
) -> dict[str, dict[str, float]]:
    """Measure methods over values, print a table and return it."""
    values, methods = list(values), list(methods)
    updates = {
        (name, value): make(name, value)
        for name, value in track(
            [(name, value) for name in methods for value in values], title, transient=True
        )
    }
    measured = milliseconds(updates, rounds)
    table = Table(title, *map(str, values), title="ms for an update, sampling included")
    for name in methods:
        table.add_row(name, *(f"{measured[name, value]:.2f}" for value in values))
    Console(width=100).print(table)
    return {name: {str(value): measured[name, value] for value in values} for name in methods}


def make(name: str) -> tuple[Learn, Callable[[], Figures]]:
    """An agent that learns; there is nothing more to say of it."""
    env = gym.make("belated/HalfCheetah-sum-n20-v0")
    return belated.Agent(name, env, seed=0, learning_starts=500).learn, dict


def side_by_side(runs: list[Contestant], seconds: float) -> Figures:
    """Let runs learn at the same time: the steps per second of all, the memory of each."""
    for run in runs:
        run.go(seconds)
    figures = [run.result() for run in runs]
    return {
        "steps_per_second": sum(one["steps_per_second"] for one in figures),
        "peak_megabytes": max(one["peak_megabytes"] for one in figures),
    }


def main(
    rounds: int = 15,
    turns: int = 7,
    seconds: float = 4.0,
    json: Path | None = None,
    updates: bool = True,
) -> None:
    """Measure and print how costs grow.

    Args:
        rounds: How many updates of each kind to time.
        turns: How often one run and two side by side take turns.
        seconds: How long they learn each time.
        json: Also write the figures to this file; those not measured this time stay in it.
        updates: Measure single updates, not only the runs side by side.
    """
    report: dict[str, Any] = {}
    if json is not None and json.exists():
        report = json_module.loads(json.read_text())
    if updates:
        report |= measure_updates(rounds)
    report["runs"] = measure_runs(turns, seconds)
    if json is not None:
        json.write_text(json_module.dumps(report, indent=2) + "\n")


def measure_updates(rounds: int) -> dict[str, Any]:
    """How the time of an update grows with interval length, batch, K and replay."""
    hc = ["hc-singleton", "hc-pairwise-1", "hc-rnn"]
    return {
        "interval_length": table_of(
            "interval length", LENGTHS, hc, lambda m, n: update_of(find_method(m), n), rounds
        ),
        "batch_size": table_of(
            "batch", BATCHES, ["sac", *hc],
            lambda m, b: update_of(override(find_method(m), {"batch_size": b})), rounds,
        ),
        "reach": table_of(
            "K", REACHES, ["hc-pairwise"],
            lambda _, k: update_of(override(METHODS["hc-pairwise-1"], {"reach": k})), rounds,
        ),
        "replay_size": table_of(
            "replay", REPLAYS, ["sac", "hc-singleton"],
            lambda m, rows: update_of(find_method(m), rows=rows), 10 * rounds,
        ),
    }  # fmt: skip


def measure_runs(turns: int, seconds: float) -> dict[str, Any]:
    """One run and two at the same time, in turns: median speeds, and the most memory."""
    table = Table("runs side by side", "steps/s of all", "ratio to one", "peak MB of each")
    report: dict[str, Any] = {}
    for name in ("sac", "hc-singleton", "hc-rnn"):
        runs = [Contestant(name, core, make) for core in CORES[:2]]
        for run in runs:
            run.wait_until_ready()
        measured = [[side_by_side(runs[:n], seconds) for n in (1, len(runs))] for _ in range(turns)]
        for run in runs:
            run.finish()
        for number, count in enumerate((1, len(runs))):
            figures = {
                "steps_per_second": statistics.median(
                    t[number]["steps_per_second"] for t in measured
                ),
                "ratio_to_one": statistics.median(
                    t[number]["steps_per_second"] / t[0]["steps_per_second"] for t in measured
                ),
                "peak_megabytes": max(t[number]["peak_megabytes"] for t in measured),
            }
            report[f"{count} {name}"] = figures
            speed, ratio, memory = figures.values()
            table.add_row(f"{count} × {name}", f"{speed:.0f}", f"{ratio:.2f}", f"{memory:.0f}")
    Console(width=100).print(table)
    return report


if __name__ == "__main__":
    tyro.cli(main)
