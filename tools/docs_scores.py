"""Tables of what runs reached: their scores, or their returns after so many steps."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache
from itertools import product
from pathlib import Path
from statistics import fmean

from belated.analysis.comparison import difference
from belated.analysis.runs import Run, by_task, find_runs
from belated.analysis.statistics import estimate, mean
from belated.analysis.summary import Group, summarise
from belated.analysis.summary_files import markdown_table
from belated.analysis.wording import as_number, between, signed

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "results"


def score_table(asked: str) -> str:
    """The scores of some methods, "FOLDER+FOLDER METHOD METHOD ..." and perhaps ", each seed".

    There is a column for each task. A cell is the mean score over seeds with its interval, and how
    many seeds there are; or the score of each seed. A run's score is the mean of its evaluations in
    the last fifth of its steps.
    """
    names, _, how = asked.partition(", ")
    folder, *methods = names.split()
    summary = summarise(runs_of(*folder.split("+")), mixed=True)
    require(methods, summary.methods, folder)
    rows = [
        [f"`{method}`", *(_cell(summary.group(task, method), how) for task in summary.tasks)]
        for method in methods
    ]
    return markdown_table(["", *_short(summary.tasks)], rows)


def _short(tasks: list[str]) -> list[str]:
    """Names of tasks without what makes them late, if that tells them apart."""
    short = [task.partition("-")[0] for task in tasks]
    return short if len({*short}) == len(short) else tasks


def _cell(group: Group | None, how: str) -> str:
    if group is None:
        return ""
    if how == "each seed":
        return typeset(", ".join(map(as_number, group.scores)))
    return typeset(
        f"{as_number(group.mean.value)}{between(group.mean)}, {_seeds(len(group.scores))}"
    )


def difference_table(asked: str) -> str:
    """What changes make of a method, "FOLDER BASE METHOD METHOD ..., until 60k".

    The first row has the base's mean score on each task, the others how far from it theirs are,
    with intervals and numbers of seeds. Several folders are joined by "+"; "until" leaves out what
    came after so many steps.
    """
    names, _, until = asked.partition(", until ")
    folders, base, *methods = names.split()
    runs = runs_of(*folders.split("+"))
    if until:
        runs = [cut(run, 1_000 * int(until.removesuffix("k"))) for run in runs]
    require([base, *methods], [run.method for run in runs], folders)
    grouped = {task: own for task, own in by_task(runs).items() if own.keys() & {*methods}}
    rows = [
        [f"`{method}`", *(_against(own, base, method) for own in grouped.values())]
        for method in (base, *methods)
    ]
    return markdown_table(["", *_short([*grouped])], rows)


def _against(runs: dict[str, list[Run]], base: str, method: str) -> str:
    """A method's scores on a task less the base's; the base's own as they are."""
    theirs, own = ([run.score() for run in runs.get(name, [])] for name in (base, method))
    if not theirs or not own:
        return ""
    if method == base:
        found, write = estimate([own], mean), as_number
    else:
        found, write = difference([own], [theirs]), signed
    return typeset(f"{write(found.value)}{between(found, write)}, {_seeds(len(own))}")


def _seeds(number: int) -> str:
    return f"{number} seed{'s' * (number > 1)}"


def cut(run: Run, steps: int) -> Run:
    """A run as if it had ended after so many steps."""
    return replace(run, rows=tuple(row for row in run.rows if row["step"] <= steps))


def curve_table(asked: str) -> str:
    """What was seen on the way: "FOLDER+FOLDER METHOD ..., at 20k 40k ..." and perhaps more.

    ", of COLUMN" is another column of ``progress.csv`` than the mean return; with ", mean" there is
    a row for each method, the mean over its seeds, not one for each run. Where there are several
    tasks, rows name theirs; ", on TASK" leaves out the others. Runs that have none of the numbers
    are left out.
    """
    names, *options = asked.split(", ")
    folder, *methods = names.split()
    column, marks, averaged, only = "return_mean", [], False, ""
    for option in options:
        word, *rest = option.split()
        if word == "at":
            marks = rest
        elif word == "of":
            (column,) = rest
        elif word == "on":
            (only,) = rest
        elif word == "mean":
            averaged = True
        else:
            raise ValueError(f"A table of curves has no option {option!r}.")
    runs = [run for run in runs_of(*folder.split("+")) if only in ("", run.task)]
    require(methods, [run.method for run in runs], folder)
    grouped = by_task(runs)
    tasks = _short([*grouped]) if len(grouped) > 1 else [""]
    steps = [1_000 * int(mark.removesuffix("k")) for mark in marks]
    rows = []
    for (task, own), method in product(zip(tasks, grouped.values(), strict=True), methods):
        curves = [[_at(run, column, step) for step in steps] for run in own.get(method, [])]
        labels = [run.seed for run in own.get(method, [])]
        if averaged and curves:
            labels = [len(curves)]
            curves = [[fmean(values) for values in zip(*curves, strict=True)]]
        for label, values in zip(labels, curves, strict=True):
            if all(map(math.isnan, values)):
                continue
            row = [f"`{method}`", str(label), *map(_number, values)]
            rows.append([task, *row] if task else row)
    header = ["method", "seeds" if averaged else "seed", *marks]
    return markdown_table(["task", *header] if len(grouped) > 1 else header, rows)


def _at(run: Run, column: str, step: int) -> float:
    """A run's value at a step; NaN if there is none."""
    curve = run.curve(column)
    return next(
        (float(v) for s, v in zip(curve.steps, curve.values, strict=True) if s == step),
        float("nan"),
    )


def _number(value: float) -> str:
    return "" if value != value else typeset(as_number(value))


@cache
def runs_of(*folders: str) -> list[Run]:
    """The runs of some folders of results/; a folder may have none yet."""
    with_runs = [RESULTS / name for name in folders if any((RESULTS / name).rglob("progress.csv"))]
    return find_runs(with_runs) if with_runs else []


def require(wanted: list[str], there: list[str], place: str) -> None:
    """Refuse to make a table of methods that are not there."""
    if missing := {*wanted} - {*there}:
        raise ValueError(f"results/{place} has no runs of {', '.join(sorted(missing))}.")


def typeset(numbers: str) -> str:
    """Numbers with a proper minus."""
    return numbers.replace("-", "−")
