"""``belated train``: learn a task and leave a run folder behind."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro

from belated.ranges import Check, non_negative_int, one_of, optional, positive, positive_int
from belated.training import checkpoint
from belated.training.agent import Agent
from belated.training.interrupt import TERMINATED
from belated.training.run import (
    SETTINGS,
    RunSettings,
    holds_run,
    new_agent,
    read_settings,
    require_trust,
    resumed,
)


@dataclass(frozen=True)
class Train(RunSettings):
    """The settings of a run, and what to do with its folder."""

    out: Path | None = None
    """The run folder, which must not hold a run yet. None: runs/ENV-METHOD-sSEED."""
    resume: Path | None = None
    """Continue the run in this folder, with its settings."""
    trust: bool = False
    """With --resume: import the modules that the folder's settings name."""
    progress: bool = True
    """Show a progress bar, or print lines where there is no terminal."""
    recipe: Annotated[dict[str, Any] | None, tyro.conf.Suppress] = None


_CHECKS: dict[str, Check] = {
    "overlap": optional(non_negative_int),
    "steps": optional(positive_int),
    "seed": non_negative_int,
    "learning_starts": optional(non_negative_int),
    "eval_every": positive_int,
    "eval_episodes": positive_int,
    "log_every": positive_int,
    "checkpoint_every": positive_int,
    "checkpoint_minutes": positive,
    "on_env_error": one_of("stop", "rebuild"),
    "num_envs": positive_int,
}


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def train(config: tyro.conf.OmitArgPrefixes[Train]) -> int:
    """Learn a task and leave a run folder behind.

    The folder holds config.json (all settings), progress.csv (a row for each evaluation and each
    log), checkpoint/ (the agent) and best/ (the agent of the best evaluation). Ctrl-C and SIGTERM
    stop between two steps, after saving; --resume continues from there. `belated methods` and
    `belated tasks` list what there is.

    Examples:
        belated train --env belated/PointReach-v0 --steps 40000 --out run
        belated train --env HalfCheetah-v5 --interval 15:20 --set batch_size=256
        belated train --resume run --steps 80000
    """
    for name, check in _CHECKS.items():
        check(getattr(config, name), _flag(name))
    settings: RunSettings
    if config.resume is None:
        settings = RunSettings(**{name: getattr(config, name) for name in SETTINGS})
        settings = dataclasses.replace(settings, steps=settings.total_steps)
        folder, agent = _start(settings, config.out)
    else:
        folder, settings, agent = _resume(config, config.resume)
    evaluated = bool(agent.evaluations) and agent.evaluations[-1]["step"] >= agent.steps
    if settings.total_steps <= agent.steps and evaluated:
        print(f"{folder} has its {settings.steps} steps already; set a new total with --steps.")
        return 0
    try:
        settings.learn(agent, folder, progress_bar=config.progress)
    except (KeyboardInterrupt, SystemExit) as stop:
        trust = " --trust" * any(settings.imports())
        print(
            f"Stopped after {agent.steps} steps. Continue with\n  belated train --resume {folder}"
            f"{trust}"
        )
        return TERMINATED if isinstance(stop, SystemExit) else 130
    last = agent.evaluations[-1]["return_mean"]
    print(f"{folder}: return {last:,.1f} after {agent.steps} steps")
    return 0


def _start(settings: RunSettings, out: Path | None) -> tuple[Path, Agent]:
    agent = new_agent(settings)
    name = f"{settings.env}-{settings.method}-s{settings.seed}".replace("/", "-").replace(":", "-")
    folder = out or Path("runs") / name
    if holds_run(folder):
        raise ValueError(
            f"{folder} holds a run already. Choose another --out, continue that run with --resume "
            f"{folder}, or delete the folder."
        )
    return folder, agent


def _resume(config: Train, folder: Path) -> tuple[Path, RunSettings, Agent]:
    given = [
        _flag(f.name)
        for f in dataclasses.fields(Train)
        if f.name not in ("resume", "progress", "trust", "steps")
        and getattr(config, f.name) != getattr(Train(), f.name)
    ]
    if given:
        raise ValueError(
            f"--resume takes all settings from {folder}; leave out {', '.join(given)}."
        )
    saved = read_settings(folder)
    settings = dataclasses.replace(saved, steps=config.steps or saved.steps)
    require_trust(settings, folder, config.trust)
    found = checkpoint.exists(folder)
    agent = resumed(settings, folder)
    if settings.total_steps < agent.steps:
        raise ValueError(
            f"{folder} has taken {agent.steps} steps already; --steps is the new total, so it "
            f"cannot be {settings.total_steps}."
        )
    if not found:
        print(f"{folder} holds no checkpoint yet: the run starts from the beginning.")
    return folder, settings, agent
