"""What a sweep adds to the time of its runs, beside the same runs in a plain loop on each core.

A loop starts `belated train` for one run after another, pinned to its core, as a script would. The
sweep and the loops take turns, and the runs of both must come to the same numbers.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from threading import Thread
from typing import Annotated

import tyro

SMALL = ["hidden=[64,64]", "batch_size=64"]
OPTIONS = ["--eval-every", "1000", "--eval-episodes", "2", "--learning-starts", "500"]
TASK = ["--env", "Pendulum-v1", "--interval", "20"]


def main(
    runs: int = 64,
    steps: int = 4_000,
    turns: int = 2,
    json_file: Annotated[Path | None, tyro.conf.arg(name="json")] = None,
) -> None:
    """Time a sweep of some runs on two workers, and the same runs without it.

    Args:
        runs: How many runs.
        steps: How many steps each has.
        turns: In how many parts the runs are done; the sweep and the loops take turns.
        json_file: Where to write the figures.
    """
    cores = sorted(os.sched_getaffinity(0))[:2]
    seeds = runs // turns
    times: dict[str, float] = {"sweep": 0.0, "loops": 0.0}
    inside = 0.0
    with tempfile.TemporaryDirectory() as place:
        for turn in range(turns):
            folder = Path(place) / str(turn)
            order = ["sweep", "loops"] if turn % 2 == 0 else ["loops", "sweep"]
            for which in order:
                started = time.monotonic()
                if which == "sweep":
                    _sweep(seeds, steps, folder / "sweep")
                else:
                    _loops(seeds, steps, folder / "loops", cores)
                times[which] += time.monotonic() - started
            inside += _seconds_inside(folder / "sweep")
            _require_same_numbers(folder)
    figures = {
        "runs": runs,
        "steps": steps,
        "workers": len(cores),
        "sweep_seconds": times["sweep"],
        "loops_seconds": times["loops"],
        "ratio": times["sweep"] / times["loops"],
        "seconds_of_a_run": inside / runs,
    }
    print(json.dumps(figures, indent=2))
    if json_file is not None:
        json_file.write_text(json.dumps(figures, indent=2) + "\n")


def _sweep(seeds: int, steps: int, out: Path) -> None:
    command = [sys.executable, "-m", "belated", "compare", *TASK, "--methods", "sac", *OPTIONS,
               "--seeds", str(seeds), "--steps", str(steps), "--workers", "2", "--out", str(out),
               "--set", *SMALL]  # fmt: skip
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def _loops(seeds: int, steps: int, out: Path, cores: Sequence[int]) -> None:
    def loop(place: int) -> None:
        for seed in range(place, seeds, len(cores)):
            command = ["taskset", "-c", str(cores[place]), sys.executable, "-m", "belated", "train",
                       *TASK, "--method", "sac", *OPTIONS, "--seed", str(seed), "--steps",
                       str(steps), "--checkpoint-every", str(steps // 10), "--no-progress",
                       "--out", str(out / f"sac-s{seed}"), "--set", *SMALL]  # fmt: skip
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)

    threads = [Thread(target=loop, args=(place,)) for place in range(len(cores))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _seconds_inside(out: Path) -> float:
    """The time that the runs of a sweep took, without starting their processes."""
    files = out.glob("runs/*/*/status.json")
    return sum(float(json.loads(file.read_text())["seconds"]) for file in files)


def _require_same_numbers(folder: Path) -> None:
    for file in folder.glob("sweep/runs/*/*/progress.csv"):
        other = folder / "loops" / file.parent.name / "progress.csv"
        ours, theirs = (
            [line.split(",")[:5] for line in each.read_text().splitlines()]
            for each in (file, other)
        )
        if ours != theirs:
            raise SystemExit(f"{file.parent.name} came to other numbers in the sweep.")


if __name__ == "__main__":
    tyro.cli(main)
