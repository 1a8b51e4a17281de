"""A process that does one run: pinned to a core, with one thread, and never outliving its owner.

It gets a line of JSON on its standard input, which stays open; when it is closed, because the owner
wants so or is dead, the run saves and stops. What it reports goes to a pipe, line by line.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO, Any

from belated.experiments.execute import Progress, execute
from belated.experiments.grid import PlannedRun
from belated.training.run import RunSettings

_BOOTSTRAP = """
import json, os, sys
core, sending, path = map(json.loads, sys.argv[1:])
if core is not None and hasattr(os, "sched_setaffinity"):
    os.sched_setaffinity(0, [core])
sys.path += [entry for entry in path if entry not in sys.path]
from belated.experiments.worker import main
sys.exit(main(sending))
"""
# A core is chosen before JAX and NumPy are imported: they count the cores that they may use.

_ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NPROC"), "1"
)
LOG = "worker.log"
_PATIENCE = 120.0
"""How many seconds a worker has to save and stop before it is ended."""


@dataclass
class Job:
    """A run to do.

    Attributes:
        run: the run.
        folder: its run folder.
        keep_replay: whether to keep the replay when it is finished.
        path: where to look for modules.
        attempts: how often it was started in vain.
    """

    run: PlannedRun
    folder: Path
    keep_replay: bool = False
    path: list[str] = field(default_factory=lambda: list(sys.path))
    attempts: int = 0


class Worker:
    """The owner's side of a process that does one run.

    Args:
        job: what to run; ``worker.log`` in its folder holds what the process prints.
        core: which core to pin it to; None for any.
    """

    def __init__(self, job: Job, core: int | None) -> None:
        self.core = core
        job.folder.mkdir(parents=True, exist_ok=True)
        receiving, sending = os.pipe()
        os.set_blocking(receiving, False)
        self.reports = receiving
        self._rest = b""
        arguments = map(json.dumps, (core, sending, job.path))
        with (job.folder / LOG).open("a") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-c", _BOOTSTRAP, *arguments],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                pass_fds=[sending],
                env=os.environ | _ONE_THREAD,
                start_new_session=True,  # Ctrl-C is for the owner, who tells its workers
            )
        os.close(sending)
        order = {
            "settings": asdict(job.run.settings),
            "folder": str(job.folder.resolve()),
            "keep_replay": job.keep_replay,
        }
        assert self._process.stdin is not None
        self._stdin: IO[bytes] = self._process.stdin
        with contextlib.suppress(BrokenPipeError):  # if it died at once, `poll` will tell
            self._stdin.write(json.dumps(order).encode() + b"\n")
            self._stdin.flush()

    def read(self) -> Iterator[Progress]:
        """What was reported since the last call."""
        try:
            while chunk := os.read(self.reports, 65536):
                self._rest += chunk
        except BlockingIOError:
            pass
        *lines, self._rest = self._rest.split(b"\n")
        for line in lines:
            yield Progress(*json.loads(line))

    def poll(self) -> int | None:
        """The process's exit code, None while it runs."""
        return self._process.poll()

    def stop(self) -> None:
        """Ask it to save and stop."""
        with contextlib.suppress(BrokenPipeError):
            self._stdin.close()

    def close(self) -> None:
        """Wait until it is gone; end it if it does not go."""
        self.stop()
        try:
            self._process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            self.kill()
        os.close(self.reports)

    def kill(self) -> None:
        """End it at once."""
        self._process.kill()
        self._process.wait()


def wait_for_reports(workers: Iterable[Worker]) -> None:
    """Wait a second, or until one of them has something to say."""
    select.select([worker.reports for worker in workers], [], [], 1.0)


def main(sending: int) -> int:
    """The process's side: do the run and return the exit code."""
    # Its owner may be deaf to Ctrl-C: jobs in the background of a script are, and Ray's workers.
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT, signal.SIGTERM})
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    order: dict[str, Any] = json.loads(sys.stdin.buffer.readline())
    threading.Thread(target=_stop_with_the_owner, daemon=True).start()

    def report(progress: Progress) -> None:
        # If the owner is dead, the other thread has seen it, too.
        with contextlib.suppress(BrokenPipeError):
            os.write(sending, json.dumps(progress).encode() + b"\n")

    try:
        settings = RunSettings(**order["settings"])
        execute(settings, Path(order["folder"]), report, order["keep_replay"])
    except KeyboardInterrupt:
        return 130
    except Exception:
        traceback.print_exc()
        return 1
    return 0


def _stop_with_the_owner() -> None:
    """Wait for the end of the standard input, then have the main thread save and stop."""
    while os.read(0, 1):  # (past Python's own lock on it, which would be held at the exit)
        pass
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(_PATIENCE)
    os._exit(1)
