"""A run: settings in, a run folder out, and going on where it stopped."""

from __future__ import annotations

import ast
import dataclasses
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import belated
from belated.envs.intervals import AnyEnv
from belated.envs.rewards import names_code
from belated.envs.tasks import make
from belated.methods import Method, find_method
from belated.parts import override, to_json
from belated.training import checkpoint
from belated.training.agent import Agent
from belated.training.callbacks import Callback, CallbackLike
from belated.training.persistence import read_json, write_json
from belated.training.provenance import provenance

CONFIG = "config.json"
PROGRESS = "progress.csv"


@dataclass(frozen=True)
class RunSettings:
    """Everything that decides what a run learns and what it leaves behind."""

    env: str | None = None
    """A task of the paper, such as belated/HalfCheetah-sum-n20-v0, or any Gymnasium id together
    with --interval. your_module:YourEnv-v0 imports your_module first."""
    interval: str | None = None
    """Delay the environment with intervals of this length: 20, 15:20 (uniform), 5=0.2,10=0.8."""
    reward: str | None = None
    """The interval reward: sum (default), max, square, sum-square, square-sum,
    weighted:w0,w1,... or package.module:function."""
    overlap: int | None = None
    """How many steps before the interval its reward also depends on (default 0)."""
    phase: bool = True
    """Whether observations tell the position in the interval."""
    info_key: str | None = None
    """For a reward that is late already: it is revealed on the steps whose info has a true value
    for this key."""
    period: str | None = None
    """The same: it is revealed every so many steps, or at the end of the episode ("episode")."""
    when: str | None = None
    """The same: it is revealed when package.module:function(reward, info) says so."""
    max_length: int | None = None
    """The most steps between two revealed rewards; --period 20 needs none."""
    method: str = "crossq-hc-singleton"
    """The learning method; an unknown name lists all of them. your_module:NAME takes one of your
    own."""
    steps: int | None = None
    """The total number of environment steps (default: 1,000,000). With --resume: a new total."""
    seed: int = 0
    """Seeds networks, exploration, sampling and the environment's episodes."""
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
    checkpoint_minutes: float = 5.0
    """Minutes between checkpoints at most."""
    on_env_error: str = "stop"
    """When an environment raises: stop, after saving, or rebuild it and go on without the open
    episodes."""
    num_envs: int = 1
    """How many copies of the environment run side by side."""
    set: list[str] = field(default_factory=list)
    """Other hyperparameters, as name=value: --set batch_size=256 hidden=[64,64]
    precision=bfloat16."""
    task: str | None = None
    """What tables and pictures call the task (default: as the environment is called)."""
    label: str | None = None
    """What tables and pictures call the method (default: its name)."""
    tensorboard: bool = False
    """Also write event files for TensorBoard."""
    wandb: bool = False
    """Also send rows to Weights & Biases (needs the extra wandb)."""

    @property
    def total_steps(self) -> int:
        """How many steps there are in all."""
        return 1_000_000 if self.steps is None else self.steps

    def make_env(self) -> AnyEnv:
        """Make the environment."""
        if self.env is None:
            raise ValueError(
                "Which environment? For example --env belated/PointReach-v0, or --env "
                "HalfCheetah-v5 --interval 20."
            )
        return make(
            self.env,
            interval=self.interval,
            reward=self.reward,
            overlap=self.overlap,
            phase=self.phase,
            info_key=self.info_key,
            period=self.period,
            when=self.when,
            max_length=self.max_length,
        )

    def make_method(self) -> Method:
        """Find the method and change what the settings change in it."""
        return override(find_method(self.method), self.overrides())

    def overrides(self) -> dict[str, Any]:
        """The hyperparameters that differ from the method's."""
        overrides = as_overrides(self.set)
        if self.learning_starts is not None:
            overrides["learning_starts"] = self.learning_starts
        return overrides

    def new_agent(self, env: AnyEnv) -> Agent:
        """Make an agent that has learned nothing yet."""
        method = self.make_method()
        self.require_learning(method)
        return Agent(method, env, seed=self.seed, num_envs=self.num_envs)

    def require_learning(self, method: Method) -> None:
        """Refuse a run that would be over before it learns anything.

        Raises:
            ValueError: if all its steps would be random.
        """
        if method.training.learning_starts >= self.total_steps:
            raise ValueError(
                f"{self.label or self.method} would learn nothing: all of its {self.total_steps} "
                f"steps are random ones (learning_starts={method.training.learning_starts}). Take "
                "more steps, or set a lower learning_starts."
            )

    def imports(self) -> Iterator[str]:
        """What the settings name that has to be imported from outside the library."""
        for name in (self.env, self.method):
            if name is not None and ":" in name and not name.startswith("belated."):
                yield name
        if self.reward is not None and names_code(self.reward):
            yield self.reward
        if self.when is not None:
            yield self.when

    def origin(self) -> dict[str, Any]:
        """Where the numbers of a run that starts now would come from."""
        return provenance({name.partition(":")[0] for name in self.imports()})

    def learn(
        self,
        agent: Agent,
        folder: Path,
        *,
        callback: Sequence[CallbackLike] = (),
        progress_bar: bool = False,
    ) -> None:
        """Learn what is left of the run, in its folder; at its end there is an evaluation."""
        agent.learn(
            self.total_steps - agent.steps,
            callback=[_WriteConfig(folder, self), *callback],
            progress_bar=progress_bar,
            out=folder,
            eval_every=self.eval_every,
            eval_episodes=self.eval_episodes,
            log_every=self.log_every,
            checkpoint_every=self.checkpoint_every,
            checkpoint_minutes=self.checkpoint_minutes,
            on_env_error=self.on_env_error,
            tensorboard=self.tensorboard,
            wandb=self.wandb,
        )


