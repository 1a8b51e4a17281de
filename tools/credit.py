"""Measure how well the credit of finished runs tells which steps earned the reward.

    python tools/credit.py runs/crossq runs/comparison

adds a line for each run in these folders of comparisons to results/credit.json: the mean
correlation of its credit with the hidden per-step reward, over five episodes of its own policy.
Only runs whose networks are still there can be measured, so it is done before their curves are all
that is kept.
"""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from typing import Any

from docs_scores import RESULTS, require, typeset
from rich.progress import track

from belated.analysis.runs import find_runs
from belated.analysis.summary_files import markdown_table
from belated.experiments.reproduce.credit import correlation_of
from belated.training import checkpoint
from belated.training.run import read_settings

FILE = RESULTS / "credit.json"
KEY = ("folder", "task", "method", "seed")


def measure(place: Path) -> list[dict[str, Any]]:
    """A line for each finished run of a comparison that has networks and tells credit."""
    lines = []
    for run in track(find_runs([place]), description=place.name):
        settings = read_settings(run.folder)
        done = run.steps >= settings.total_steps and checkpoint.exists(run.folder)
        if done and settings.make_method().backbone.tells_credit:
            value = correlation_of(run.folder)
            if not math.isnan(value):
                who = (place.name, run.task, run.method, run.seed)
                lines.append(dict(zip(KEY, who, strict=True)) | {"correlation": round(value, 4)})
    return lines


def merged(old: list[dict[str, Any]], new: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """All lines, a newer one instead of an older one of the same run."""
    found = {tuple(line[name] for name in KEY): line for line in [*old, *new]}
    return [found[key] for key in sorted(found)]


def credit_table(asked: str) -> str:
    """The correlations of each seed: "FOLDER+FOLDER METHOD METHOD ..."; a column for each task."""
    folders, *methods = asked.split()
    lines = [o for o in json.loads(FILE.read_text()) if o["folder"] in folders.split("+")]
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
    new = [line for place in sys.argv[1:] for line in measure(Path(place))]
    lines = merged(old, new)
    FILE.write_text("[\n" + ",\n".join(map(json.dumps, lines)) + "\n]\n")
    print("\n".join(map(json.dumps, new)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
