"""One call of `Agent.learn`: callbacks, files and signals around the loop of steps."""

from __future__ import annotations

import contextlib
import itertools
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING

from belated.training import checkpoint
from belated.training.callbacks import Callback
from belated.training.folder import Options, alone_in, is_run_of, writers_of
from belated.training.interrupt import deferred_interrupt
from belated.training.learner import LearningError

if TYPE_CHECKING:
    from belated.training.agent import Agent

CHECK_EVERY = 1_000
"""How many steps lie between two looks at whether all parameters are finite."""


@dataclass(frozen=True)
class Session:
    """Takes steps with an agent until a goal.

    Attributes:
        agent: who learns.
        asked: what the user asks for.
        callbacks: what is called, in this order.
    """

    agent: Agent
    asked: Options
    callbacks: list[Callback]

    def learn(self, goal: int) -> None:
        """Learn until there are so many steps, or until a callback or the user stops it."""
        agent, folder = self.agent, self.asked.out
        for each in self.callbacks:
            each.check(agent)
        with contextlib.ExitStack() as at_the_end:
            if folder is not None:
                at_the_end.enter_context(alone_in(folder))
            at_the_end.callback(agent.journal.close)
            goes_on = folder is not None and is_run_of(agent, folder)
            if folder is not None and agent.saved is not None:
                checkpoint.require_same(folder / "checkpoint", agent.saved)
            agent.journal.open(writers_of(agent, self.asked))
            for each in self.callbacks:
                each.on_start(agent)
                at_the_end.callback(each.on_end, agent)
            agent.loop.start()
            with deferred_interrupt() as agent.interrupt:
                for each in self.callbacks if goes_on else []:
                    each.make_up(agent)
                self._run(goal)
                for each in self.callbacks:
                    if not agent.interrupt.requested:
                        each.on_goal(agent)
        agent.interrupt.leave()

    def _run(self, goal: int) -> None:
        agent, stopped = self.agent, False
        while agent.steps < goal and not stopped and not agent.interrupt.requested:
            agent.steps = self._step()
            if agent.steps - agent.checked >= CHECK_EVERY:
                agent.require_finite()
            answers = [each.on_step(agent) for each in self.callbacks]
            stopped = any(answer is False for answer in answers)

    def _step(self) -> int:
        """Take a step in each environment; return how many steps there are now."""
        agent = self.agent
        for failures in itertools.count(1):
            try:
                if failures > 1:
                    agent.env_errors += 1
                    agent.loop.rebuild()
                return agent.loop.step(agent.steps)
            except Exception as error:
                broken = agent.loop.env_failed and not isinstance(error, LearningError)
                if self.asked.on_env_error == "stop" or not broken or failures == 3:
                    raise
                notes = "\n".join([str(error), *getattr(error, "__notes__", ())])
                warnings.warn(f"An environment failed and is made anew: {notes}", stacklevel=2)
        raise AssertionError
