"""A summary as files: JSON, Markdown, tables, curves, a picture and a page."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from belated.analysis.intervals import Estimate
from belated.analysis.runs import LAST_PART, Run
from belated.analysis.summary import Summary
from belated.analysis.wording import as_number, with_interval


def write_summary(summary: Summary, folder: Path) -> None:
    """Write summary.json, summary.md, curves.csv, curves.png and report.html to a folder."""
    from belated.analysis.figures import learning_curves
    from belated.analysis.report import write_report

    (folder / "summary.json").write_text(json.dumps(as_json(summary), indent=2) + "\n")
    (folder / "summary.md").write_text(as_markdown(summary))
    write_curves(summary.runs, folder / "curves.csv", summary.column)
    learning_curves(summary.runs, folder / "curves.png", column=summary.column)
    write_report(summary, folder / "report.html")


def as_json(summary: Summary) -> dict[str, Any]:
    """The summary as plain values; what is not known is None."""
    return {
        "metric": summary.column,
        "score": f"mean of the evaluations in the last {LAST_PART:.0%} of the steps",
        "groups": [
            {
                "task": group.task,
                "method": group.method,
                "steps": group.steps,
                "seeds": [run.seed for run in group.runs],
                "returns": list(group.scores),
                "mean": _plain(group.mean),
                "iqm": _plain(group.iqm),
                "median": _plain(group.median),
                "area_under_curve": _plain(group.area),
                "relative_to_oracle": group.relative,
                "steps_per_second": _finite(group.speed),
            }
            for group in summary.groups
        ],
        "primary": None if summary.primary is None else list(summary.primary),
        "comparisons": [
            {
                "where": each.where,
                "difference": None if each.difference is None else _plain(each.difference),
                "p": _finite(each.p),
                "probability_of_improvement": _plain(each.improvement),
                "smallest_difference": _finite(each.smallest),
                "verdict": each.verdict,
            }
            for each in summary.comparisons
        ],
        "notes": list(summary.notes),
    }


def _plain(estimate: Estimate) -> dict[str, float | None]:
    return {name: _finite(value) for name, value in estimate._asdict().items()}


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def as_markdown(summary: Summary) -> str:
    """The summary as a page of Markdown: a table for each task, the verdicts, the notes."""
    parts = []
    for task in summary.tasks:
        parts.append(f"## {task}\n\n{markdown_table(*score_table(summary, task))}")
    verdicts = [f"- {each.where}: {each.verdict}." for each in summary.comparisons]
    if verdicts:
        parts.append("## Verdict\n\n" + "\n".join(verdicts))
    if summary.notes:
        parts.append("## Notes\n\n" + "\n".join(f"- {note}" for note in summary.notes))
    what = f"Scores: {summary.column}, the mean over the last {LAST_PART:.0%} of the steps."
    return "\n\n".join([what + " In brackets 95 % intervals.", *parts]) + "\n"


def score_table(
    summary: Summary, task: str, *, with_oracle: bool = False
) -> tuple[list[str], list[list[str]]]:
    """The scores on one task: the header and the rows, as text.

    Args:
        summary: what was found.
        task: which task.
        with_oracle: have a column for shares of the oracle's mean even if the task has none.
    """
    groups = [group for group in summary.groups if group.task == task]
    with_oracle = with_oracle or any(group.relative is not None for group in groups)
    header = ["method", "seeds", "steps", "mean", "IQM", "lowest", "highest"]
    header += ["of the oracle"] * with_oracle + ["steps/s"]
    rows = [
        [
            group.method,
            str(len(group.scores)),
            f"{group.steps:,}",
            with_interval(group.mean),
            with_interval(group.iqm),
            as_number(min(group.scores)),
            as_number(max(group.scores)),
            *([_share(group.relative)] if with_oracle else []),
            "" if math.isnan(group.speed) else f"{group.speed:,.0f}",
        ]
        for group in groups
    ]
    return header, rows


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _share(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


LONG_FORM = ("exp_name", "env_name", "seed", "metric", "env_step", "value")


def write_curves(runs: Sequence[Run], path: Path, *columns: str) -> Path:
    """Write curves in long form, one value a row, so that they overlay those of other projects."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(LONG_FORM)
        for run in runs:
            for column in columns:
                curve = run.curve(column)
                for step, value in zip(curve.steps, curve.values, strict=True):
                    writer.writerow(
                        [run.method, run.task, run.seed, column, int(step), repr(float(value))]
                    )
    return path
