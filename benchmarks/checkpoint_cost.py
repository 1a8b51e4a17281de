"""How long a checkpoint takes when the replay holds 10⁴, 10⁵ and 10⁶ steps, 1,000 of them new."""

from __future__ import annotations

import json as json_module
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np
import tyro
from rich.console import Console
from rich.table import Table

import belated
from belated.experience.off_policy import OffPolicy
from belated.experience.step import ProblemShape, Step

SIZES = (10_000, 100_000, 1_000_000)
NEW = 1_000


def main(rounds: int = 11, json: Path | None = None) -> None:
    """Measure and print.

    Args:
        rounds: How many checkpoints are timed for each size.
        json: Where to write the figures.
    """
    figures = {}
    for size in SIZES:
        env = belated.make("HalfCheetah-v5", interval="20")
        agent = belated.Agent("crossq-hc-singleton", env, learning_starts=500).learn(500)
        experience = agent.loop.experience
        assert isinstance(experience, OffPolicy)
        rng = np.random.default_rng(0)
        fill(experience, agent.shape, size, rng)
        with tempfile.TemporaryDirectory() as folder:
            started = time.perf_counter()
            agent.save(Path(folder) / "agent", replay=True)
            first = time.perf_counter() - started
            times = []
            for _ in range(rounds):
                fill(experience, agent.shape, NEW, rng)
                started = time.perf_counter()
                agent.save(Path(folder) / "agent", replay=True)
                times.append(time.perf_counter() - started)
        figures[size] = {"first": first, "with 1,000 new steps": statistics.median(times)}
    table = Table("steps in the replay", "first checkpoint, s", "later ones, s")
    for size, row in figures.items():
        table.add_row(f"{size:,}", *(f"{seconds:.3f}" for seconds in row.values()))
    Console().print(table)
    if json is not None:
        json.write_text(json_module.dumps(figures, indent=2) + "\n")


def fill(
    experience: OffPolicy,
    shape: ProblemShape,
    steps: int,
    rng: np.random.Generator,
) -> None:
    """Add steps of intervals of 20, in episodes of 1,000."""
    observation = rng.standard_normal(shape.observation_size).astype(np.float32)
    action = rng.uniform(-1, 1, shape.action_size).astype(np.float32)
    for time_of in range(steps):
        end = time_of % 20 == 19
        step = Step(
            observation=observation,
            action=action,
            reward=float(end),
            next_observation=observation,
            terminated=False,
            truncated=time_of % 1000 == 999,
            position=time_of % 20,
            interval_end=end,
            revealed=end,
        )
        experience.add(step, 0)


if __name__ == "__main__":
    tyro.cli(main)
