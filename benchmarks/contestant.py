"""A process on a core of its own that learns when it is told to, and says how fast it was."""

from __future__ import annotations

import multiprocessing
import os
import re
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

Learn = Callable[[int], Any]
"""Learns for some more steps."""
Figures = dict[str, Any]
Make = Callable[[str], tuple[Learn, Callable[[], Figures]]]
"""From a name to a learner, and to what there is to say of it at the end."""

WARM_UP = 700
CHUNK = 20  # steps between two looks at the clock


class Contestant:
    """The process.

    Args:
        name: what is to be made.
        core: where it runs.
        make: makes it, in the process.
    """

    def __init__(self, name: str, core: int, make: Make) -> None:
        self.name = name
        context = multiprocessing.get_context("spawn")
        self._end, other = context.Pipe()
        arguments = (name, core, make, other)
        self._process = context.Process(target=_compete, args=arguments, daemon=True)
        self._process.start()
        other.close()  # so that the end of the process ends the waiting for it

    def wait_until_ready(self) -> None:
        """Wait until everything is compiled."""
        try:
            self._end.recv()
        except EOFError:
            message = f"{self.name} could not start: is the bench extra installed?"
            raise SystemExit(message) from None

    def go(self, seconds: float) -> None:
        """Let it learn for a while."""
        self._end.send(seconds)

    def result(self) -> Figures:
        """Its speed and the most memory it ever had, when the while is over."""
        figures: Figures = self._end.recv()
        return figures

    def finish(self) -> Figures:
        """End the process and return what there is to say of it."""
        self._end.send(None)
        figures = self.result()
        self._process.join()  # its end takes time on the same core
        return figures


def _compete(name: str, core: int, make: Make, connection: Connection) -> None:
    os.sched_setaffinity(0, {core})
    learn, figures = make(name)
    learn(WARM_UP)
    connection.send("ready")
    while (seconds := connection.recv()) is not None:
        speed = _steps_per_second(learn, seconds)
        connection.send({"steps_per_second": speed, "peak_megabytes": _peak_megabytes()})
    connection.send(figures())


def _steps_per_second(learn: Learn, seconds: float) -> float:
    start, steps = time.perf_counter(), 0
    while time.perf_counter() - start < seconds:
        learn(CHUNK)
        steps += CHUNK
    return steps / (time.perf_counter() - start)


def _peak_megabytes() -> float:
    """The most memory that this process ever had; `resource` would count its parent's in."""
    (line,) = re.findall(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    return int(line) / 1024
