"""What can happen while an agent learns."""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from belated.ranges import positive, positive_int
from belated.training import checkpoint
from belated.training.interrupt import Interrupted

if TYPE_CHECKING:
    from belated.training.agent import Agent


class Callback:
    """Override what you need. Learning stops when `on_step` returns False."""

    def check(self, agent: Agent) -> None:
        """Raise now if anything would go wrong later; nothing has been written yet."""

    def on_start(self, agent: Agent) -> None:
        """Learning begins, or goes on."""

    def make_up(self, agent: Agent) -> None:
        """A run goes on: do what was left in the middle when it was stopped."""

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


class EvaluateAtEnd(Evaluate):
    """Evaluates at the end only, where an `Evaluate` of the user's has not done so."""

    def __init__(self, like: Evaluate) -> None:
        super().__init__(like.every, like.episodes, like.env, at_end=True)

    def on_step(self, agent: Agent) -> bool | None:
        """Wait for the end."""

    def make_up(self, agent: Agent) -> None:
        """There is nothing to make up for."""


class KeepBest(Callback):
    """Keeps the agent of the evaluation in which most reward was revealed.

    It is saved without its replay, for `belated.Agent.load`. Run folders have one, in ``best/``.
    What counts is what was revealed, as that is all there is to know where the reward of each step
    is hidden.

    Args:
        folder: where to; an agent that has learned nothing yet replaces what another one left.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self._seen, self._highest = 0, -math.inf

    def check(self, agent: Agent) -> None:
        """Refuse a folder that holds something else."""
        checkpoint.require_own(self.folder)

    def on_start(self, agent: Agent) -> None:
        """Look at what was kept so far."""
        self._seen, self._highest = len(agent.history), -math.inf
        if agent.steps > 0 and checkpoint.exists(self.folder):
            kept = checkpoint.Reader(checkpoint.find(self.folder)).journal()["rows"]
            told = (_told(row) for row in reversed(kept))  # its own evaluation is the last one
            self._highest = next((value for value in told if value > -math.inf), -math.inf)

    def make_up(self, agent: Agent) -> None:
        """Look at what was made up for."""
        self._look(agent)

    def on_step(self, agent: Agent) -> bool | None:
        """Look at the evaluations since the last step."""
        self._look(agent)
        return None

    def on_goal(self, agent: Agent) -> None:
        """Look at the evaluation at the end."""
        self._look(agent)

    def _look(self, agent: Agent) -> None:
        if len(agent.history) == self._seen:
            return
        told = max(map(_told, agent.history[self._seen :]))
        self._seen = len(agent.history)
        if told > self._highest:
            started = time.monotonic()
            agent.save(self.folder)
            self._highest = told
            agent.journal.leave_out(time.monotonic() - started)


def _told(row: Mapping[str, float]) -> float:
    """How much reward an evaluation revealed; −∞ for other rows."""
    return row.get("revealed_return_mean", -math.inf)


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


def as_callbacks(callback: CallbackLike | Sequence[CallbackLike] | None) -> list[Callback]:
    """Make a list of callbacks of whatever a user passed.

    Raises:
        ValueError: if something else was passed.
    """
    if callback is None:
        return []
    if isinstance(callback, Callback):
        return [callback]
    if isinstance(callback, Sequence) and not isinstance(callback, str):
        return [one for each in callback for one in as_callbacks(each)]
    _refuse_others(callback)
    return [UserFunction(callback)]


def _refuse_others(callback: Any) -> None:
    if isinstance(callback, type):
        raise ValueError(f"callback= takes objects, not classes: {callback.__name__}(...).")
    name = type(callback).__name__
    if hasattr(callback, "_on_step"):
        raise ValueError(
            f"{name} looks like a callback of Stable-Baselines3, which watches that library's "
            "models. Pass a function of the agent that may return False, a belated.Callback with "
            "on_step(agent), or one of belated.Evaluate (for EvalCallback), belated.Checkpoint "
            "(for CheckpointCallback) and belated.StopWhen."
        )
    if not callable(callback):
        raise ValueError(
            f"A callback is a function of the agent, a belated.Callback or a list of them; got "
            f"{callback!r}."
        )
