"""What can happen while an agent learns."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

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

from belated.envs.lengths import positive_int

if TYPE_CHECKING:
    from belated.training.agent import Agent


class Callback:
    """Override what you need. Learning stops when `on_step` returns False."""

    def on_start(self, agent: Agent) -> None:
        """Learning begins, or goes on."""

    def on_step(self, agent: Agent) -> bool | None:
        """The agent has taken a step in each environment and learned from it."""

    def on_end(self, agent: Agent) -> None:
        """Learning is over for now, also after Ctrl-C."""


CallbackLike = Callback | Callable[["Agent"], bool | None]


class UserFunction(Callback):
    """Calls a function of the agent after every step."""

    def __init__(self, function: Callable[[Agent], bool | None]) -> None:
        self.function = function

    def on_step(self, agent: Agent) -> bool | None:
        """Call it; False stops learning."""
        return self.function(agent)


class Every(Callback, ABC):
    """Does something every so many steps."""

    def __init__(self, every: int) -> None:
        self.every = positive_int(every, "The number of steps between two times")
        self._last = 0

    def on_start(self, agent: Agent) -> None:
        """Count from the last multiple before now."""
        self._last = agent.steps - agent.steps % self.every

    def on_step(self, agent: Agent) -> bool | None:
        """Act if it is time."""
        if agent.steps - self._last >= self.every:
            self._last = agent.steps - agent.steps % self.every
            self.act(agent)
        return None

    @abstractmethod
    def act(self, agent: Agent) -> None:
        """What is to be done."""


class Evaluate(Every):
    """Evaluates the agent and logs the outcome (see `belated.Agent.log`).

    Args:
        every: how many steps lie between two evaluations.
        episodes: how many episodes an evaluation has.
        env: where to evaluate; by default another environment like the agent's.
    """

    def __init__(self, every: int = 5_000, episodes: int = 10, env: Any = None) -> None:
        super().__init__(every)
        self.episodes = episodes
        self.env = env

    def act(self, agent: Agent) -> None:
        """Evaluate and log."""
        started = time.monotonic()
        summary = agent.evaluate(self.episodes, env=self.env).summary()
        agent.log(summary, not_learning=time.monotonic() - started)


class Checkpoint(Every):
    """Saves everything that learning needs to go on, every so many steps and at the end."""

    def __init__(self, folder: str | Path, every: int) -> None:
        super().__init__(every)
        self.folder = Path(folder)

    def act(self, agent: Agent) -> None:
        """Save."""
        agent.save(self.folder, replay=True)

    def on_end(self, agent: Agent) -> None:
        """Save once more, unless an error came in the middle of a step: that cannot be resumed."""
        if not agent.in_step:
            self.act(agent)


class StopWhen(Callback):
    """Stops learning as soon as a condition holds.

    Example:
        >>> stop = StopWhen(lambda agent: agent.history[-1:] and
        ...                 agent.history[-1]["return_mean"] > 3_000)
    """

    def __init__(self, condition: Callable[[Agent], Any]) -> None:
        self.condition = condition

    def on_step(self, agent: Agent) -> bool | None:
        """Stop if it holds."""
        return not self.condition(agent)


class _StepsPerSecond(ProgressColumn):
    def render(self, task: Task) -> Text:
        return Text(f"{task.speed:,.0f} steps/s" if task.speed else "")


class ProgressBar(Callback):
    """Shows steps, steps per second, the last return and the time left."""

    def __init__(self, total: int, label: str = "") -> None:
        self.total = total
        self.label = label

    def on_start(self, agent: Agent) -> None:
        """Show the bar."""
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
        self._task = self._progress.add_task(
            self.label, total=self.total, completed=agent.steps, outcome=""
        )
        self._progress.start()

    def on_step(self, agent: Agent) -> bool | None:
        """Move the bar."""
        returns = [row["return_mean"] for row in agent.history[-1:] if "return_mean" in row]
        outcome = f"return {returns[0]:,.1f}" if returns else ""
        self._progress.update(self._task, completed=agent.steps, outcome=outcome)
        return None

    def on_end(self, agent: Agent) -> None:
        """Leave the bar as it is."""
        self._progress.stop()


def as_callbacks(callback: CallbackLike | Sequence[CallbackLike] | None) -> list[Callback]:
    """Make a list of callbacks of whatever a user passed."""
    if callback is None:
        return []
    if isinstance(callback, Callback):
        return [callback]
    if isinstance(callback, Sequence):
        return [one for each in callback for one in as_callbacks(each)]
    return [UserFunction(callback)]
