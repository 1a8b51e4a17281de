"""Runs on this machine: in worker processes, one for each core, or one after another right here."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from pathlib import Path

from belated.experiments.board import Board
from belated.experiments.execute import Progress, execute, is_finished, read_status
from belated.experiments.grid import PlannedRun
from belated.experiments.worker import LOG, Job, Worker, wait_for_reports
from belated.ranges import positive_int
from belated.training.provenance import cores

ATTEMPTS = 2
"""A run that crashes goes on from its checkpoint once; after that it counts as failed."""


def run_here(jobs: Sequence[Job], board: Board) -> None:
    """Do the runs one after another in this process: for small ones, and for debuggers."""
    for job in jobs:
        for attempt in range(1, ATTEMPTS + 1):
            board.started(job.run)

            def report(progress: Progress, run: PlannedRun = job.run) -> None:
                board.progress(run, progress)

            try:
                execute(job.run.settings, job.folder, report, job.keep_replay)
            except Exception as error:
                board.crashed(job.run, f"{type(error).__name__}: {error}", attempt < ATTEMPTS)
            else:
                board.finished(job.run)
                break


def run_locally(jobs: Sequence[Job], board: Board, workers: int | None = None) -> None:
    """Do the runs in worker processes, each pinned to a core.

    Ctrl-C stops all of them after saving.

    Args:
        jobs: the runs.
        board: where their progress is shown.
        workers: how many at a time; by default one for each core.
    """
    available = cores()
    count = len(available) if workers is None else positive_int(workers, "The number of workers")
    waiting = deque(jobs)
    free = deque(available[slot % len(available)] for slot in range(count))
    busy: list[tuple[Worker, Job]] = []
    try:
        while waiting or busy:
            while waiting and free:
                job = waiting.popleft()
                board.started(job.run)
                busy.append((Worker(job, free.popleft()), job))
            wait_for_reports(worker for worker, _ in busy)
            for worker, job in list(busy):
                code = worker.poll()
                for progress in worker.read():
                    board.progress(job.run, progress)
                if code is not None:
                    busy.remove((worker, job))
                    worker.close()
                    assert worker.core is not None
                    free.append(worker.core)
                    if not _settled(job, code, board):
                        waiting.appendleft(job)
            board.refresh()
    finally:
        for worker, _ in busy:
            worker.stop()
        for worker, _ in busy:
            worker.close()


def _settled(job: Job, code: int, board: Board) -> bool:
    """Whether a run whose worker is gone is done with, for better or worse."""
    if is_finished(job.folder, job.run.settings.total_steps):
        board.finished(job.run)
        return True
    job.attempts += 1
    again = job.attempts < ATTEMPTS
    board.crashed(job.run, what_happened(job.folder, code), again)
    return not again


def what_happened(folder: Path, code: int) -> str:
    """Say why a worker stopped."""
    status = read_status(folder)
    if code < 0:
        return f"killed by signal {-code}"
    error = status.error if status is not None and status.state == "failed" else ""
    return error or f"exit code {code}; see {folder / LOG}"
