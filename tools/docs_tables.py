"""Fill in the tables of scores in README, docs and results from the runs in results/.

A table stands between two comments, and the first says what is in it:

    <!-- scores: FOLDER METHOD METHOD ... -->
    <!-- scores: FOLDER METHOD METHOD ..., each seed -->
    <!-- end -->

FOLDER is one of results/. There is a column for each task. A cell is the mean score over seeds with
its interval, and how many seeds there are; or the score of each seed. A run's score is the mean of
its evaluations in the last fifth of its steps.
"""

from __future__ import annotations

import re
import sys
from functools import cache
from pathlib import Path

from belated.analysis.runs import find_runs
from belated.analysis.summary import Group, Summary, summarise
from belated.analysis.summary_files import markdown_table
from belated.analysis.wording import as_number, between

ROOT = Path(__file__).resolve().parents[1]
PLACE = re.compile(r"(<!-- scores: (.*?) -->\n).*?(<!-- end -->)", re.DOTALL)


def pages() -> list[Path]:
    """The pages that may have tables."""
    return [ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), ROOT / "results" / "README.md"]


def filled(text: str) -> str:
    """A page with its tables as the runs have them."""
    return PLACE.sub(lambda found: f"{found[1]}{table(found[2])}\n{found[3]}", text)


def table(asked: str) -> str:
    """The table that a comment asks for."""
    names, _, how = asked.partition(", ")
    folder, *methods = names.split()
    summary = summary_of(folder)
    if missing := {*methods} - {*summary.methods}:
        raise ValueError(f"results/{folder} has no runs of {', '.join(sorted(missing))}.")
    rows = [
        [f"`{method}`", *(_cell(summary.group(task, method), how) for task in summary.tasks)]
        for method in methods
    ]
    return markdown_table(["", *(task.partition("-")[0] for task in summary.tasks)], rows)


@cache
def summary_of(folder: str) -> Summary:
    """What the runs of a folder say."""
    return summarise(find_runs([ROOT / "results" / folder]), mixed=True)


def _cell(group: Group | None, how: str) -> str:
    if group is None:
        return ""
    if how == "each seed":
        return ", ".join(map(as_number, group.scores)).replace("-", "−")
    seeds = f"{len(group.scores)} seed{'s' * (len(group.scores) > 1)}"
    return f"{as_number(group.mean.value)}{between(group.mean)}, {seeds}".replace("-", "−")


def main() -> int:
    """Write the tables, or with --check say which pages are out of date."""
    late = [page for page in pages() if filled(page.read_text()) != page.read_text()]
    for page in late:
        print(page.relative_to(ROOT))
        if "--check" not in sys.argv:
            page.write_text(filled(page.read_text()))
    return 1 if late and "--check" in sys.argv else 0


if __name__ == "__main__":
    sys.exit(main())
