"""Gather evidence: do the declared runs that results/ lacks."""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path
from typing import Annotated

import tyro
from docs_scores import RESULTS
from rich.console import Console

import belated
from belated.experiments.board import Board
from belated.experiments.grid import Grid, PlannedRun
from belated.experiments.local import run_locally
from belated.experiments.worker import Job
from belated.training.provenance import provenance
from belated.training.run import CONFIG, PROGRESS


class Gathering(Board):
    """A board that copies the settings and the curve of each finished run to results/."""

    def __init__(self, jobs: list[Job], results: Path, console: Console) -> None:
        super().__init__([job.run for job in jobs], 0, console)
        self._folders = {job.run.name: job.folder for job in jobs}
        self._results = results

    def finished(self, run: PlannedRun) -> None:
        """A run is done."""
        place = self._results / run.place
        place.mkdir(parents=True, exist_ok=True)
        for name in (CONFIG, PROGRESS):
            shutil.copy(self._folders[run.name] / name, place / name)
        super().finished(run)


def missing(results: Path, runs: Path, folders: tuple[str, ...], only: str) -> list[Job]:
    """The declared runs without a curve; each is named FOLDER/TASK/METHOD-sSEED.

    Raises:
        ValueError: if a folder has no grid.
    """
    names = folders or tuple(sorted(grid.parent.name for grid in results.glob("*/grid.toml")))
    jobs = []
    for name in names:
        for run in Grid.read(results / name / "grid.toml").runs():
            place = Path(name) / run.place
            if re.search(only, place.as_posix()) and not (results / place / PROGRESS).is_file():
                # Where a sweep of the grid does it, too. Modules of the grid's own lie beside it.
                path = [str((results / name).resolve()), *sys.path]
                folder = runs / name / "runs" / run.place
                jobs.append(Job(PlannedRun(run.settings, place), folder, path=path))
    return jobs


def main(
    folders: Annotated[tuple[str, ...], tyro.conf.Positional] = (),
    /,
    only: str = "",
    results: Path = RESULTS,
    runs: Path = Path("runs"),
    workers: int | None = None,
    show: bool = False,
) -> int:
    """Do the declared runs that results/ lacks, one on each core, and keep their curves there.

    Folders come one after the other, their runs seed by seed. Ctrl-C stops after saving, and the
    same command goes on. Uncommitted code is refused: a run's config.json names its commit.

    Examples:
        python tools/gather.py --show
        python tools/gather.py crossq-long crossq-parts --only 'HalfCheetah.*-s1[0-2]$'

    Args:
        folders: Which folders of results/. None: all that have a grid.
        only: A regular expression that FOLDER/TASK/METHOD-sSEED must match.
        results: Where the grids are, and where the curves go.
        runs: Where the runs are done.
        workers: How many runs at a time. None: one for each core.
        show: Just list what is missing.
    """
    console = Console()
    jobs = missing(results, runs, folders, only)
    if show or not jobs:
        for job in jobs:
            console.print(job.run.name, highlight=False)
        console.print(f"{len(jobs)} runs are missing.", highlight=False)
        return 0
    if provenance()["sources"][belated.__name__].get("dirty", True):
        console.print("Commit first: a run must say of which code it is.")
        return 2
    with Gathering(jobs, results, console) as board:
        try:
            run_locally(jobs, board, workers)
        except KeyboardInterrupt:
            console.print("Stopped; everything is saved. The same command goes on.")
            return 130
    return 1 if board.failures else 0


if __name__ == "__main__":
    sys.exit(tyro.cli(main))
