"""What `Agent.learn` evaluates, logs and saves, and the run folder that it leaves behind."""

from __future__ import annotations

import contextlib
import dataclasses
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gymnasium as gym

from belated.envs.actions import options_of
from belated.envs.delay_reward import DelayReward
from belated.envs.intervals import AnyEnv, find_interval_spec
from belated.envs.layers import layers
from belated.parts import to_json
from belated.ranges import checked, one_of, optional, positive, positive_int
from belated.training import checkpoint
from belated.training.callbacks import (
    Callback,
    Checkpoint,
    Evaluate,
    EvaluateAtEnd,
    KeepBest,
    Log,
)
from belated.training.lock import locked
from belated.training.logging import CSVWriter, TensorBoardWriter, WandbWriter, Writer, has_rows
from belated.training.naming import name_of
from belated.training.recipes import recipe_of, usual_recipe
from belated.training.settings import (
    BEST,
    CONFIG,
    PROGRESS,
    RunSettings,
    WriteConfig,
    read_settings,
)

if TYPE_CHECKING:
    from belated.training.agent import Agent


@dataclass(frozen=True)
class Options:
    """What a user asks of `Agent.learn`; None where nothing was said."""

    out: Path | None
    eval_every: int | None
    eval_episodes: int | None
    eval_env: AnyEnv | None
    log_every: int | None
    checkpoint_every: int | None
    checkpoint_minutes: float | None
    on_env_error: str
    tensorboard: bool
    wandb: bool

    def __post_init__(self) -> None:
        count = optional(positive_int)
        checked(
            self,
            eval_every=count,
            eval_episodes=count,
            log_every=count,
            checkpoint_every=count,
            checkpoint_minutes=optional(positive),
            on_env_error=one_of("stop", "rebuild"),
        )
        needing = ("checkpoint_every", "checkpoint_minutes", "tensorboard", "wandb")
        given = [name for name in needing if getattr(self, name) not in (None, False)]
        if self.out is None and given:
            raise ValueError(f"{', '.join(given)}: that needs a run folder; give out=... too.")

    def callbacks(self, agent: Agent, own: list[Callback], goal: int) -> list[Callback]:
        """Evaluate, then let the user's callbacks look at it, then log and save it all.

        Args:
            agent: who learns.
            own: the user's callbacks.
            goal: how many steps there will be.
        """
        filled = self._filled(agent)
        evaluations = self._evaluations(own, filled)
        log = [Log(filled.log_every)] if self.out or self.log_every else []
        if self.out is None:
            return [*evaluations, *own, *log]
        often = filled.checkpoint_every, filled.checkpoint_minutes
        saving = [KeepBest(self.out / BEST), Checkpoint(self.out / "checkpoint", *often)]
        describing: list[Callback] = []
        if not any(isinstance(each, WriteConfig) for each in own):
            settings = self._settings(agent, filled, evaluations[0], goal)
            describing = [WriteConfig(self.out, settings)]
        return [*evaluations, *describing, *own, *log, *saving]

    def _filled(self, agent: Agent) -> RunSettings:
        """What is asked for; where nothing was said, what the run had before, or the defaults."""
        before = RunSettings()
        if self.out is not None and is_run_of(agent, self.out) and (self.out / CONFIG).is_file():
            before = read_settings(self.out)
        asked = {name: getattr(self, name) for name in _SHARED}
        given = {name: value for name, value in asked.items() if value is not None}
        return dataclasses.replace(before, **given)

    def _evaluations(self, own: list[Callback], filled: RunSettings) -> list[Evaluate]:
        """The evaluation that is asked for, unless the user's callbacks do it; one at the end."""
        asked = (self.eval_every, self.eval_episodes, self.eval_env)
        theirs = [each for each in own if isinstance(each, Evaluate)]
        if all(each is None for each in asked):
            if self.out is None:
                return []
            if theirs:
                return [EvaluateAtEnd(theirs[-1])]
        env = theirs[-1].env if self.eval_env is None and theirs else self.eval_env
        often = filled.eval_every, filled.eval_episodes
        return [Evaluate(*often, env, at_end=True)]

    def _settings(
        self, agent: Agent, filled: RunSettings, evaluation: Evaluate, goal: int
    ) -> RunSettings:
        """What config.json is to say; of a run that goes on, what it said before."""
        if filled.env is not None or filled.recipe is not None or filled.task is not None:
            settings = filled
        else:
            env = agent.evaluation_env(evaluation.env) if agent.env is None else agent.env
            settings = settings_of(agent, env)
        asked = {name: getattr(filled, name) for name in _SHARED}
        asked |= {"eval_every": evaluation.every, "eval_episodes": evaluation.episodes}
        return dataclasses.replace(settings, steps=goal, **asked)


