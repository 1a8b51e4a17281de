"""A small grid, sweeps of it in processes of their own, and what they came to."""

from __future__ import annotations

import csv
import io
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

GRID = """
methods = ["hc-singleton", "sac"]
seeds = 2
steps = 500
learning_starts = 60
checkpoint_every = 100
eval_every = 100
eval_episodes = 1
log_every = 100
tasks = [{ env = "Pendulum-v1", interval = "5:7" }]
[set]
hidden = [8, 8]
batch_size = 8
replay_size = 2000
"""
TIMES = {"wall_time", "steps_per_second"}


def curves(folder: Path) -> dict[str, list[dict[str, str]]]:
    """All numbers of a sweep but the times."""
    found = {}
    for file in sorted(folder.glob("runs/*/*/progress.csv")):
        rows = list(csv.DictReader(io.StringIO(file.read_text())))
        found[file.parent.name] = [
            {name: value for name, value in row.items() if name not in TIMES} for row in rows
        ]
    return found


def start(grid: Path, out: Path, *arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "belated", "sweep", str(grid), "--out", str(out), *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def workers_of(runner: int) -> list[int]:
    found = subprocess.run(["pgrep", "-P", str(runner)], capture_output=True, text=True)
    return [int(number) for number in found.stdout.split()]


def wait_until(condition: Callable[[], bool], seconds: float = 120) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def checkpoints(out: Path) -> list[Path]:
    return list(out.glob("runs/*/*/checkpoint/manifest.json"))
