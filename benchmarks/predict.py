"""Microseconds for the action of one observation: `predict`, JAX's dispatch, and exported files."""

from __future__ import annotations

import json as json_module
import statistics
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import tyro
from rich.console import Console
from rich.table import Table

import belated

METHODS = ("sac", "crossq-hc-singleton", "ppo")


def microseconds(action: Callable[[], object], repeats: int = 3_000) -> float:
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        action()
        times.append(time.perf_counter() - start)
    return 1e6 * statistics.median(times)


def main(json: Path | None = None) -> None:
    """Measure and print medians.

    Args:
        json: Where to write the figures.
    """
    env = belated.make("HalfCheetah-v5", interval="20")
    observation, _ = env.reset(seed=0)
    figures = {}
    for method in METHODS:
        agent = belated.Agent(method, env)
        row = observation[None].astype(np.float32)
        figures[method] = {
            "predict": microseconds(partial(agent.predict, observation)),
            "JAX": microseconds(partial(agent.learner.mode, row)),
        }
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "policy.npz"
            agent.export(path)
            figures[method]["kilobytes"] = path.stat().st_size / 1024
    table = Table("method", "predict, µs", "JAX alone, µs", "exported, KB")
    for method, values in figures.items():
        table.add_row(method, *(f"{value:.0f}" for value in values.values()))
    Console().print(table)
    if json is not None:
        json.write_text(json_module.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    tyro.cli(main)
