"""A sweep: a grid of runs in a folder, done wherever there is room, and summarised at the end."""

from __future__ import annotations

import contextlib
import dataclasses
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from rich.console import Console

from belated.analysis.runs import Run, find_runs
from belated.analysis.summary import Summary, summarise
from belated.analysis.summary_files import write_summary
from belated.experiments.board import Board
from belated.experiments.execute import is_finished
from belated.experiments.grid import Grid, PlannedRun
from belated.experiments.local import run_here, run_locally
from belated.experiments.worker import Job
from belated.training.lock import locked
from belated.training.persistence import read_json, write_json
from belated.training.provenance import provenance
from belated.training.run import CONFIG, SETTINGS, read_config, read_settings

SWEEP = "sweep.json"
Backend = Literal["local", "here", "ray"]


@dataclass(frozen=True)
class Outcome:
    """What came of a sweep.

    Attributes:
        folder: where it is.
        failures: what went wrong, by the names of the runs that failed.
        summary: what the finished runs say; None if there are none.
    """

    folder: Path
    failures: dict[str, str]
    summary: Summary | None


def sweep(
    grid: Grid,
    out: str | Path,
    *,
    workers: int | None = None,
    on: Backend = "local",
    address: str | None = None,
    mixed: bool = False,
    keep_replay: bool = False,
    console: Console | None = None,
) -> Outcome:
    """Do all runs of a grid that are not finished yet, and summarise them.

    The same call again goes on where the last one stopped. Ctrl-C stops it; nothing is lost.

    Args:
        grid: what to run.
        out: the sweep's folder; runs go to ``out/runs/TASK/METHOD-sSEED``.
        workers: how many runs at a time; by default one for each core.
        on: ``"local"`` for worker processes, ``"here"`` for this process, ``"ray"`` for a cluster.
        address: of a Ray cluster; None for a local one.
        mixed: go on although code, versions or settings are not those of earlier runs.
        keep_replay: keep the replays of finished runs.
        console: where to show progress.

    Raises:
        ValueError: if the grid is of no use, another sweep is at work in the folder, or what is
            there is not comparable with what would be added.
    """
    folder, console = Path(out), console or Console()
    grid.check()
    with _alone(folder):
        planned = grid.runs()
        for note in _changes(folder, grid, planned, mixed):
            console.print(note, highlight=False)
        jobs = [
            Job(run, folder / "runs" / run.place, keep_replay)
            for run in planned
            if not is_finished(folder / "runs" / run.place, run.settings.total_steps)
        ]
        if not jobs:
            console.print(f"All {len(planned)} runs in {folder} are finished.", highlight=False)
        with Board([job.run for job in jobs], len(planned) - len(jobs), console) as board:
            _run(jobs, board, on, workers, address)
        finished = _finished(folder, planned)
        summary = None
        if finished:
            done = {run.folder for run in finished}
            missing = [run.name for run in planned if folder / "runs" / run.place not in done]
            notes = [f"Not finished, and left out: {', '.join(missing)}."] if missing else []
            pair, column = grid.comparison, grid.metric
            summary = summarise(finished, pair, column=column, mixed=mixed, notes=notes)
            write_summary(summary, folder)
        return Outcome(folder, board.failures, summary)


def _run(
    jobs: list[Job], board: Board, on: Backend, workers: int | None, address: str | None
) -> None:
    if on == "here":
        run_here(jobs, board)
    elif on == "local":
        run_locally(jobs, board, workers)
    elif on == "ray":
        from belated.experiments.on_ray import run_on_ray

        run_on_ray(jobs, board, address)
    else:
        raise ValueError(f"A sweep runs on local, here or ray, not on {on!r}.")


@contextlib.contextmanager
def _alone(folder: Path) -> Iterator[None]:
    folder.mkdir(parents=True, exist_ok=True)
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(locked(folder / "sweep", wait=False))
        except BlockingIOError:
            raise ValueError(
                f"Another sweep is at work in {folder}. Wait for it, or choose another folder."
            ) from None
        yield


def _changes(folder: Path, grid: Grid, planned: list[PlannedRun], mixed: bool) -> list[str]:
    """Note this start and compare it with the last one; what changed, in sentences.

    Raises:
        ValueError: if a run that is there has other settings, or comes from other code or versions
            and ``mixed`` is False.
    """
    modules = {name.partition(":")[0] for run in planned for name in run.settings.imports()}
    now = {"grid": dataclasses.asdict(grid), "provenance": provenance(modules)}
    now = json.loads(json.dumps(now))  # as it reads in the file
    for run in planned:
        _require_same(folder / "runs" / run.place, run, now["provenance"], mixed)
    file = folder / SWEEP
    before = read_json(file) if file.is_file() else now
    write_json(file, now)
    return [
        f"Since the last start {what} changed."
        for what, part in (
            *((f"the grid's {name}", ("grid", name)) for name in now["grid"]),
            ("the code", ("provenance", "sources")),
            ("the versions of packages", ("provenance", "versions")),
            ("the CPU", ("provenance", "cpu")),
        )
        if _at(before, part) != _at(now, part)
    ]


def _at(document: dict[str, Any], part: tuple[str, str]) -> Any:
    return document.get(part[0], {}).get(part[1])


def _require_same(folder: Path, run: PlannedRun, now: dict[str, Any], mixed: bool) -> None:
    """Refuse to go on with a run that is another one than the one that is asked for."""
    if not (folder / CONFIG).is_file():
        return
    saved = read_settings(folder)
    names = [n for n in SETTINGS if getattr(saved, n) != getattr(run.settings, n)]
    if names:
        was, wanted = ({n: getattr(each, n) for n in names} for each in (saved, run.settings))
        raise ValueError(
            f"{folder} holds another run than the grid asks for: it has {was}, the grid {wanted}. "
            "Choose another folder, or give one of them a name of its own."
        )
    was = read_config(folder).get("provenance", {})
    for part in ("sources", "versions"):
        then = was.get(part, {})
        different = [name for name in then if name in now[part] and then[name] != now[part][name]]
        if different and not mixed:
            name = different[0]
            raise ValueError(
                f"{folder} was made by other code: {name} was {then[name]}, now it is "
                f"{now[part][name]}. Choose another folder, or add --mixed to go on and have the "
                "report say so."
            )


def _finished(folder: Path, planned: list[PlannedRun]) -> list[Run]:
    """The runs of the grid that are finished, with their curves."""
    done = [
        folder / "runs" / run.place
        for run in planned
        if is_finished(folder / "runs" / run.place, run.settings.total_steps)
    ]
    return find_runs(done) if done else []
