"""Run folders as data: finding them, reading their curves, and what may be compared with what."""

from __future__ import annotations

import csv
import json
import math
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from belated.training.run import CONFIG, PROGRESS, read_config

Floats = npt.NDArray[np.float64]

LAST_PART = 0.2
"""A run's score is the mean of its evaluations in the last fifth of its steps."""


@dataclass(frozen=True)
class Curve:
    """A column of a run's ``progress.csv``, at the steps where it has a value."""

    steps: Floats
    values: Floats

    def at(self, steps: Floats) -> Floats:
        """The curve at other steps, by straight lines; NaN outside."""
        return np.interp(steps, self.steps, self.values, left=np.nan, right=np.nan)


@dataclass(frozen=True)
class Run:
    """A run folder that has been read.

    Attributes:
        folder: where it is.
        config: what ``config.json`` says.
        rows: the rows of ``progress.csv``; what is empty there is missing here.
    """

    folder: Path
    config: Mapping[str, Any]
    rows: tuple[Mapping[str, float], ...]

    @property
    def task(self) -> str:
        """What the task is called."""
        name = self.config.get("task") or self.config.get("env") or "unknown"
        return str(name).removeprefix("belated/")

    @property
    def method(self) -> str:
        """What the method is called."""
        return str(self.config.get("label") or self.config.get("method") or "unknown")

    @property
    def seed(self) -> int:
        """The seed."""
        return int(self.config.get("seed", 0))

    @property
    def name(self) -> str:
        """How people call it."""
        return f"{self.task}/{self.method}-s{self.seed}"

    @cached_property
    def steps(self) -> int:
        """How many steps there were, as far as the rows tell."""
        return int(self.rows[-1]["step"]) if self.rows else 0

    @property
    def speed(self) -> float:
        """Steps in a second of learning."""
        seconds = self.rows[-1].get("wall_time", 0.0) if self.rows else 0.0
        return self.steps / seconds if seconds > 0 else float("nan")

    def curve(self, column: str = "return_mean") -> Curve:
        """One column over the steps."""
        rows = [row for row in self.rows if math.isfinite(row.get(column, math.nan))]
        steps, values = ([row[name] for row in rows] for name in ("step", column))
        return Curve(np.array(steps, np.float64), np.array(values, np.float64))

    def score(self, column: str = "return_mean") -> float:
        """The mean of the values in the last fifth of the steps; NaN if there is none."""
        curve = self.curve(column)
        last = curve.values[curve.steps > (1 - LAST_PART) * self.steps]
        return float(last.mean()) if len(last) else float("nan")


def find_runs(places: Iterable[Path]) -> list[Run]:
    """Read all run folders at or below some places.

    Raises:
        ValueError: if there are none.
    """
    places = list(places)
    if not places:
        raise ValueError("Which runs? Name run folders, or folders that hold some.")
    found = {
        file.parent.resolve(): file.parent
        for place in places
        for file in sorted(place.rglob(PROGRESS))
        if (file.parent / CONFIG).is_file()
    }
    runs = [run for run in map(read_run, found.values()) if run.rows]
    if not runs:
        raise ValueError(
            f"There are no runs in {', '.join(map(str, places))}: no folder there holds "
            "config.json and a progress.csv with rows."
        )
    return sorted(runs, key=lambda run: (_natural(run.task), run.method, run.seed))


def _natural(name: str) -> list[tuple[int, str]]:
    """A key that puts n5 before n20."""
    parts = re.split(r"(\d+)", name)
    return [(int(part), "") if part.isdigit() else (-1, part) for part in parts]


def read_run(folder: Path) -> Run:
    """Read one run folder."""
    with (folder / PROGRESS).open(newline="") as file:
        rows = tuple(
            {name: float(text) for name, text in row.items() if text}
            for row in csv.DictReader(file)
        )
    return Run(folder, read_config(folder), rows)


def by_task(runs: Iterable[Run]) -> dict[str, dict[str, list[Run]]]:
    """Sort runs by task and by method."""
    sorted_runs: dict[str, dict[str, list[Run]]] = defaultdict(lambda: defaultdict(list))
    for run in runs:
        sorted_runs[run.task][run.method].append(run)
    return {task: dict(methods) for task, methods in sorted_runs.items()}


_OWN = {"seed", "out", "provenance", "earlier", "task", "label"}
"""What may differ between the seeds of one method."""
_SHARED = (
    "env", "interval", "reward", "overlap", "info_key", "period", "when", "max_length", "recipe",
    "eval_every", "eval_episodes", "num_envs",
)  # fmt: skip
"""What may not differ between the methods of one task."""


