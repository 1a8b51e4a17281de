"""Runs that are killed or asked to stop at random moments, and what is left of them in the end."""

from __future__ import annotations

import csv
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy

from belated.training.checkpoint import Reader

VICTIM = Path(__file__).with_name("victim.py")
TIMES = ("wall_time", "steps_per_second")


def start(folder: Path, method: str, envs: int) -> subprocess.Popen[str]:
    """Start a run, or go on with it, and wait until it learns."""
    command = [sys.executable, str(VICTIM), str(folder), method, str(envs)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stderr is not None
    if process.stdout.readline() != "learning\n":
        raise RuntimeError(process.stderr.read())
    return process


def undisturbed(folder: Path, method: str, envs: int = 1) -> float:
    """Do a run and return how many seconds it learned for."""
    process, started = start(folder, method, envs), time.monotonic()
    finish(process)
    return time.monotonic() - started


def finish(process: subprocess.Popen[str]) -> None:
    _, errors = process.communicate()
    if process.returncode != 0:
        raise RuntimeError(errors)


def killed(
    folder: Path, method: str, kills: int, seconds: float, rng: random.Random, envs: int = 1
) -> int:
    """Do a run, killing it so often; return how often it was killed before it was through."""
    done = 0
    for _ in range(kills):
        process = start(folder, method, envs)
        time.sleep(rng.uniform(0, 1.5 * seconds / (kills + 1)))
        process.kill()
        process.communicate()
        done += process.returncode == -9
    finish(start(folder, method, envs))
    return done


def asked_twice(
    folder: Path, method: str, number: signal.Signals, times: int, seconds: float
) -> list[tuple[int, float]]:
    """Do a run, sending it a signal and soon another one, so often.

    Returns:
        The exit code and the seconds that it took to leave, for each time.
    """
    left = []
    for _ in range(times):
        process = start(folder, method, 1)
        time.sleep(random.uniform(0, seconds / times))
        process.send_signal(number)
        asked = time.monotonic()
        time.sleep(random.choice([0, 0.001, 0.01, 0.1]))
        process.send_signal(number)
        process.communicate()
        left.append((process.returncode, time.monotonic() - asked))
    finish(start(folder, method, 1))
    return left


def outcome(folder: Path) -> dict[str, Any]:
    """What a run has left behind: parameters, replay and rows, timing aside."""
    reader = Reader(folder / "checkpoint")
    found: dict[str, Any] = {}
    for name in reader.manifest["files"]:
        data = (folder / "checkpoint" / name).read_bytes()
        if name.endswith(".safetensors"):
            arrays = safetensors.numpy.load(data)
            found |= {f"{name.split('.')[0]}.{key}": array for key, array in arrays.items()}
        elif name.endswith(".rows"):
            _, _, lane, first, _ = name.split(".")
            found[f"rows of {lane} from {first}"] = np.frombuffer(data, np.uint8)
    with (folder / "progress.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    found["progress"] = [
        {name: cell for name, cell in row.items() if name not in TIMES} for row in rows
    ]
    return found


def assert_same(first: dict[str, Any], second: dict[str, Any]) -> None:
    """Compare two outcomes bit by bit."""
    assert first.keys() == second.keys()
    for name, value in first.items():
        if isinstance(value, np.ndarray):
            np.testing.assert_array_equal(value, second[name], err_msg=name, strict=True)
        else:
            assert value == second[name], name
