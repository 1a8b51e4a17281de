"""What can happen while an agent learns."""

from __future__ import annotations

import contextlib
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
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

from belated.parts import to_json
from belated.ranges import positive, positive_int
from belated.training.interrupt import Interrupted
from belated.training.lock import locked
from belated.training.logging import CSVWriter, TensorBoardWriter, WandbWriter, Writer, has_rows

if TYPE_CHECKING:
    from belated.training.agent import Agent


class Callback:
    """Override what you need. Learning stops when `on_step` returns False."""

    def check(self, agent: Agent) -> None:
        """Raise now if anything would go wrong later; nothing has been written yet."""

    def on_start(self, agent: Agent) -> None:
        """Learning begins, or goes on."""

    def on_step(self, agent: Agent) -> bool | None:
        """The agent has taken a step in each environment and learned from it."""

    def on_goal(self, agent: Agent) -> None:
        """All steps were taken, or a callback stopped learning."""

    def on_end(self, agent: Agent) -> None:
        """Learning is over for now, also after Ctrl-C or an error."""


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
        what = f"The number of steps between two calls of {type(self).__name__}"
        self.every = positive_int(every, what)
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
        at_end: whether to evaluate at the end too.
    """

    def __init__(
        self, every: int = 5_000, episodes: int = 10, env: Any = None, at_end: bool = False
    ) -> None:
        super().__init__(every)
        self.episodes = positive_int(episodes, "The number of episodes of an evaluation")
        self.env = env
        self.at_end = at_end

    def check(self, agent: Agent) -> None:
        """Make the environment now, if it has to be made."""
        if self.env is not None and self.env is agent.env:
            raise ValueError(
                "An evaluation would disturb the episode that is being learned from: give it "
                "another environment than the agent's."
            )
        agent.evaluation_env(self.env)

    def on_goal(self, agent: Agent) -> None:
        """Evaluate once more, if that is asked for and there was no evaluation just now."""
        last = agent.evaluations[-1]["step"] if agent.evaluations else 0
        if self.at_end and last < agent.steps:
            self.act(agent)

    def act(self, agent: Agent) -> None:
        """Evaluate and log."""
        started = time.monotonic()
        try:
            with agent.interrupt.at_once():
                summary = agent.evaluate(self.episodes, env=self.env).summary()
        except Interrupted:
            agent.interrupt.left_evaluation = True  # it is made up for when the run goes on
            return
        agent.log(summary, not_learning=time.monotonic() - started)

    def make_up(self, agent: Agent) -> None:
        """Evaluate now if the last evaluation was left in the middle."""
        due = agent.steps - agent.steps % self.every
        last = agent.evaluations[-1]["step"] if agent.evaluations else 0
        if last < due:
            self.act(agent)


class Log(Every):
    """Logs how training goes, without an evaluation."""

    def act(self, agent: Agent) -> None:
        """Log, unless something was logged at this step already, or will be."""
        logged = agent.history and agent.history[-1]["step"] >= agent.steps
        if not logged and not agent.interrupt.left_evaluation:
            agent.log({})


class Checkpoint(Every):
    """Saves everything that learning needs to go on: every so often, at the end, after an error.

    Args:
        folder: where to.
        every: how many steps lie between two checkpoints.
        minutes: how many minutes lie between two checkpoints at most.
    """

    def __init__(self, folder: str | Path, every: int, minutes: float = 5.0) -> None:
        super().__init__(every)
        self.folder = Path(folder)
        self.seconds = 60 * positive(minutes, "The minutes between two checkpoints")

    def on_start(self, agent: Agent) -> None:
        """Start the clock."""
        super().on_start(agent)
        self._due = time.monotonic() + self.seconds

    def on_step(self, agent: Agent) -> bool | None:
        """Save if it is time."""
        super().on_step(agent)
        if time.monotonic() >= self._due:
            self.act(agent)
        return None

    def act(self, agent: Agent) -> None:
        """Save."""
        agent.save(self.folder, replay=True)
        self._due = time.monotonic() + self.seconds

    def on_end(self, agent: Agent) -> None:
        """Save once more, unless learning itself has failed: that cannot be gone on with."""
        if not agent.loop.in_update and agent.learner.is_finite():
            self.act(agent)


class StopWhen(Callback):
    """Stops learning as soon as a condition holds.

    Example:
        >>> stop = StopWhen(lambda agent: agent.evaluations and
        ...                 agent.evaluations[-1]["return_mean"] > 3_000)
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
        self._seen, self._outcome = 0, ""  # rows of the history that were looked at
        self._task = self._progress.add_task(
            self.label, total=self.total, completed=agent.steps, outcome=""
        )
        self._progress.start()

    def on_step(self, agent: Agent) -> bool | None:
        """Move the bar."""
        if len(agent.history) > self._seen:
            self._seen = len(agent.history)
            self._outcome = "".join(
                f"return {r['return_mean']:,.1f}" for r in agent.evaluations[-1:]
            )
        self._progress.update(self._task, completed=agent.steps, outcome=self._outcome)
        return None

    def on_end(self, agent: Agent) -> None:
        """Leave the bar as it is."""
        self._progress.stop()


