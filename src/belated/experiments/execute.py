"""One run of a grid, from wherever it stopped to its end."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple

from belated.experiments.peers import is_peer, run_peer
from belated.training import checkpoint
from belated.training.agent import Agent
from belated.training.callbacks import Callback
from belated.training.lock import locked
from belated.training.persistence import read_json, write_json
from belated.training.run import PROGRESS, RunSettings, resumed

REPORT_SECONDS = 1.0
STATUS = "status.json"


class Progress(NamedTuple):
    """How far a run is."""

    steps: int
    outcome: float | None
    """The last evaluation's return."""


Report = Callable[[Progress], None]


@dataclass(frozen=True)
class Status:
    """What status.json says: whether a run of a grid is finished.

    Attributes:
        state: "running" (or killed while it was), "finished" or "failed".
        attempts: how often it was started.
        seconds: how long it took in all, imports, compilation and evaluations included.
        error: what went wrong.
    """

    state: str
    attempts: int = 1
    seconds: float = 0.0
    error: str = ""


def read_status(folder: Path) -> Status | None:
    """Read a run's status, if it has one."""
    if not (folder / STATUS).is_file():
        return None
    return Status(**read_json(folder / STATUS))


def write_status(folder: Path, status: Status) -> None:
    """Write a run's status, whole or not at all."""
    write_json(folder / STATUS, asdict(status))


def is_finished(folder: Path, steps: int) -> bool:
    """Whether a run has come to its end.

    A run without a status, one that was copied from elsewhere, say, is judged by its curve.
    """
    status = read_status(folder)
    if status is not None:
        return status.state == "finished"
    if not (folder / PROGRESS).is_file() or checkpoint.exists(folder):
        return False
    last = (folder / PROGRESS).read_text().rstrip("\n").rpartition("\n")[2].partition(",")[0]
    return last.replace(".", "", 1).isdigit() and float(last) >= steps


def execute(settings: RunSettings, folder: Path, report: Report, keep_replay: bool = False) -> None:
    """Run, or go on from the last checkpoint, until all steps were taken.

    Only one process works in a folder: a second one waits until the first is gone.

    Args:
        settings: what to learn.
        folder: the run folder.
        report: called with how far the run is, about once a second.
        keep_replay: keep the replay when the run is finished; it is what takes most of the space.
    """
    started = time.monotonic()
    with locked(folder):
        if is_finished(folder, settings.total_steps):
            return
        folder.mkdir(parents=True, exist_ok=True)
        before = read_status(folder) or Status("running", attempts=0)
        status = Status("running", before.attempts + 1, before.seconds)
        write_status(folder, status)

        def ended(state: str, error: str = "") -> None:
            seconds = before.seconds + time.monotonic() - started
            write_status(folder, Status(state, status.attempts, seconds, error))

        try:
            _learn(settings, folder, report)
        except KeyboardInterrupt:
            ended("running")
            raise
        except Exception as error:
            ended("failed", f"{type(error).__name__}: {error}")
            raise
        ended("finished")
        if not keep_replay and checkpoint.exists(folder):
            checkpoint.forget_replay(folder)


def _learn(settings: RunSettings, folder: Path, report: Report) -> None:
    if is_peer(settings.method):
        run_peer(settings, folder, lambda steps, outcome: report(Progress(steps, outcome)))
        return
    agent = resumed(settings, folder)
    # A last checkpoint may have come before the last evaluation.
    evaluated = agent.evaluations[-1]["step"] if agent.evaluations else 0
    if evaluated < settings.total_steps:
        settings.learn(agent, folder, callback=[_Reporter(report)])


class _Reporter(Callback):
    """Says how far the run is, but not at every step."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self._next = 0.0

    def on_step(self, agent: Agent) -> bool | None:
        now = time.monotonic()
        if now >= self._next:
            self._next = now + REPORT_SECONDS
            self._tell(agent)
        return None

    def on_end(self, agent: Agent) -> None:
        self._tell(agent)

    def _tell(self, agent: Agent) -> None:
        outcome = agent.evaluations[-1]["return_mean"] if agent.evaluations else None
        self._report(Progress(agent.steps, outcome))
