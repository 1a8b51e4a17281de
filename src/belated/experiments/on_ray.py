"""Runs on a Ray cluster: one task for each run, started again where a worker or a node dies.

A task starts the same worker process as on one machine, so its numbers are the same. Where the
cluster's nodes share the sweep's folder, runs are done in it and go on from their checkpoints after
a node's death; elsewhere a run is done in a temporary folder and sent back when it is finished.
"""

from __future__ import annotations

import socket
import tempfile
import uuid
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from belated.experiments.board import Board
from belated.experiments.execute import STATUS, Progress, is_finished
from belated.experiments.local import ATTEMPTS, what_happened
from belated.experiments.worker import Job, Worker, wait_for_reports

NODE_DEATHS = 10
"""How often a run is started again because its node or Ray's own process died."""
_WAIT = 1.0  # seconds between two looks at the cluster
_PATIENCE = 120.0  # seconds that tasks have to save and stop

Files = dict[str, bytes]
Tell = Callable[[Progress | None], None]


def run_on_ray(jobs: Sequence[Job], board: Board, address: str | None = None) -> None:
    """Do the runs as Ray tasks.

    Args:
        jobs: the runs.
        board: where their progress is shown.
        address: of the cluster; None for a local one.

    Raises:
        ValueError: if Ray is not installed, or the cluster cannot be reached.
    """
    try:
        import ray
        import ray.util.scheduling_strategies
    except ImportError as error:
        raise ValueError("Ray is not installed: pip install 'belated[ray]'.") from error
    if not jobs:
        return
    try:
        _knock(address)
        ray.init(address=address, include_dashboard=False, log_to_driver=False)
    except OSError as error:
        raise ValueError(f"There is no Ray cluster at {address}: {error}.") from error
    try:
        _gather(ray, jobs, board)
    finally:
        ray.shutdown()


def _knock(address: str | None) -> None:
    """See whether anybody is there: Ray itself would wait for minutes."""
    host, colon, port = (address or "").removeprefix("ray://").rpartition(":")
    if colon and port.isdigit():
        socket.create_connection((host, int(port)), timeout=10).close()


def _gather(ray: Any, jobs: Sequence[Job], board: Board) -> None:
    """Start all tasks and take in their results as they come."""
    jobs = [replace(job, folder=job.folder.resolve()) for job in jobs]
    token = jobs[0].folder.parent / f".shared-{uuid.uuid4().hex}"
    token.parent.mkdir(parents=True, exist_ok=True)
    token.touch()
    here = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(
        ray.get_runtime_context().get_node_id(), soft=False
    )  # (on another node it could die with it)
    noticeboard = ray.remote(num_cpus=0, scheduling_strategy=here)(Noticeboard).remote()
    # One process for each run: nothing that a run leaves behind in it reaches the next one.
    task = ray.remote(num_cpus=1, max_calls=1, max_retries=NODE_DEATHS)(_do)
    waiting = {task.remote(job, number, token, noticeboard): job for number, job in enumerate(jobs)}
    try:
        while waiting:
            done, _ = ray.wait(list(waiting), timeout=_WAIT)
            for number, progress in ray.get(noticeboard.read.remote()):
                if progress is None:
                    board.started(jobs[number].run)
                else:
                    board.progress(jobs[number].run, progress)
            for reference in done:
                _settle(ray, reference, waiting.pop(reference), board)
            board.refresh()
    finally:
        for reference in waiting:
            ray.cancel(reference)  # interrupts the task, which has its worker save and stop
        if waiting:
            ray.wait(list(waiting), num_returns=len(waiting), timeout=_PATIENCE)
        token.unlink(missing_ok=True)


def _settle(ray: Any, reference: Any, job: Job, board: Board) -> None:
    try:
        error, files = ray.get(reference)
    except ray.exceptions.RayError as failure:
        board.crashed(job.run, str(failure).strip().splitlines()[-1], again=False)
        return
    for name, content in sorted(files.items(), key=lambda file: file[0] == STATUS):
        path = job.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    if error is None:
        board.finished(job.run)
    else:
        board.crashed(job.run, error, again=False)


class Noticeboard:
    """Where tasks say how far they are: None when they start."""

    def __init__(self) -> None:
        self._notes: list[tuple[int, Progress | None]] = []

    def tell(self, number: int, progress: Progress | None) -> None:
        """Put up a note about a run."""
        self._notes.append((number, progress))

    def read(self) -> list[tuple[int, Progress | None]]:
        """Take down all notes."""
        notes, self._notes = self._notes, []
        return notes


def _do(job: Job, number: int, token: Path, noticeboard: Any) -> tuple[str | None, Files]:
    """A task: do one run; return what went wrong, if anything, and the files to send back.

    Args:
        job: the run.
        number: which one it is.
        token: a file that only those see who share the sweep's folder.
        noticeboard: where to say how far it is.
    """

    def tell(progress: Progress | None) -> None:
        noticeboard.tell.remote(number, progress)

    return (attempt(job, tell), {}) if token.exists() else attempt_elsewhere(job, tell)


def attempt_elsewhere(job: Job, tell: Tell) -> tuple[str | None, Files]:
    """Do a run in a temporary folder; return what went wrong, if anything, and its files."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / job.folder.name
        error = attempt(replace(job, folder=folder), tell)
        paths = [path for path in folder.rglob("*") if path.is_file()]
        return error, {str(path.relative_to(folder)): path.read_bytes() for path in paths}


def attempt(job: Job, tell: Tell) -> str | None:
    """Start worker processes for a run until one succeeds; what went wrong if none does."""
    error = None
    for _ in range(ATTEMPTS):
        tell(None)
        worker = Worker(job, core=None)
        try:
            while (code := worker.poll()) is None:
                wait_for_reports([worker])
                for progress in worker.read():
                    tell(progress)
        finally:
            worker.close()
        if is_finished(job.folder, job.run.settings.total_steps):
            return None
        error = what_happened(job.folder, code)
    return error
