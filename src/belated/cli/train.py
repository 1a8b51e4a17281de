"""``belated train``: learn a task and leave a run folder behind."""

from __future__ import annotations

import ast
import dataclasses
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import belated
from belated.envs.intervals import AnyEnv
from belated.envs.rewards import names_code
from belated.envs.tasks import make
from belated.parts import to_json
from belated.ranges import positive_int
from belated.training import persistence
from belated.training.agent import Agent
from belated.training.callbacks import Callback

DEFAULT_STEPS = 1_000_000


@dataclass(frozen=True)
class Train:
    """Learn a task and write config.json, progress.csv and checkpoint/ to a run folder.

    Ctrl-C stops between two steps, after saving; --resume continues from there.
    """

    env: str | None = None
    """A task of the paper, such as belated/HalfCheetah-sum-n20-v0, or any Gymnasium id together
    with --interval. your_module:YourEnv-v0 imports your_module first."""
    interval: str | None = None
    """Delay the environment with intervals of this length: 20, 15:20 (uniform), 5=0.2,10=0.8."""
    reward: str | None = None
    """The interval reward: sum (default), max, square, weighted:w0,w1,... or
    package.module:function."""
    overlap: int | None = None
    """How many steps before the interval its reward also depends on (default 0)."""
    method: str = "hc-pairwise-1"
    """The learning method; an unknown name lists all of them."""
    steps: int | None = None
    """The total number of environment steps (default: 1,000,000). With --resume: a new total."""
    seed: int = 0
    """Seeds networks, exploration, sampling and the environment's episodes."""
    out: Path | None = None
    """The run folder (default: runs/ENV-METHOD-sSEED). It must not already hold a run."""
    resume: Path | None = None
    """Continue the run in this folder, with its settings."""
    trust: bool = False
    """With --resume: import the modules that the folder's settings name."""
    learning_starts: int | None = None
    """How many uniformly random steps come first (default 5000; off-policy methods only)."""
    eval_every: int = 5_000
    """Steps between evaluations."""
    eval_episodes: int = 10
    """Episodes in each evaluation."""
    log_every: int = 1_000
    """Steps between rows of progress.csv without an evaluation."""
    checkpoint_every: int = 50_000
    """Steps between checkpoints; there is always one at the end."""
    num_envs: int = 1
    """How many copies of the environment run side by side."""
    set: list[str] = field(default_factory=list)
    """Other hyperparameters, as name=value: --set batch_size=256 hidden=[64,64]
    precision=bfloat16."""
    tensorboard: bool = False
    """Also write event files for TensorBoard."""
    wandb: bool = False
    """Also send rows to Weights & Biases (needs the extra wandb)."""
    progress: bool = True
    """Show a progress bar."""


def train(config: Train) -> int:
    """Run the command and return its exit code."""
    if config.steps is not None:
        positive_int(config.steps, "--steps")
    if config.resume is None:
        config = dataclasses.replace(config, steps=config.steps or DEFAULT_STEPS)
        folder, agent = _start(config)
    else:
        folder, config, agent = _resume(config, config.resume)
    remaining = (config.steps or DEFAULT_STEPS) - agent.steps
    if remaining <= 0:
        print(f"{folder} has its {config.steps} steps already; set a new total with --steps.")
        return 0
    try:
        agent.learn(
            remaining,
            callback=_WriteConfig(folder, config),
            progress_bar=config.progress,
            out=folder,
            eval_every=config.eval_every,
            eval_episodes=config.eval_episodes,
            log_every=config.log_every,
            checkpoint_every=config.checkpoint_every,
            tensorboard=config.tensorboard,
            wandb=config.wandb,
        )
    except KeyboardInterrupt:
        print(
            f"Stopped after {agent.steps} steps. Continue from the last checkpoint with\n"
            f"  belated train --resume {folder}"
        )
        return 130
    last = agent.evaluations[-1]["return_mean"]
    print(f"{folder}: return {last:,.1f} after {agent.steps} steps")
    return 0