_EXAMPLE = "--set batch_size=256"


def as_overrides(items: Iterable[str]) -> dict[str, Any]:
    """Read hyperparameters that are written as name=value.

    >>> as_overrides(["hidden=[8,8]", "precision=bfloat16"])
    {'hidden': [8, 8], 'precision': 'bfloat16'}
    """
    overrides: dict[str, Any] = {}
    for item in items:
        name, equals, text = item.partition("=")
        if not equals:
            raise ValueError(f"Cannot read --set {item}; write for example {_EXAMPLE}.")
        overrides[name] = _value_of(text, item)
    return overrides


def _value_of(text: str, item: str) -> Any:
    """A value as JSON or Python write it, or a word without quotation marks."""
    for read in (json.loads, ast.literal_eval):
        try:
            return read(text)
        except (ValueError, SyntaxError):
            continue
    if not text.isidentifier():
        raise ValueError(f"Cannot read --set {item}; write for example {_EXAMPLE}.")
    return text


SETTINGS = tuple(field.name for field in dataclasses.fields(RunSettings))


def holds_run(folder: Path) -> bool:
    """Whether there is anything of a run in a folder."""
    return any((folder / name).exists() for name in (CONFIG, PROGRESS, "checkpoint"))


def resumed(settings: RunSettings, folder: Path) -> Agent:
    """The agent of a run folder, as it was at the last checkpoint, or a new one before the first.

    Args:
        settings: those of the run.
        folder: the run folder.
    """
    if checkpoint.exists(folder):
        return _load(settings, folder)
    agent = settings.new_agent(settings.make_env())
    agent.folder = folder.resolve()  # it was stopped before the first checkpoint: its own rows
    return agent


def _load(settings: RunSettings, folder: Path) -> Agent:
    settings.make_method()  # imports the module of a method from outside, whose parts are needed
    return Agent.load(folder, settings.make_env())


@dataclass(frozen=True)
class _WriteConfig(Callback):
    """Writes config.json as soon as everything was found to be in order."""

    folder: Path
    settings: RunSettings

    def on_start(self, agent: Agent) -> None:
        document = describe(self.settings) | {"hyperparameters": to_json(agent.method)}
        document["provenance"]["precision"] = agent.method.training.precision
        if agent.steps > 0 and (self.folder / CONFIG).is_file():
            document["earlier"] = _earlier(read_config(self.folder), document["provenance"])
        write_json(self.folder / CONFIG, document)


def describe(settings: RunSettings) -> dict[str, Any]:
    """What config.json says of a run that starts now, hyperparameters aside."""
    return {
        "belated": belated.__version__,
        **{name: getattr(settings, name) for name in SETTINGS},
        "provenance": settings.origin(),
    }


def _earlier(before: dict[str, Any], now: dict[str, Any]) -> list[dict[str, Any]]:
    """Where the earlier parts of a run come from, as far as it is from elsewhere than now."""
    found = [*before.get("earlier", []), before.get("provenance", {})]
    return [each for place, each in enumerate(found) if each != now and each not in found[:place]]


def read_config(folder: Path) -> dict[str, Any]:
    """Read what config.json says.

    Raises:
        ValueError: if there is none.
    """
    file = folder / CONFIG
    if not file.is_file():
        raise ValueError(f"{folder} holds no run: there is no config.json.")
    document: dict[str, Any] = read_json(file)
    return document


def read_settings(folder: Path) -> RunSettings:
    """Read the settings of a run."""
    document = read_config(folder)
    return RunSettings(**{name: document[name] for name in SETTINGS if name in document})


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


def load_run(folder: Path, trust: bool = False) -> Agent:
    """Load a run's agent with its environment.

    Args:
        folder: the run folder.
        trust: whether modules that its settings name may be imported.

    Raises:
        ValueError: if its settings name modules and ``trust`` is False.
    """
    settings = read_settings(folder)
    require_trust(settings, folder, trust)
    return _load(settings, folder)
