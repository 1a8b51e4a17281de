"""What a set of runs says: scores with intervals, and a verdict on the declared comparison."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean

import numpy as np

from belated.analysis import comparison, statistics
from belated.analysis.intervals import Estimate
from belated.analysis.runs import Run, by_task, compare_origins
from belated.analysis.wording import as_number, between, signed

REACHER_OFFSET = 50.0
"""Reacher's returns are negative; the paper adds this before it divides them."""
SIGNIFICANT = 0.05


@dataclass(frozen=True)
class Group:
    """One method on one task.

    Attributes:
        task: the task.
        method: the method.
        runs: one for each seed.
        scores: of each run, the mean over the last fifth of its steps.
        mean: over the seeds.
        iqm: the interquartile mean.
        median: over the seeds.
        area: the mean height of the learning curves.
        relative: the mean as a share of the oracle's on the same task, if it has one that can be
            divided by.
        speed: steps in a second of learning.
    """

    task: str
    method: str
    runs: tuple[Run, ...]
    scores: tuple[float, ...]
    mean: Estimate
    iqm: Estimate
    median: Estimate
    area: Estimate
    relative: float | None
    speed: float

    @property
    def steps(self) -> int:
        """How many steps each run has."""
        return max(run.steps for run in self.runs)


@dataclass(frozen=True)
class Comparison:
    """Two methods, on one task or, with tasks weighing the same, on all of them.

    Attributes:
        where: the task's name, or "all tasks".
        difference: of the means; None for all tasks, whose returns have no common scale.
        p: of the permutation test, two-sided.
        improvement: the probability that a run of the first is above one of the second.
        smallest: the smallest difference that the seeds would have shown four times out of five.
        verdict: all of it in a sentence.
    """

    where: str
    difference: Estimate | None
    p: float
    improvement: Estimate
    smallest: float | None
    verdict: str


@dataclass(frozen=True)
class Summary:
    """Everything there is to say of a set of runs.

    Attributes:
        column: which column of ``progress.csv`` the scores are of.
        groups: by task, then by method, highest mean first.
        primary: the two methods that were to be compared.
        comparisons: of those two, on each task that has both, and on all.
        notes: what a reader should know of the runs' origins.
    """

    column: str
    groups: tuple[Group, ...]
    primary: tuple[str, str] | None
    comparisons: tuple[Comparison, ...]
    notes: tuple[str, ...]

    @property
    def runs(self) -> list[Run]:
        """All runs."""
        return [run for group in self.groups for run in group.runs]

    @property
    def tasks(self) -> list[str]:
        """The tasks, in order."""
        return list(dict.fromkeys(group.task for group in self.groups))

    @property
    def methods(self) -> list[str]:
        """The methods, in order."""
        return list(dict.fromkeys(group.method for group in self.groups))

    def group(self, task: str, method: str) -> Group | None:
        """The runs of one method on one task, if there are any."""
        found = [g for g in self.groups if (g.task, g.method) == (task, method)]
        return found[0] if found else None


def summarise(
    runs: Sequence[Run],
    primary: tuple[str, str] | None = None,
    *,
    column: str = "return_mean",
    mixed: bool = False,
    notes: Sequence[str] = (),
) -> Summary:
    """Put runs together.

    Args:
        runs: the runs.
        primary: two methods to compare; the comparison should be chosen before the runs are.
        column: which column of ``progress.csv`` to look at.
        mixed: put them together even if they are from different code or settings.
        notes: what else a reader should know.

    Raises:
        ValueError: if they should not be compared and ``mixed`` is False, or if none has the
            column.
    """
    notes = [*notes, *compare_origins(runs, mixed=mixed)]
    without = [run.name for run in runs if math.isnan(run.score(column))]
    if len(without) == len(runs):
        columns = sorted({name for run in runs for row in run.rows for name in row})
        raise ValueError(f"No run has a {column}; the columns are {', '.join(columns)}.")
    if without:
        notes.append(f"Without any {column}, and left out: {', '.join(without)}.")
    groups: list[Group] = []
    for task, methods in by_task(run for run in runs if run.name not in without).items():
        # The plain one first: what all others are measured against.
        oracles = sorted((name for name in methods if is_oracle(name)), key=len)
        oracle = methods[oracles[0]] if oracles else None
        own = [_group(task, method, those, oracle, column) for method, those in methods.items()]
        groups += sorted(own, key=lambda group: -group.mean.value)
    summary = Summary(column, tuple(groups), primary, (), tuple(notes))
    if primary is None:
        return summary
    others = [method for method in summary.methods if method not in primary]
    if others:
        notes.append(
            f"The verdict is about {primary[0]} and {primary[1]}; {', '.join(others)} "
            f"{'was' if len(others) == 1 else 'were'} not part of that comparison."
        )
    comparisons = tuple(_compare(summary, *primary))
    return replace(summary, comparisons=comparisons, notes=tuple(notes))


