"""A run: settings in, a run folder out, and going on where it stopped."""

from __future__ import annotations

from pathlib import Path

from belated.training import checkpoint
from belated.training.agent import Agent
from belated.training.settings import (
    BEST,
    CONFIG,
    PROGRESS,
    SETTINGS,
    RunSettings,
    as_overrides,
    describe,
    read_config,
    read_settings,
)

__all__ = [
    "BEST",
    "CONFIG",
    "PROGRESS",
    "SETTINGS",
    "RunSettings",
    "as_overrides",
    "describe",
    "holds_run",
    "load_run",
    "new_agent",
    "read_config",
    "read_settings",
    "require_trust",
    "resumed",
]


def holds_run(folder: Path) -> bool:
    """Whether there is anything of a run in a folder."""
    return any((folder / name).exists() for name in (CONFIG, PROGRESS, "checkpoint"))


def new_agent(settings: RunSettings) -> Agent:
    """Make an agent that has learned nothing yet, and its environment."""
    env = settings.make_env()
    method = settings.make_method()
    settings.require_learning(method)
    return Agent(method, env, seed=settings.seed, num_envs=settings.num_envs)


def resumed(settings: RunSettings, folder: Path) -> Agent:
    """The agent of a run folder, as it was at the last checkpoint, or a new one before the first.

    Args:
        settings: those of the run.
        folder: the run folder.
    """
    if checkpoint.exists(folder):
        return _load(settings, folder)
    _require_env(settings, folder)
    agent = new_agent(settings)
    agent.folder = folder.resolve()  # it was stopped before the first checkpoint: its own rows
    return agent


def _load(settings: RunSettings, folder: Path) -> Agent:
    _require_env(settings, folder)
    if ":" in settings.method:
        settings.make_method()  # imports its module, whose parts are needed
    return Agent.load(folder, settings.make_env())


def _require_env(settings: RunSettings, folder: Path) -> None:
    """Refuse a run whose environment only its user can make.

    Raises:
        ValueError: if it is of that kind.
    """
    if settings.env is None:
        raise ValueError(
            f"{folder} was made from Python with an environment that its files cannot name: it is "
            "not registered, or was made with a function. Make it in Python and take "
            f"belated.Agent.load({str(folder)!r}, env), then .evaluate(), .plot_credit() or "
            ".learn(). Or register it with Gymnasium (entry_point='your_module:YourEnv'), give "
            "rewards as text (reward='your_module:your_function'), and train anew."
        )


def require_trust(settings: RunSettings, folder: Path, trust: bool) -> None:
    """Refuse to import what a folder's settings name unless the user trusts it.

    Raises:
        ValueError: if they name anything and ``trust`` is False.
    """
    named = list(settings.imports())
    if named and not trust:
        raise ValueError(
            f"The settings in {folder} name code to import: {', '.join(named)}. If you trust the "
            "folder, add --trust."
        )


def load_run(folder: Path, trust: bool = False, best: bool = False) -> Agent:
    """Load a run's agent with its environment.

    Args:
        folder: the run folder.
        trust: whether modules that its settings name may be imported.
        best: whether to take the agent of the best evaluation, not the last one.

    Raises:
        ValueError: if its settings name modules and ``trust`` is False.
    """
    settings = read_settings(folder)
    require_trust(settings, folder, trust)
    if not best:
        return _load(settings, folder)
    if not checkpoint.exists(folder / BEST):
        raise ValueError(f"{folder} has kept no best agent; without --best the last one is taken.")
    return _load(settings, folder / BEST)
