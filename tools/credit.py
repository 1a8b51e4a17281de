"""Measure how well the credit of finished runs tells which steps earned the reward.

    python tools/credit.py runs/crossq runs/comparison

adds a line for each run below these folders to results/credit.json: the mean correlation of its
credit with the hidden per-step reward, over five episodes of its own policy. Only runs whose
networks are still there can be measured, so it is done before their curves are all that is kept.
"""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from typing import Any

from docs_scores import RESULTS, require, typeset
from rich.progress import track

from belated.analysis.runs import Run, find_runs
from belated.analysis.summary_files import markdown_table
from belated.experiments.reproduce.credit import correlation_of
from belated.training import checkpoint

FILE = RESULTS / "credit.json"
KEY = ("task", "method", "seed")


def measure(runs: list[Run]) -> list[dict[str, Any]]:
    """A line for each run that has networks and tells credit."""
    lines = []
    for run in track(runs, description="credit"):
        if checkpoint.exists(run.folder):
            value = correlation_of(run.folder)
            if not math.isnan(value):
                lines.append(dict(zip(KEY, (run.task, run.method, run.seed), strict=True)))
                lines[-1]["correlation"] = round(value, 4)
    return lines


def merged(old: list[dict[str, Any]], new: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """All lines, a newer one instead of an older one of the same run."""
    found = {tuple(line[name] for name in KEY): line for line in [*old, *new]}
    return [found[key] for key in sorted(found)]


def credit_table(asked: str) -> str:
    """The correlations of each seed: "METHOD METHOD ..."; there is a column for each task."""
    lines = json.loads(FILE.read_text())
    methods = asked.split()
    require(methods, [line["method"] for line in lines], FILE.name)
    tasks = sorted({line["task"] for line in lines if line["method"] in methods})
    rows = []
    for method in methods:
        own = [line for line in lines if line["method"] == method]
        cells = [[f"{o['correlation']:.2f}" for o in own if o["task"] == task] for task in tasks]
        rows.append([f"`{method}`", *(typeset(", ".join(cell)) for cell in cells)])
    return markdown_table(["", *tasks], rows)


def main() -> int:
    """Measure runs and write the file."""
    if not sys.argv[1:]:
        print(__doc__)
        return 2
    old = json.loads(FILE.read_text()) if FILE.is_file() else []
    lines = merged(old, measure(find_runs([Path(place) for place in sys.argv[1:]])))
    FILE.write_text("[\n" + ",\n".join(map(json.dumps, lines)) + "\n]\n")
    print(credit_table(" ".join(dict.fromkeys(line["method"] for line in lines))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
