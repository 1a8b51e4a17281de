"""``belated plot``: learning curves of runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import tyro
from rich.console import Console

from belated.analysis.figures import learning_curves
from belated.analysis.runs import compare_origins, find_runs
from belated.analysis.summary_files import write_curves


def plot(
    runs: Annotated[list[Path], tyro.conf.Positional],
    /,
    out: Path = Path("curves.png"),
    csv: Path | None = None,
    column: str = "return_mean",
    statistic: Literal["iqm", "mean"] = "iqm",
    x: Literal["step", "wall_time"] = "step",
    smooth: int = 1,
    mixed: bool = False,
) -> int:
    """Draw learning curves of runs.

    There is a panel for each task and a line for each method, with a confidence interval over
    seeds.

    Examples:
        belated plot runs/mine
        belated plot runs/sac-s0 runs/sac-s1 --out curves.svg --csv curves.csv
        belated plot runs --column length_mean --statistic mean --smooth 3

    Args:
        runs: Run folders, or folders that hold them.
        out: The picture to write; its suffix is its format: .png, .svg or .pdf.
        csv: Also write the curves as a table, one value a row, in the long form that other
            projects' plots read (exp_name, env_name, seed, metric, env_step, value).
        column: Which column of progress.csv to draw; docs/metrics.md explains them.
        statistic: The bold lines over seeds: the interquartile mean (the mean of the middle half),
            or the mean.
        x: The horizontal axis: steps, or the time spent learning.
        smooth: Average so many evaluations of each run, an odd number; the picture says so.
        mixed: Go on if the runs are from different code, versions or settings.
    """
    console = Console()
    found = find_runs(runs)
    for note in compare_origins(found, mixed=mixed):
        console.print(f"Note: {note}", markup=False)
    picture = learning_curves(found, out, column=column, statistic=statistic, x=x, smooth=smooth)
    console.print(f"Picture of {len(found)} runs: {picture}", markup=False, soft_wrap=True)
    if csv is not None:
        console.print(f"Curves: {write_curves(found, csv, column)}", markup=False, soft_wrap=True)
    return 0
