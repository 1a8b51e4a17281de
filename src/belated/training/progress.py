"""How far learning is: a bar on a terminal, lines elsewhere."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TextColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from belated.training.callbacks import Callback

if TYPE_CHECKING:
    from belated.training.agent import Agent

LINE_SECONDS = 30.0
"""How long nothing is said at most, where there is no terminal and no evaluation."""


class _StepsPerSecond(ProgressColumn):
    def render(self, task: Task) -> Text:
        return Text(f"{task.speed:,.0f} steps/s" if task.speed else "")


class _Bar:
    """A bar that a terminal draws over and over."""

    def __init__(self, agent: Agent, total: int, label: str) -> None:
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=30),
            MofNCompleteColumn(),
            _StepsPerSecond(),
            TextColumn("{task.fields[outcome]}"),
            TimeRemainingColumn(),
            refresh_per_second=4,
            speed_estimate_period=10,
        )
        self._task = self._progress.add_task(label, total=total, completed=agent.steps, outcome="")
        self._progress.start()

    def compiling(self) -> None:
        self._progress.update(self._task, outcome="compiling", refresh=True)

    def move(self, agent: Agent, outcome: str, evaluated: bool) -> None:
        self._progress.update(self._task, completed=agent.steps, outcome=outcome)

    def stop(self, agent: Agent, outcome: str, evaluated: bool) -> None:
        self.move(agent, outcome, evaluated)
        self._progress.stop()


class _Lines:
    """A line at each evaluation, and every so often: for files and pipes."""

    def __init__(self, agent: Agent, total: int, label: str) -> None:
        self._label = label.strip() and f"{label.strip()}: "
        self._total = total
        self._said = time.monotonic()
        self._last = agent.steps, agent.journal.seconds

    def compiling(self) -> None:
        self._say("compiling")

    def move(self, agent: Agent, outcome: str, evaluated: bool) -> None:
        if evaluated or time.monotonic() - self._said >= LINE_SECONDS:
            self._tell(agent, outcome)

    def stop(self, agent: Agent, outcome: str, evaluated: bool) -> None:
        if evaluated or agent.steps > self._last[0]:
            self._tell(agent, outcome)

    def _tell(self, agent: Agent, outcome: str) -> None:
        now = agent.steps, agent.journal.seconds
        taken, seconds = (new - old for new, old in zip(now, self._last, strict=True))
        self._last = now
        speed = f", {taken / seconds:,.0f} steps/s" if taken and seconds > 0 else ""
        self._say(f"{agent.steps:,} of {self._total:,} steps{speed}{outcome and ', '}{outcome}")

    def _say(self, text: str) -> None:
        self._said = time.monotonic()
        print(self._label + text, flush=True)


class ProgressBar(Callback):
    """Shows steps, steps per second, the last return and, on a terminal, the time left.

    Args:
        total: how many steps there will be.
        label: what to write in front of them.
    """

    def __init__(self, total: int, label: str = "") -> None:
        self.total = total
        self.label = label

    def on_start(self, agent: Agent) -> None:
        """Show the bar, or begin with lines."""
        console = Console()
        kind = _Bar if console.is_terminal or console.is_jupyter else _Lines
        self._shown: _Bar | _Lines = kind(agent, self.total, self.label)
        self._rows = len(agent.history)
        self._evaluations = len(agent.evaluations)
        self._outcome = ""
        agent.learner.when_compiling(self._shown.compiling)

    def on_step(self, agent: Agent) -> bool | None:
        """Move the bar, or say how far it is if it is time."""
        evaluated = self._look(agent)
        self._shown.move(agent, self._outcome, evaluated)
        return None

    def _look(self, agent: Agent) -> bool:
        """Whether there is a new evaluation; remember what came of it."""
        if len(agent.history) == self._rows:
            return False
        self._rows, before = len(agent.history), self._evaluations
        self._evaluations = len(agent.evaluations)
        self._outcome = "".join(f"return {r['return_mean']:,.1f}" for r in agent.evaluations[-1:])
        return self._evaluations > before

    def on_end(self, agent: Agent) -> None:
        """Leave the bar as it is, or say how far it came."""
        agent.learner.when_compiling(None)
        evaluated = self._look(agent)
        self._shown.stop(agent, self._outcome, evaluated)