def _start(config: Train) -> tuple[Path, Agent]:
    agent = _new_agent(config, make_env(config))
    name = f"{config.env}-{config.method}-s{config.seed}".replace("/", "-").replace(":", "-")
    folder = config.out or Path("runs") / name
    if any((folder / name).exists() for name in ("config.json", "progress.csv", "checkpoint")):
        raise ValueError(
            f"{folder} holds a run already. Choose another --out, or continue that run with "
            f"--resume {folder}."
        )
    return folder, agent


def _new_agent(config: Train, env: AnyEnv) -> Agent:
    overrides = _overrides(config)
    return Agent(config.method, env, seed=config.seed, num_envs=config.num_envs, **overrides)


_NOT_SETTINGS = ("out", "resume", "progress", "trust")
"""Options that say how to run the command, not what to learn."""


@dataclass(frozen=True)
class _WriteConfig(Callback):
    """Writes config.json as soon as everything was found to be in order."""

    folder: Path
    config: Train

    def on_start(self, agent: Agent) -> None:
        settings = dataclasses.asdict(self.config)
        document = {"belated": belated.__version__}
        document |= {name: value for name, value in settings.items() if name not in _NOT_SETTINGS}
        document["hyperparameters"] = to_json(agent.method)
        (self.folder / "config.json").write_text(json.dumps(document, indent=2) + "\n")


def _resume(config: Train, folder: Path) -> tuple[Path, Train, Agent]:
    given = [
        f"--{f.name.replace('_', '-')}"
        for f in dataclasses.fields(Train)
        if f.name not in ("resume", "progress", "trust", "steps")
        and getattr(config, f.name) != getattr(Train(), f.name)
    ]
    if given:
        raise ValueError(
            f"--resume takes all settings from {folder}; leave out {', '.join(given)}."
        )
    saved = read_config(folder)
    settings = dataclasses.replace(
        saved, steps=config.steps or saved.steps, progress=config.progress
    )
    require_trust(settings, folder, config.trust)
    env = make_env(settings)
    if persistence.exists(folder):
        agent = Agent.load(folder, env)
    else:  # it was stopped before the first checkpoint
        agent = _new_agent(settings, env)
        (folder / "progress.csv").unlink(missing_ok=True)
    return folder, settings, agent


def require_trust(config: Train, folder: Path, trust: bool) -> None:
    """Refuse to import what a folder's settings name unless the user trusts it.

    Raises:
        ValueError: if they name anything and ``trust`` is False.
    """
    named = [config.env] if config.env is not None and ":" in config.env else []
    if config.reward is not None and names_code(config.reward):
        named.append(config.reward)
    if named and not trust:
        raise ValueError(
            f"The settings in {folder} name code to import: {', '.join(named)}. If you trust the "
            "folder, add --trust."
        )


def read_config(folder: Path) -> Train:
    """Read the settings of a run."""
    file = folder / "config.json"
    if not file.is_file():
        raise ValueError(f"{folder} holds no run: there is no config.json.")
    document: dict[str, Any] = json.loads(file.read_text())
    known = {f.name for f in dataclasses.fields(Train)}
    return Train(**{name: value for name, value in document.items() if name in known})


def make_env(config: Train) -> AnyEnv:
    """Make the environment of a run."""
    if config.env is None:
        raise ValueError(
            "Which environment? For example --env belated/PointReach-v0, or --env HalfCheetah-v5 "
            "--interval 20."
        )
    return make(config.env, interval=config.interval, reward=config.reward, overlap=config.overlap)


def _overrides(config: Train) -> dict[str, Any]:
    overrides: dict[str, Any] = {}
    for item in config.set:
        name, equals, text = item.partition("=")
        if not equals:
            raise ValueError(f"Cannot read --set {item}; write for example --set batch_size=256.")
        overrides[name] = _value_of(text, item)
    if config.learning_starts is not None:
        overrides["learning_starts"] = config.learning_starts
    return overrides


def _value_of(text: str, item: str) -> Any:
    """A value as JSON or Python write it, or a word without quotation marks."""
    for read in (json.loads, ast.literal_eval):
        try:
            return read(text)
        except (ValueError, SyntaxError):
            continue
    if not text.isidentifier():
        raise ValueError(f"Cannot read --set {item}; write for example --set batch_size=256.")
    return text