_SHARED = (
    "eval_every", "eval_episodes", "log_every", "checkpoint_every", "checkpoint_minutes",
    "on_env_error", "tensorboard", "wandb",
)  # fmt: skip
"""The options that are settings of a run, too."""


def is_run_of(agent: Agent, folder: Path) -> bool:
    """Whether a folder holds an earlier part of the agent's run."""
    return agent.folder == folder.resolve()


def settings_of(agent: Agent, env: AnyEnv) -> RunSettings:
    """The settings with which `belated train` would make such a run, as far as they are known.

    Args:
        agent: who learns.
        env: an environment like those that it learns in.
    """
    method, changes = name_of(agent.method)
    recipe = recipe_of(env)
    spec = find_interval_spec(env)
    assert spec is not None  # or no agent could learn in it
    known = env.spec.id if env.spec is not None else type(env.unwrapped).__name__
    delay = _delay_of(env)
    usual = not options_of(env.action_space) and recipe == usual_recipe(known, delay, spec.phase)
    for name, default in (("reward", "sum"), ("overlap", 0)):
        if delay.get(name) == default:
            delay[name] = None  # as on the command line
    return RunSettings(
        env=None if recipe is None else known,
        **delay,
        phase=spec.phase,
        method=method,
        seed=agent.seed,
        learning_starts=changes.pop("learning_starts", None),
        num_envs=len(agent.loop.lanes.observation),
        set=[f"{k}={json.dumps(v, separators=(',', ':'))}" for k, v in changes.items()],
        task=known if recipe is None else None,
        recipe=None if usual else recipe,
    )


def _delay_of(env: AnyEnv) -> dict[str, Any]:
    """How the user has delayed an environment, by `DelayReward`; nothing where its id says that."""
    registered = None if env.spec is None else gym.registry.get(env.spec.id)
    wrappers = () if registered is None else registered.additional_wrappers
    delays = [layer for layer in layers(env) if isinstance(layer, DelayReward)]
    if not delays or any(each.name == DelayReward.__name__ for each in wrappers):
        return {}
    return {
        "interval": str(delays[0]._lengths),
        "reward": str(delays[0].interval_reward),
        "overlap": delays[0].interval_spec.overlap,
    }


@contextlib.contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """Keep other processes out of a run folder.

    Raises:
        ValueError: if another one is writing to it.
    """
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(locked(folder / "run", wait=False))
        except BlockingIOError:
            raise ValueError(f"Another process is writing to {folder}.") from None
        yield


def writers_of(agent: Agent, options: Options) -> list[Writer]:
    """Open the files of the run folder, if there is one.

    Raises:
        ValueError: if the folder holds another run.
    """
    folder = options.out
    if folder is None:
        return []
    progress = folder / PROGRESS
    if not is_run_of(agent, folder) and (has_rows(progress) or checkpoint.exists(folder)):
        raise ValueError(
            f"{folder} holds another run already; choose another folder, or go on with that run: "
            f"belated.Agent.load({str(folder)!r}, env)."
        )
    folder.mkdir(parents=True, exist_ok=True)
    writers: list[Writer] = []
    if options.wandb:  # first: it is the one that may fail
        writers.append(WandbWriter(folder, to_json(agent.method)))
    if options.tensorboard:
        writers.append(TensorBoardWriter(folder / "tensorboard"))
    agent.folder = folder.resolve()
    return [*writers, CSVWriter(progress, agent.history)]
