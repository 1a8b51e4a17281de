"""What the experiments have in common: a grid to run, a figure to draw, a table to write."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from belated.analysis.figures import draw_curves
from belated.analysis.summary import Summary
from belated.analysis.summary_files import markdown_table, score_table
from belated.experiments.grid import Contender, Grid, LateTask

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PAPER_TASKS = ("Hopper", "HalfCheetah", "Walker2d", "Ant", "Reacher")
LOCOMOTION = ("Hopper", "HalfCheetah", "Walker2d", "Ant")
HC_METHODS = ("hc-singleton", "hc-pairwise-1", "hc-pairwise-3", "hc-rnn")

Cells = tuple[list[str], list[list[str]]]
"""A table: its header and its rows, as text."""


@dataclass(frozen=True)
class Scale:
    """How large an experiment is; None for the experiment's own, which is the paper's.

    Attributes:
        steps: of each run.
        seeds: how many.
        tasks: names of the paper's environments (``"Hopper"``) or any Gymnasium ids.
        methods: names of methods.
        learning_starts: how many random steps come first.
        eval_every: steps between evaluations.
        eval_episodes: episodes in each evaluation.
        set: hyperparameters of all runs.
    """

    steps: int | None = None
    seeds: int | None = None
    tasks: Sequence[str] | None = None
    methods: Sequence[str] | None = None
    learning_starts: int | None = None
    eval_every: int | None = None
    eval_episodes: int = 10
    set: Mapping[str, Any] = field(default_factory=dict)


class Experiment:
    """A figure of the paper, or one of ours; the docstring says what it shows.

    Subclasses say what differs: tasks, methods, how the tasks are delayed, and how the outcome is
    drawn.
    """

    name: ClassVar[str]
    tasks: ClassVar[tuple[str, ...]] = PAPER_TASKS
    methods: ClassVar[tuple[str, ...]]
    steps: ClassVar[int] = 1_000_000
    seeds: ClassVar[int] = 7
    primary: ClassVar[tuple[str, str] | None] = None
    metric: ClassVar[str] = "return_mean"
    label: ClassVar[str] = "return"
    interval: ClassVar[str] = "20"

    def late(self, env: str) -> Iterable[LateTask]:
        """How an environment is delayed: in one or more ways."""
        yield delayed(env, self.interval)

    def contend(self, method: str) -> Iterable[Contender]:
        """In which forms a method takes part: in one or more."""
        yield Contender(method)

    def grid(self, scale: Scale) -> Grid:
        """The runs to do."""
        steps = scale.steps or self.steps
        methods = tuple(c for name in scale.methods or self.methods for c in self.contend(name))
        names = {contender.name for contender in methods}
        return Grid.of(
            tasks=[task for env in scale.tasks or self.tasks for task in self.late(full_id(env))],
            methods=methods,
            seeds=scale.seeds or self.seeds,
            steps=steps,
            set=scale.set,
            learning_starts=scale.learning_starts,
            eval_every=scale.eval_every or max(1, min(steps // 20, 10_000)),
            eval_episodes=scale.eval_episodes,
            primary=self.primary if names >= {*(self.primary or ())} else None,
            metric=self.metric,
        )

    def draw(self, summary: Summary) -> dict[str, Figure]:
        """The figures, by what is added to the experiment's name: nothing for the main one."""
        return {"": draw_curves(summary.runs, column=self.metric, label=self.label)}

    def table(self, summary: Summary) -> Cells:
        """The numbers behind the figure."""
        header: list[str] = []
        rows: list[list[str]] = []
        with_oracle = any(group.relative is not None for group in summary.groups)
        for task in summary.tasks:
            own_header, own_rows = score_table(summary, task, with_oracle=with_oracle)
            header = ["task", *own_header]
            rows += [[task, *row] for row in own_rows]
        return header, rows


def delayed(env: str, interval: str, reward: str = "sum", overlap: int = 0) -> LateTask:
    """A delayed environment, named as the paper's tasks are.

    >>> delayed("Hopper-v5", "15:20", overlap=5).name
    'Hopper-sum-n15to20-c5'
    """
    name = f"{short_name(env)}-{reward}-n{interval.replace(':', 'to')}"
    return LateTask(env, interval, reward, overlap, name=name + f"-c{overlap}" * (overlap > 0))


def short_name(env: str) -> str:
    """What an environment is called in names of tasks.

    >>> short_name("HalfCheetah-v5"), short_name("my_module:Plant-v0")
    ('HalfCheetah', 'Plant')
    """
    return env.rpartition(":")[2].rpartition("/")[2].rpartition("-v")[0] or env


def full_id(env: str) -> str:
    """Gymnasium's id of one of the paper's environments; any other name is an id already.

    >>> full_id("Hopper"), full_id("Pendulum-v1")
    ('Hopper-v5', 'Pendulum-v1')
    """
    return f"{env}-v5" if env in PAPER_TASKS else env


def write_table(cells: Cells, stem: Path) -> None:
    """Write a table as Markdown and as CSV."""
    header, rows = cells
    stem.with_suffix(".md").write_text(markdown_table(header, rows) + "\n")
    with stem.with_suffix(".csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(header)
        writer.writerows(rows)