def compare_origins(runs: Sequence[Run], *, mixed: bool = False) -> list[str]:
    """Find out whether runs may be compared: same code, same versions, same settings.

    Args:
        runs: the runs.
        mixed: whether to go on where they may not.

    Returns:
        What a reader should know of their origins, in sentences.

    Raises:
        ValueError: if they differ and ``mixed`` is False.
    """
    problems = [*_different_code(runs), *_different_settings(runs), *_doubled(runs)]
    if problems and not mixed:
        raise ValueError(
            " ".join(problems) + " Such runs are put together only if you ask for it: add --mixed."
        )
    notes = [f"Mixed: {problem}" for problem in problems]
    dirty = [run for run in runs if any(source.get("dirty") for _, source in _sources(run))]
    if dirty:
        notes.append(f"{_count(dirty)} made with uncommitted changes in the code.")
    unfinished = [run.name for run in runs if run.steps < (run.config.get("steps") or 0)]
    if unfinished:
        notes.append(f"Not finished: {', '.join(unfinished)}.")
    for task, methods in by_task(runs).items():
        steps = {name: max(run.steps for run in own) for name, own in methods.items()}
        if len({*steps.values()}) > 1:
            listed = ", ".join(f"{name} {count:,}" for name, count in steps.items())
            notes.append(f"The methods on {task} have different numbers of steps: {listed}.")
    cpus = {origin["cpu"] for run in runs for origin in _origins(run) if "cpu" in origin}
    if len(cpus) > 1:
        notes.append(f"The runs are from different CPUs: {', '.join(sorted(cpus))}.")
    return notes


def _origins(run: Run) -> list[Mapping[str, Any]]:
    return [run.config.get("provenance", {}), *run.config.get("earlier", [])]


def _sources(run: Run) -> Iterable[tuple[str, Mapping[str, Any]]]:
    for origin in _origins(run):
        yield from origin.get("sources", {}).items()


def _different_code(runs: Sequence[Run]) -> Iterable[str]:
    seen: dict[str, set[str]] = defaultdict(set)
    for run in runs:
        for name, source in _sources(run):
            seen[f"commit of {name}"].add(str(source.get("commit"))[:12])
            seen[f"code of {name}"].add(str(source.get("digest")))
        for origin in _origins(run):
            for name, version in origin.get("versions", {}).items():
                seen[f"version of {name}"].add(version)
    unknown = [run.name for run in runs if not run.config.get("provenance")]
    if 0 < len(unknown) < len(runs):
        yield f"It is not known of what code {', '.join(unknown)} are."
    for what, values in seen.items():
        if len(values) > 1:
            yield f"The runs differ in the {what}: {', '.join(sorted(values))}."


def _different_settings(runs: Sequence[Run]) -> Iterable[str]:
    for task, methods in by_task(runs).items():
        for method, own in methods.items():
            names = sorted({name for run in own for name in run.config} - _OWN)
            yield from _differences(own, names, f"The seeds of {method} on {task}")
        everyone = [run for own in methods.values() for run in own]
        yield from _differences(everyone, _SHARED, f"The methods on {task}")


def _differences(runs: Sequence[Run], names: Iterable[str], who: str) -> Iterable[str]:
    settings = [flat({name: run.config.get(name) for name in names}) for run in runs]
    different = []
    for name in sorted({name for each in settings for name in each}):
        values = {each.get(name, "nothing") for each in settings}
        if len(values) > 1:
            different.append(f"{name} ({', '.join(sorted(values))})")
    if different:
        yield f"{who} differ in {'; '.join(different)}."


def flat(value: Any, name: str = "") -> dict[str, str]:
    """Nested settings as one level of names and texts.

    >>> flat({"critic": {"type": "HC", "units": [64, 64]}})
    {'critic.type': 'HC', 'critic.units': '[64, 64]'}
    """
    if isinstance(value, Mapping):
        inner = [flat(each, f"{name}.{key}" if name else str(key)) for key, each in value.items()]
        return {key: text for part in inner for key, text in part.items()}
    return {name: value if isinstance(value, str) else json.dumps(value)}


def _doubled(runs: Sequence[Run]) -> Iterable[str]:
    names = [run.name for run in runs]
    for name in sorted({name for name in names if names.count(name) > 1}):
        yield f"There is more than one run called {name}."


def _count(runs: Sequence[Run]) -> str:
    return f"{len(runs)} runs were" if len(runs) > 1 else "One run was"
