"""The settings of a run, and ``config.json``, which holds them."""

from __future__ import annotations

import ast
import dataclasses
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import UnionType
from typing import TYPE_CHECKING, Any, get_args, get_origin, get_type_hints

import belated
from belated.envs.intervals import AnyEnv
from belated.envs.lateness import Lateness
from belated.envs.rewards import names_code
from belated.methods import Method, find_method
from belated.parts import override, to_json
from belated.training.callbacks import Callback, CallbackLike
from belated.training.persistence import read_json, write_json
from belated.training.provenance import provenance
from belated.training.recipes import code_in, make_again

if TYPE_CHECKING:
    from belated.training.agent import Agent

CONFIG = "config.json"
PROGRESS = "progress.csv"
BEST = "best"


@dataclass(frozen=True)
class _Named:
    """Which environment."""

    env: str | None = None
    """A task of the paper, such as belated/HalfCheetah-sum-n20-v0, or any Gymnasium id together
    with --interval. your_module:YourEnv-v0 imports your_module first."""


@dataclass(frozen=True)
class RunSettings(Lateness, _Named):  # (the last base's field is the first option of all)
    """Everything that decides what a run learns and what it leaves behind."""

    phase: bool = True
    """Whether observations tell the position in the interval."""
    method: str = "crossq-hc-singleton"
    """The learning method; `belated methods` lists them. your_module:NAME takes one of your own."""
    steps: int | None = None
    """The total number of environment steps. None: 1,000,000. With --resume: a new total."""
    seed: int = 0
    """Seeds networks, exploration, sampling and the environment's episodes."""
    learning_starts: int | None = None
    """How many uniformly random steps come first; off-policy methods only. None: 5000."""
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
    """What to do when an environment raises an error. stop: save and stop. rebuild: make it anew
    and go on without the open episodes."""
    num_envs: int = 1
    """How many copies of the environment run side by side."""
    set: list[str] = field(default_factory=list)
    """Other hyperparameters, as name=value: --set batch_size=256 hidden=[64,64]
    precision=bfloat16. `belated methods NAME` lists those of a method."""
    task: str | None = None
    """What tables and pictures call the task. None: as the environment is called."""
    label: str | None = None
    """What tables and pictures call the method. None: its name."""
    tensorboard: bool = False
    """Also write event files for TensorBoard."""
    wandb: bool = False
    """Also send rows to Weights & Biases (needs the extra wandb)."""
    recipe: dict[str, Any] | None = None
    """How to make the environment of a run that was started from Python (see `recipes`)."""

    @property
    def total_steps(self) -> int:
        """How many steps there are in all."""
        return 1_000_000 if self.steps is None else self.steps

    def make_env(self, **kwargs: Any) -> AnyEnv:
        """Make the environment; what else ``gym.make`` is to know goes in ``kwargs``."""
        if self.recipe is not None:
            return make_again(self.recipe, **kwargs)
        if self.env is None:
            raise ValueError(
                "Which environment? For example --env belated/PointReach-v0, or --env "
                "HalfCheetah-v5 --interval 20."
            )
        return self.make(self.env, phase=self.phase, **kwargs)

    def make_method(self) -> Method:
        """Find the method and change what the settings change in it."""
        return override(find_method(self.method), self.overrides())

    def overrides(self) -> dict[str, Any]:
        """The hyperparameters that differ from the method's."""
        overrides = as_overrides(self.set)
        if self.learning_starts is not None:
            if "learning_starts" in overrides:
                raise ValueError(
                    f"learning_starts is given twice, as --learning-starts {self.learning_starts} "
                    f"and as --set learning_starts={overrides['learning_starts']}: leave one out."
                )
            overrides["learning_starts"] = self.learning_starts
        return overrides

    def require_learning(self, method: Method) -> None:
        """Refuse a run that would be over before it learns anything.

        Raises:
            ValueError: if all its steps would be random.
        """
        if method.training.learning_starts >= self.total_steps:
            raise ValueError(
                f"{self.label or self.method} would learn nothing: all of its {self.total_steps} "
                f"steps are random ones (learning_starts={method.training.learning_starts}). Take "
                "more steps (--steps), or fewer random ones (--learning-starts)."
            )

    def imports(self) -> Iterator[str]:
        """What the settings name that has to be imported from outside the library."""
        if ":" in self.method and not self.method.startswith("belated."):
            yield self.method
        if self.recipe is not None:
            yield from code_in(self.recipe)
            return
        if self.env is not None and ":" in self.env and not self.env.startswith("belated."):
            yield self.env
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
            callback=[WriteConfig(folder, self), *callback],
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
        if name in overrides:
            raise ValueError(f"--set gives {name} twice: leave one out.")
        overrides[name] = _value_of(text, item)
    return overrides


def _value_of(text: str, item: str) -> Any:
    """A value as JSON or Python write it, or a word without quotation marks."""
    for read in (json.loads, ast.literal_eval):
        try:
            return read(text)
        except (ValueError, SyntaxError):
            continue
    if not text.replace("-", "_").isidentifier():
        raise ValueError(f"Cannot read --set {item}; write for example {_EXAMPLE}.")
    return text


SETTINGS = tuple(field.name for field in dataclasses.fields(RunSettings))


@dataclass(frozen=True)
class WriteConfig(Callback):
    """Writes config.json as soon as everything was found to be in order."""

    folder: Path
    settings: RunSettings

    def on_start(self, agent: Agent) -> None:
        """Write it."""
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
    document: Any = read_json(file)
    if not isinstance(document, dict):
        raise ValueError(f"{file} is damaged: it holds {type(document).__name__}, not settings.")
    return document


def read_settings(folder: Path) -> RunSettings:
    """Read the settings of a run."""
    document = read_config(folder)
    hints = get_type_hints(RunSettings)
    for name in SETTINGS:
        if name in document and not _fits(document[name], hints[name]):
            raise ValueError(f"{folder / CONFIG} is damaged: {name} is {document[name]!r}.")
    return RunSettings(**{name: document[name] for name in SETTINGS if name in document})


def _fits(value: Any, hint: Any) -> bool:
    """Whether a value from a file is of a setting's type."""
    if isinstance(hint, UnionType):
        return any(_fits(value, each) for each in get_args(hint))
    if hint is float:
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    if get_origin(hint) is list:
        return isinstance(value, list) and all(isinstance(each, str) for each in value)
    if get_origin(hint) is dict:
        wrappers = value.get("additional_wrappers") or [] if isinstance(value, dict) else None
        return isinstance(wrappers, list) and all(isinstance(each, dict) for each in wrappers)
    return type(value) is hint
