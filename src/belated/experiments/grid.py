"""A grid of runs: tasks × methods × variants × seeds, from a TOML file or from Python."""

from __future__ import annotations

import dataclasses
import json
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from belated.envs.actions import sample
from belated.envs.rules import allowed_in
from belated.experience.off_policy import ReplayTraining
from belated.experience.spaces import Spaces
from belated.experiments.peers import is_peer
from belated.methods import find_method
from belated.ranges import checked, flag, non_negative_int, optional, positive_int
from belated.training.run import RunSettings

Table = TypeVar("Table", bound="LateTask | Contender | Grid")
Settings = Mapping[str, Any]


@dataclass(frozen=True)
class LateTask:
    """An environment with a late reward; see `belated.make` for what the fields mean.

    Attributes:
        env: a task of the paper or any Gymnasium id; ``your_module:YourEnv-v0`` imports it first.
        interval: how to delay it, unless it is late already.
        reward: the interval reward.
        overlap: c.
        phase: whether observations tell the position in the interval.
        name: what folders, tables and pictures call it.
        info_key: how to mark it, if it is late already but does not say so itself.
        period: the same.
        when: the same, as ``package.module:function``.
        max_length: the most steps between two revealed rewards.
    """

    env: str
    interval: str | None = None
    reward: str | None = None
    overlap: int | None = None
    phase: bool = True
    name: str = ""
    info_key: str | None = None
    period: str | None = None
    when: str | None = None
    max_length: int | None = None

    def __post_init__(self) -> None:
        for field_name in ("interval", "period"):
            if getattr(self, field_name) is not None:
                object.__setattr__(self, field_name, str(getattr(self, field_name)))
        flag(self.phase, "phase")
        object.__setattr__(self, "name", as_folder_name(self.name or self._own_name()))

    def lateness(self) -> dict[str, Any]:
        """The settings of a run that say which environment it is and how it is late."""
        return {name: value for name, value in vars(self).items() if name not in ("phase", "name")}

    def _own_name(self) -> str:
        name = self.env.rpartition(":")[2]
        if name.startswith("belated/"):
            name = re.sub(r"-v\d+$", "", name.removeprefix("belated/"))
        parts = [name, self.reward]
        parts += [self.interval and f"n{self.interval.replace(':', 'to')}"]
        parts += [self.period and f"p{self.period}", self.info_key, self.when]
        parts += [f"n{self.max_length}" if self.max_length else None]
        parts += [f"c{self.overlap}" if self.overlap else None]
        parts += [None if self.phase else "nophase"]
        return "-".join(part for part in parts if part)


@dataclass(frozen=True)
class Contender:
    """A method with settings of its own.

    Attributes:
        method: a name from `belated.METHODS`, or ``your_module:NAME``.
        name: what folders, tables and pictures call it.
        set: hyperparameters that differ from the method's.
        phase: whether it is told the position in the interval, if not as the task says.
        seeds: which seeds, or how many, if not those of the others.
        steps: how many steps it learns for, if not as many as the others.
        learning_starts: how many random steps it starts with, if not as many as the others.
    """

    method: str
    name: str = ""
    set: Settings = field(default_factory=dict)
    phase: bool | None = None
    seeds: tuple[int, ...] | None = None
    steps: int | None = None
    learning_starts: int | None = None

    def __post_init__(self) -> None:
        if self.seeds is not None:
            object.__setattr__(self, "seeds", _seeds(self.seeds))
        if self.steps is not None:
            steps = positive_int(self.steps, f"steps of {self.method}")
            object.__setattr__(self, "steps", steps)
        object.__setattr__(self, "name", as_folder_name(self.name or self.method))


@dataclass(frozen=True)
class PlannedRun:
    """One run of a grid."""

    settings: RunSettings
    place: Path
    """Its folder, below ``runs/``: TASK/METHOD-sSEED."""

    @property
    def name(self) -> str:
        """How people call it."""
        return self.place.as_posix()