def is_oracle(method: str) -> bool:
    """Whether a method learns from the hidden reward."""
    return method == "oracle" or method.endswith("-oracle")


def _group(
    task: str, method: str, runs: Sequence[Run], oracle: Sequence[Run] | None, column: str
) -> Group:
    scores = [run.score(column) for run in runs]
    curves = [run.curve(column) for run in runs]
    areas = [statistics.area_under_curve(curve.steps, curve.values) for curve in curves]
    relative = None
    if oracle is not None and column == "return_mean":
        relative = _relative(fmean(scores), fmean(run.score(column) for run in oracle), task)
    return Group(
        task=task,
        method=method,
        runs=tuple(runs),
        scores=tuple(scores),
        mean=statistics.estimate([scores], statistics.mean),
        iqm=statistics.estimate([scores], statistics.iqm),
        median=statistics.estimate([scores], lambda strata: float(np.median(strata[0]))),
        area=statistics.estimate([areas], statistics.mean),
        relative=relative,
        speed=float(np.median([run.speed for run in runs])),
    )


def _relative(score: float, oracle: float, task: str) -> float | None:
    offset = offset_of(task)
    if oracle + offset <= 0:
        return None  # a share of a loss means nothing
    return statistics.relative_performance(score, oracle, offset=offset)


def offset_of(task: str) -> float:
    """What is added to a task's returns before they are divided by the oracle's."""
    return REACHER_OFFSET if task.startswith("Reacher") else 0.0


def _compare(summary: Summary, first: str, second: str) -> list[Comparison]:
    pairs = [
        (task, a, b)
        for task in summary.tasks
        if (a := summary.group(task, first)) and (b := summary.group(task, second))
    ]
    found = [_on_one_task(task, a, b) for task, a, b in pairs]
    if len(pairs) > 1:
        found.append(_on_all_tasks(first, second, [(a, b) for _, a, b in pairs]))
    return found


def _on_one_task(task: str, a: Group, b: Group) -> Comparison:
    one, two = [a.scores], [b.scores]
    difference = comparison.difference(one, two)
    p = comparison.permutation_test(one, two)
    smallest = comparison.smallest_difference(a.scores, b.scores)
    possible = comparison.smallest_p([len(a.scores)], [len(b.scores)])
    seen = f"{signed(difference.value)}{between(difference, signed)}, p = {p:.2g}"
    if min(len(a.scores), len(b.scores)) < 2:
        verdict = f"one seed cannot tell {a.method} from {b.method} ({signed(difference.value)})"
    elif p < SIGNIFICANT:
        side = "above" if difference.value > 0 else "below"
        verdict = f"{a.method} is {side} {b.method}: {seen}"
    elif possible >= SIGNIFICANT:
        verdict = (
            f"too few seeds for a verdict, whatever the difference (p cannot be below "
            f"{possible:.2g}); {a.method} against {b.method}: {seen}"
        )
    else:
        verdict = (
            f"no difference shown between {a.method} and {b.method}: {seen}; one of less than "
            f"about {as_number(smallest)} would probably have been missed"
        )
    improvement = comparison.probability_of_improvement(one, two)
    return Comparison(task, difference, p, improvement, smallest, verdict)


def _on_all_tasks(first: str, second: str, pairs: Sequence[tuple[Group, Group]]) -> Comparison:
    one, two = [a.scores for a, _ in pairs], [b.scores for _, b in pairs]
    p = comparison.permutation_test(one, two)
    improvement = comparison.probability_of_improvement(one, two)
    chance = f"{improvement.value:.0%}"
    if not math.isnan(improvement.low):
        chance += f" ({improvement.low:.0%} to {improvement.high:.0%})"
    if p < SIGNIFICANT:
        side = "above" if comparison.standardised_difference(one, two) > 0 else "below"
        verdict = f"over all {len(pairs)} tasks {first} is {side} {second}, p = {p:.2g}"
    else:
        verdict = f"no difference shown over all {len(pairs)} tasks, p = {p:.2g}"
    verdict += f"; a run of {first} is above one of {second} with probability {chance}"
    return Comparison("all tasks", None, p, improvement, None, verdict)