@dataclass(frozen=True)
class RunFolder:
    """What is written to a run folder, and how often."""

    path: Path
    evaluation: Evaluate
    log_every: int
    checkpoint_every: int
    checkpoint_minutes: float
    tensorboard: bool
    wandb: bool

    def callbacks(self, others: list[Callback]) -> list[Callback]:
        """Evaluate, then let others look at it, then log and save what came of it all."""
        saving = Checkpoint(
            self.path / "checkpoint", self.checkpoint_every, self.checkpoint_minutes
        )
        return [self.evaluation, *others, Log(self.log_every), saving]

    def is_run_of(self, agent: Agent) -> bool:
        """Whether the folder holds an earlier part of the agent's run."""
        return agent.folder == self.path.resolve()

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other processes out of the folder.

        Raises:
            ValueError: if another one is writing to it.
        """
        with contextlib.ExitStack() as stack:
            try:
                stack.enter_context(locked(self.path / "run", wait=False))
            except BlockingIOError:
                raise ValueError(f"Another process is writing to {self.path}.") from None
            yield

    def writers(self, agent: Agent) -> list[Writer]:
        """Open the files.

        Raises:
            ValueError: if the folder holds another run.
        """
        progress = self.path / "progress.csv"
        if not self.is_run_of(agent) and has_rows(progress):
            raise ValueError(f"{self.path} holds another run already; choose another folder.")
        self.path.mkdir(parents=True, exist_ok=True)
        writers: list[Writer] = []
        if self.wandb:  # first: it is the one that may fail
            writers.append(WandbWriter(self.path, to_json(agent.method)))
        if self.tensorboard:
            writers.append(TensorBoardWriter(self.path / "tensorboard"))
        agent.folder = self.path.resolve()
        return [*writers, CSVWriter(progress, agent.history)]


def all_callbacks(
    callback: CallbackLike | Sequence[CallbackLike] | None,
    folder: RunFolder | None,
    goal: int | None,
) -> list[Callback]:
    """The user's callbacks, those of a run folder, and a progress bar up to a goal."""
    callbacks = as_callbacks(callback)
    if folder is not None:
        callbacks = folder.callbacks(callbacks)
    return callbacks if goal is None else [*callbacks, ProgressBar(goal)]


def as_callbacks(callback: CallbackLike | Sequence[CallbackLike] | None) -> list[Callback]:
    """Make a list of callbacks of whatever a user passed."""
    if callback is None:
        return []
    if isinstance(callback, Callback):
        return [callback]
    if isinstance(callback, Sequence):
        return [one for each in callback for one in as_callbacks(each)]
    return [UserFunction(callback)]
