"""``belated report``: all there is to see of some runs, on one page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console

from belated.analysis.report import write_report
from belated.analysis.runs import find_runs
from belated.analysis.summary import summarise
from belated.cli.sweep import words


def report(
    runs: Annotated[list[Path], tyro.conf.Positional],
    /,
    out: Path = Path("report.html"),
    primary: str | None = None,
    column: str = "return_mean",
    title: str = "",
    mixed: bool = False,
) -> int:
    """Write all there is to see of some runs on one page.

    It has the verdict, learning curves, tables, single runs, credit and settings, in one file of
    HTML that needs no network. Credit is shown for runs where `belated credit` was called.

    Examples:
        belated report runs/mine
        belated report runs/mine --primary hc-singleton,sac --out page.html

    Args:
        runs: Run folders, or folders that hold them.
        out: The page to write.
        primary: Two methods to compare, A,B; choose them before you see the results.
        column: Which column of progress.csv the scores and curves are of.
        title: The page's title. Empty: what was run on what.
        mixed: Go on if the runs are from different code, versions or settings.
    """
    console = Console()
    pair = None if primary is None else _pair(primary)
    summary = summarise(find_runs(runs), pair, column=column, mixed=mixed)
    for comparison in summary.comparisons:
        console.print(f"{comparison.where}: {comparison.verdict}.", markup=False)
    for note in summary.notes:
        console.print(f"Note: {note}", markup=False)
    page = write_report(summary, out, title=title)
    console.print(f"Report of {len(summary.runs)} runs: {page}", markup=False, soft_wrap=True)
    return 0


def _pair(primary: str) -> tuple[str, str]:
    names = words(primary)
    if len(names) != 2 or not all(names) or names[0] == names[1]:
        raise ValueError(f"--primary is two methods, as in hc-pairwise-1,sac; got {primary!r}.")
    return names[0], names[1]
