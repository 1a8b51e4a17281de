"""Draw the curves of a folder of runs and print their table, as Markdown."""

from __future__ import annotations

import csv
from collections import defaultdict
from pathlib import Path
from statistics import fmean
from typing import Annotated

import tyro

from belated.analysis.figures import learning_curves

Row = tuple[str, str, dict[float, float]]  # method, seed, and what to show at which step


def with_means(rows: list[Row]) -> list[Row]:
    """A row for each method, with the number of its seeds and their mean."""
    by_method: dict[str, list[dict[float, float]]] = defaultdict(list)
    for method, _, shown in rows:
        by_method[method].append(shown)
    return [
        (method, str(len(runs)), {step: fmean(run[step] for run in runs) for step in runs[0]})
        for method, runs in by_method.items()
    ]


def main(
    folder: Annotated[Path, tyro.conf.Positional],
    /,
    column: str = "return_mean",
    label: str = "return",
    title: str = "",
    every: int = 20_000,
    means: bool = False,
) -> None:
    """Summarise every METHOD-sSEED/progress.csv of a folder; the picture is FOLDER/curves.png.

    Args:
        folder: Where the runs are.
        column: Which column of progress.csv to show.
        label: What it is, in words.
        title: What was learned.
        every: The steps between two columns of the table.
        means: A row for each method, with the mean over its seeds, instead of one for each run.
    """
    curves: dict[str, list[list[dict[str, float]]]] = defaultdict(list)
    rows: list[Row] = []
    for path in sorted(folder.glob("*-s*/progress.csv")):
        method, _, seed = path.parent.name.rpartition("-s")
        with path.open() as file:
            rows_with_it = [row for row in csv.DictReader(file) if row[column]]
        run = [{k: float(v or "nan") for k, v in row.items()} for row in rows_with_it]
        curves[method].append(run)
        shown = {row["step"]: row[column] for row in run if row["step"] % every == 0}
        rows.append((method, seed, shown))
    if not rows:
        raise SystemExit(f"There is no METHOD-sSEED/progress.csv in {folder}.")
    steps = sorted(rows[0][2])
    print(f"| method | seed{'s' * means} |" + "".join(f" {step / 1000:g}k |" for step in steps))
    print("|---|---|" + "---|" * len(steps))
    for method, seed, shown in with_means(rows) if means else rows:
        print(f"| {method} | {seed} |" + "".join(f" {shown[step]:,.0f} |" for step in steps))
    learning_curves(curves, folder / "curves.png", column=column, label=label, title=title)


if __name__ == "__main__":
    tyro.cli(main)