@dataclass(frozen=True)
class Grid:
    """Every task with every method, in every variant, with every seed.

    Attributes:
        tasks: what to learn.
        methods: how.
        seeds: which seeds, or how many.
        steps: how many steps each run takes.
        variants: settings to cross with all methods, by name; a method's label is then
            METHOD-VARIANT, or METHOD alone where the variant's name is empty.
        set: hyperparameters of all runs.
        learning_starts: how many random steps come first; None for the methods' own.
        eval_every: steps between evaluations; None for 20 evaluations in a run.
        eval_episodes: episodes in each evaluation.
        log_every: steps between rows without an evaluation.
        checkpoint_every: steps between checkpoints; None for 10 in a run.
        num_envs: how many copies of the environment each run has.
        primary: the two labels whose comparison was declared beforehand; the first and the last
            of them all if none was.
        metric: the column of progress.csv that is compared.

    Example:
        >>> grid = Grid.of(tasks=[{"env": "Pendulum-v1", "interval": "20"}],
        ...                methods=["hc-singleton", "sac"], seeds=2, steps=1000)
        >>> [run.name for run in grid.runs()][:2]
        ['Pendulum-v1-n20/hc-singleton-s0', 'Pendulum-v1-n20/sac-s0']
    """

    tasks: tuple[LateTask, ...]
    methods: tuple[Contender, ...]
    seeds: tuple[int, ...] = (0, 1, 2, 3, 4)
    steps: int = 100_000
    variants: Mapping[str, Settings] = field(default_factory=lambda: {"": {}})
    set: Settings = field(default_factory=dict)
    learning_starts: int | None = None
    eval_every: int | None = None
    eval_episodes: int = 10
    log_every: int = 1_000
    checkpoint_every: int | None = None
    num_envs: int = 1
    primary: tuple[str, str] | None = None
    metric: str = "return_mean"

    @classmethod
    def of(cls, **values: Any) -> Grid:
        """Make a grid of plain values, such as a TOML file holds.

        Raises:
            ValueError: if a name is unknown or a value is of no use.
        """
        _require_known(cls, values, "the grid")
        values["tasks"] = _entries(LateTask, "env", values.get("tasks"), "tasks")
        values["methods"] = _entries(Contender, "method", values.get("methods"), "methods")
        if "seeds" in values:
            values["seeds"] = _seeds(values["seeds"])
        if values.get("primary") is not None:
            values["primary"] = tuple(values["primary"])
        return _table(cls, values, "the grid")

    @classmethod
    def read(cls, path: Path) -> Grid:
        """Read a TOML file."""
        if not path.is_file():
            raise ValueError(f"There is no grid {path}.")
        try:
            return cls.of(**tomllib.loads(path.read_text()))
        except (tomllib.TOMLDecodeError, ValueError) as error:
            raise ValueError(f"{path}: {error}") from None

    def __post_init__(self) -> None:
        for name in ("tasks", "methods", "seeds", "variants"):
            if not getattr(self, name):
                raise ValueError(f"A grid needs {name}.")
        counts = dict.fromkeys(("steps", "eval_episodes", "log_every", "num_envs"), positive_int)
        perhaps = dict.fromkeys(("eval_every", "checkpoint_every"), optional(positive_int))
        checked(self, **counts, **perhaps)
        for what, names in (
            ("tasks", [task.name for task in self.tasks]),
            ("methods", self.labels),
            ("seeds", [str(seed) for seed in self.seeds]),
        ):
            twice = {name for name in names if names.count(name) > 1}
            if twice:
                raise ValueError(
                    f"Two {what} are called {twice.pop()}; set name = ... to tell them apart."
                )
        if self.primary is not None:
            _require_pair(self.primary, self.labels)

    @property
    def labels(self) -> list[str]:
        """What the methods are called, variants included."""
        return [
            _label(contender, variant) for contender in self.methods for variant in self.variants
        ]

    @property
    def comparison(self) -> tuple[str, str] | None:
        """The two labels to compare first, if there are two."""
        if self.primary is not None or len(self.labels) < 2:
            return self.primary
        return self.labels[0], self.labels[-1]

    def runs(self) -> list[PlannedRun]:
        """All runs, in the order in which they are started: seed by seed."""
        everyone = {*self.seeds, *(seed for each in self.methods for seed in each.seeds or ())}
        return [
            self._run(task, contender, variant, seed)
            for seed in sorted(everyone)
            for task in self.tasks
            for contender in self.methods
            for variant in self.variants
            if seed in (self.seeds if contender.seeds is None else contender.seeds)
        ]

    def _run(self, task: LateTask, contender: Contender, variant: str, seed: int) -> PlannedRun:
        steps = contender.steps or self.steps
        changes = {**self.set, **contender.set, **self.variants[variant]}
        label = _label(contender, variant)
        settings = RunSettings(
            **task.lateness(),
            phase=task.phase if contender.phase is None else contender.phase,
            method=contender.method,
            steps=steps,
            seed=seed,
            learning_starts=self._random_steps(contender),
            eval_every=self.eval_every or max(1, steps // 20),
            eval_episodes=self.eval_episodes,
            log_every=self.log_every,
            checkpoint_every=self.checkpoint_every or max(1, steps // 10),
            num_envs=self.num_envs,
            set=[f"{name}={json.dumps(value)}" for name, value in changes.items()],
            task=task.name,
            label=label,
        )
        return PlannedRun(settings, Path(task.name) / f"{label}-s{seed}")

    def _random_steps(self, contender: Contender) -> int | None:
        """How many random steps come first; on-policy methods take none."""
        if contender.learning_starts is not None or self.learning_starts is None:
            return contender.learning_starts
        takes_them = is_peer(contender.method) or isinstance(
            find_method(contender.method).training, ReplayTraining
        )
        return self.learning_starts if takes_them else None

    def check(self) -> None:
        """Make every environment and method once, so that mistakes show before anything runs.

        Raises:
            ValueError: if one cannot be made, or an agent cannot learn in it.
        """
        runs = self.runs()
        dense = True
        for task in {run.settings.task: run.settings for run in runs}.values():
            env = task.make_env()
            Spaces.of(env)
            observation, _ = env.reset(seed=0)
            action = sample(env.action_space, allowed_in(env, observation))
            dense = dense and "dense_reward" in env.step(action)[-1]
            env.close()
        for settings in {run.settings.label: run.settings for run in runs}.values():
            if is_peer(settings.method):
                continue
            method = settings.make_method()
            settings.require_learning(method)
            if not dense and "dense_reward" in method.backbone.needs:
                raise ValueError(
                    f"{settings.label} learns from hidden per-step rewards, which not every task "
                    "of the grid has."
                )


def _label(contender: Contender, variant: str) -> str:
    return as_folder_name(f"{contender.name}-{variant}") if variant else contender.name


def as_folder_name(name: str) -> str:
    """A name that any file system takes.

    >>> as_folder_name("my_module:mine, λ = 5")
    'my_module-mine-5'
    """
    clean = re.sub(r"[^A-Za-z0-9._=+-]+", "-", name).strip("-.=")
    if not clean:
        raise ValueError(f"{name!r} cannot be a folder's name.")
    return re.sub(r"-(=?-)+", "-", clean)


def _require_pair(primary: Sequence[str], labels: Sequence[str]) -> None:
    if len(primary) != 2 or primary[0] == primary[1] or not {*primary} <= {*labels}:
        raise ValueError(
            f"The primary comparison is between two of {', '.join(labels)}; got "
            f"{', '.join(map(str, primary))}."
        )


def _seeds(value: Any) -> tuple[int, ...]:
    if isinstance(value, Iterable) and not isinstance(value, str):
        return tuple(non_negative_int(seed, "A seed") for seed in value)
    return tuple(range(positive_int(value, "The number of seeds")))


def _entries(cls: type[Table], key: str, values: Any, what: str) -> tuple[Table, ...]:
    if isinstance(values, str) or not isinstance(values, Sequence):
        raise ValueError(f"{what} must be a list, got {values!r}.")
    return tuple(
        value
        if isinstance(value, cls)
        else _table(cls, {key: value} if isinstance(value, str) else value, f"one of the {what}")
        for value in values
    )


def _table(cls: type[Table], values: Any, what: str) -> Table:
    if not isinstance(values, Mapping):
        raise ValueError(f"{what} must be a name or a table, got {values!r}.")
    _require_known(cls, values, what)
    try:
        return cls(**values)
    except TypeError as error:
        raise ValueError(f"{what}: {error}.") from None


def _require_known(cls: type[Any], values: Mapping[str, Any], what: str) -> None:
    known = [field.name for field in dataclasses.fields(cls)]
    unknown = [name for name in values if name not in known]
    if unknown:
        raise ValueError(
            f"{what} has no {', '.join(map(str, unknown))}; it can have {', '.join(known)}."
        )
