"""What people see of a sweep while it runs."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from types import TracebackType

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from belated.experiments.execute import Progress
from belated.experiments.grid import PlannedRun

REFRESH_SECONDS = 1.0
"""Drawing takes time that the runs could use, so it is not done more often."""
RATE_SECONDS = 30.0
"""Speeds are measured over the last so many seconds."""
ROWS = 12


@dataclass
class _Seen:
    """What is known of a run."""

    state: str = "waiting"
    steps: int = 0
    outcome: float | None = None
    rate: float | None = None

    def __post_init__(self) -> None:
        self.marks: deque[tuple[float, int]] = deque()  # (time, steps)


class Board:
    """A live table of runs; where the output is no terminal, a line for each event.

    Args:
        runs: all runs of the sweep.
        done: how many of them were finished before.
        console: where to show it.
    """

    def __init__(self, runs: Sequence[PlannedRun], done: int, console: Console) -> None:
        self.failures: dict[str, str] = {}
        """What went wrong, by the names of the runs that failed for good."""
        self._runs = {run.name: run for run in runs}
        self._seen = {run.name: _Seen() for run in runs}
        self._done = done
        self._console = console
        self._drawn = 0.0
        self._live: Live | None = None

    def __enter__(self) -> Board:
        if self._console.is_terminal and self._runs:
            self._live = Live(console=self._console, auto_refresh=False, transient=True)
            self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._live is not None:
            self._live.stop()

    def started(self, run: PlannedRun) -> None:
        """A run has been started, or started again."""
        seen = self._seen[run.name]
        seen.state, seen.rate = "running", None
        seen.marks.clear()

    def progress(self, run: PlannedRun, progress: Progress) -> None:
        """A run says how far it is."""
        seen, now = self._seen[run.name], time.monotonic()
        seen.steps, seen.outcome = progress
        seen.marks.append((now, progress.steps))
        while now - seen.marks[0][0] > RATE_SECONDS:
            seen.marks.popleft()
        (first, steps), (last, later) = seen.marks[0], seen.marks[-1]
        if last > first:
            seen.rate = (later - steps) / (last - first)
        self.refresh()

    def finished(self, run: PlannedRun) -> None:
        """A run is done."""
        seen = self._seen[run.name]
        seen.state = "finished"
        self._say(f"✓ {run.name}{_outcome(seen)}")

    def crashed(self, run: PlannedRun, error: str, again: bool) -> None:
        """A run broke down; ``again`` says whether it is tried once more."""
        seen = self._seen[run.name]
        seen.state = "waiting" if again else "failed"
        if not again:
            self.failures[run.name] = error
        self._say(
            f"✗ {run.name}: {error}" + (" (once more, from its last checkpoint)" if again else "")
        )

    def _say(self, line: str) -> None:
        self._console.print(Text(line), soft_wrap=True)
        self.refresh()

    def refresh(self) -> None:
        """Draw the table, if it is time."""
        now = time.monotonic()
        if self._live is not None and now - self._drawn >= REFRESH_SECONDS:
            self._drawn = now
            self._live.update(self._render(), refresh=True)

    def _render(self) -> RenderableType:
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
        for column in ("run", "", "steps", "return", "steps/s", "left"):
            table.add_column(column, justify="left" if column in ("run", "") else "right")
        running = [name for name, seen in self._seen.items() if seen.state == "running"]
        for name in running[:ROWS]:
            seen, total = self._seen[name], self._runs[name].settings.total_steps
            left = (total - seen.steps) / seen.rate if seen.rate else None
            table.add_row(
                name,
                ProgressBar(total=total, completed=seen.steps, width=20),
                f"{seen.steps:,}",
                "" if seen.outcome is None else f"{seen.outcome:,.1f}",
                f"{seen.rate:,.0f}" if seen.rate else "",
                duration(left),
            )
        return Group(table, Text(self._summary(len(running))))

    def _summary(self, running: int) -> str:
        states = [seen.state for seen in self._seen.values()]
        parts = [
            f"{self._done + states.count('finished')} of {self._done + len(states)} runs done",
            f"{running} running" + (f" ({running - ROWS} not shown)" if running > ROWS else ""),
            f"{states.count('waiting')} waiting",
        ]
        if self.failures:
            parts.append(f"{len(self.failures)} failed")
        left = self._time_left(running)
        return ", ".join(parts) + (f"; about {duration(left)} left" if left else "")

    def _time_left(self, running: int) -> float | None:
        """All that is left to do, at the speeds seen so far, shared by those that run now."""
        rates: dict[str, list[float]] = {}
        for name, seen in self._seen.items():
            if seen.rate:
                rates.setdefault(self._runs[name].settings.method, []).append(seen.rate)
        if not rates or not running:
            return None
        usual = fmean(rate for own in rates.values() for rate in own)
        seconds = 0.0
        for name, seen in self._seen.items():
            settings = self._runs[name].settings
            if seen.state in ("running", "waiting"):
                rate = fmean(rates.get(settings.method, [usual]))
                seconds += (settings.total_steps - seen.steps) / rate
        return seconds / running


def _outcome(seen: _Seen) -> str:
    return "" if seen.outcome is None else f": return {seen.outcome:,.1f}"


def duration(seconds: float | None) -> str:
    """A length of time in words.

    >>> duration(59.2), duration(3_700), duration(200_000)
    ('59 s', '1 h 1 min', '2 d 7 h')
    """
    if seconds is None:
        return ""
    minutes, hours = int(seconds / 60), int(seconds / 3600)
    if minutes < 1:
        return f"{seconds:.0f} s"
    if hours < 1:
        return f"{minutes} min"
    if hours < 48:
        return f"{hours} h {minutes % 60} min"
    return f"{hours // 24} d {hours % 24} h"
