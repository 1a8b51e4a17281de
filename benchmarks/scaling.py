"""How the cost of an update grows, and how far several runs disturb each other.

HalfCheetah's sizes, random steps, everything on one core, except for the runs side by side.
Interleaved rounds, medians: compare figures within a table, not between machines.
"""

from __future__ import annotations

import json as json_module
import os
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

CORES = sorted(os.sched_getaffinity(0))
os.sched_setaffinity(0, {CORES[0]})  # before any library counts the cores

import gymnasium as gym
import numpy as np
import tyro
from rich.console import Console
from rich.progress import track
from rich.table import Table

import belated
from belated.critics import ProblemShape
from belated.methods import METHODS, Method, find_method, override
from belated.replay import Step
from belated.training.learner import Learner
from belated.training.off_policy import OffPolicy

OBSERVATION, ACTION = 18, 6
LENGTHS = (5, 10, 20, 50, 100, 200)
BATCHES = (32, 64, 128, 256, 512, 1024)
REACHES = (0, 1, 2, 3, 5)
REPLAYS = (10_000, 100_000, 1_000_000)


def filled(method: Method, length: int, rows: int) -> OffPolicy:
    """A replay full of random steps, in episodes of 1,000."""
    rng = np.random.default_rng(0)
    shape = ProblemShape(OBSERVATION, ACTION, length, 0)
    method = override(method, {"replay_size": rows})
    experience = OffPolicy(method, shape, lanes=1, rng=rng)
    observations = rng.normal(size=(1_001, OBSERVATION)).astype(np.float32)
    actions = rng.uniform(-1, 1, (1_000, ACTION)).astype(np.float32)
    for number in range(rows):
        time_ = number % 1_000
        last = time_ == 999
        end = last or time_ % length == length - 1
        experience.add(
            Step(
                observations[time_], actions[time_], float(end), observations[time_ + 1],
                terminated=False, truncated=last, interval_end=end, revealed=end,
            ),
            lane=0,
        )  # fmt: skip
    return experience


def update_of(method: Method, length: int = 20, rows: int = 10_000) -> Callable[[], None]:
    """A function that samples a batch and runs an update on it."""
    experience = filled(method, length, rows)
    learner = Learner(method, ProblemShape(OBSERVATION, ACTION, length, 0), seed=0)

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


def run_alone(method: str, core: int, seconds: float) -> None:
    """Learn for some seconds and print steps per second and the peak memory in MB."""
    os.sched_setaffinity(0, {core})
    env = gym.make("belated/HalfCheetah-sum-n20-v0")
    agent = belated.Agent(method, env, seed=0, learning_starts=500).learn(700)
    print("ready", flush=True)
    sys.stdin.readline()
    start, before = time.perf_counter(), agent.steps
    while time.perf_counter() - start < seconds:
        agent.learn(20)
    speed = (agent.steps - before) / (time.perf_counter() - start)
    print(json_module.dumps({"steps_per_second": speed, "peak_megabytes": peak_megabytes()}))


def peak_megabytes() -> float:
    """The most memory that this process ever had; `resource` would count its parent's in."""
    (line,) = re.findall(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    return int(line) / 1024


def side_by_side(method: str, cores: list[int], seconds: float) -> list[dict[str, float]]:
    """Run once on each core at the same time."""
    command = [sys.executable, __file__, "--alone", method, "--seconds", str(seconds), "--core"]
    runs = [
        subprocess.Popen(
            [*command, str(core)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )
        for core in cores
    ]  # fmt: skip
    for run in runs:
        assert run.stdout is not None
        run.stdout.readline()
    for run in runs:  # all are ready: go
        assert run.stdin is not None
        run.stdin.write("\n")
        run.stdin.flush()
    return [json_module.loads(run.communicate()[0].splitlines()[-1]) for run in runs]


def main(
    rounds: int = 15,
    seconds: float = 10.0,
    json: Path | None = None,
    updates: bool = True,
    alone: str | None = None,
    core: int = 0,
) -> None:
    """Measure and print how costs grow.

    Args:
        rounds: How many updates of each kind to time.
        seconds: How long the runs side by side learn.
        json: Also write the figures to this file; those not measured this time stay in it.
        updates: Measure single updates, not only the runs side by side.
        alone: Only learn with this method, on one core (used for the runs side by side).
        core: Which core that is.
    """
    if alone is not None:
        return run_alone(alone, core, seconds)
    report: dict[str, Any] = {}
    if json is not None and json.exists():
        report = json_module.loads(json.read_text())
    if updates:
        report |= measure_updates(rounds)
    report["runs"] = measure_runs(seconds)
    if json is not None:
        json.write_text(json_module.dumps(report, indent=2) + "\n")
    return None


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


def measure_runs(seconds: float) -> dict[str, Any]:
    """Steps per second of one and of two runs at the same time, and their memory."""
    table = Table("runs side by side", "steps/s of all", "ratio to one", "peak MB of each")
    report: dict[str, Any] = {}
    for name in ("sac", "hc-singleton", "hc-rnn"):
        one = side_by_side(name, CORES[:1], seconds)
        for count in range(1, len(CORES[:2]) + 1):
            runs = one if count == 1 else side_by_side(name, CORES[:count], seconds)
            total = sum(run["steps_per_second"] for run in runs)
            ratio = total / one[0]["steps_per_second"]
            memory = max(run["peak_megabytes"] for run in runs)
            table.add_row(f"{count} × {name}", f"{total:.0f}", f"{ratio:.2f}", f"{memory:.0f}")
            report[f"{count} {name}"] = {
                "steps_per_second": total, "ratio_to_one": ratio, "peak_megabytes": memory,
            }  # fmt: skip
    Console(width=100).print(table)
    return report


if __name__ == "__main__":
    tyro.cli(main)
