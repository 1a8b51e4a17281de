"""Tables of claims: verdicts on those of results/claims.toml, and the comparisons behind them.

A claim is confirmed if the interval of every difference is on the claimed side of 0, refuted if
that of one is on the other side, and open otherwise, or as long as declared runs are missing.
"""

from __future__ import annotations

import math
import re
import tomllib
from collections import Counter
from dataclasses import dataclass
from functools import cache

from docs_scores import RESULTS, ROOT, runs_of, typeset

from belated.analysis.comparison import difference, smallest_difference
from belated.analysis.runs import Run
from belated.analysis.statistics import Estimate, estimate, mean
from belated.analysis.summary import Summary, summarise
from belated.analysis.summary_files import markdown_table
from belated.analysis.wording import as_number, between, signed
from belated.experiments.grid import Grid


@dataclass(frozen=True)
class Compared:
    """One difference that a claim is about.

    Attributes:
        what: of what.
        task: on which task.
        missing: how many runs that were declared for it are not there yet.
        seeds: how many each side has.
        difference: with its interval; None if one side has no runs at all.
        smallest: the smallest difference that so many seeds would probably have shown.
    """

    what: str
    task: str
    missing: int
    seeds: str = ""
    difference: Estimate | None = None
    smallest: float = math.nan

    @property
    def side(self) -> int:
        """1 if the difference is shown to be on the claimed side of 0, −1 on the other, else 0.

        Nothing is shown before all runs are there: who may stop as it suits finds what he likes.
        """
        if self.missing or self.difference is None or math.isnan(self.difference.low):
            return 0
        return int(self.difference.low > 0) - int(self.difference.high < 0)


@cache
def claims() -> dict[str, dict[str, object]]:
    """All claims by name."""
    found: dict[str, dict[str, object]] = tomllib.loads((RESULTS / "claims.toml").read_text())
    return found


def claims_table(of: str) -> str:
    """All claims of the paper, or of ours, with verdicts."""
    rows = [
        [name, f"{claim['says']} ({claim['place']})", f"**{verdict}**", seen]
        for name, claim in claims_of(of).items()
        for verdict, seen in [verdict_on(name)]
    ]
    return markdown_table(["", "claim", "verdict", "what was seen"], rows)


def claims_of(of: str) -> dict[str, dict[str, object]]:
    """The claims of the paper, or ours, by name."""
    return {name: claim for name, claim in claims().items() if claim["of"] == of}


def verdict_on(name: str) -> tuple[str, str]:
    """A verdict, and what it rests on in a few words."""
    if "theory" in claims()[name]:
        return _verdict_of_the_theory(name)
    compared = comparisons(name)
    sides = [each.side for each in compared]
    counts = {
        "as claimed": sides.count(1),
        "the other way round": sides.count(-1),
        "not told apart": sum(not each.side and not each.missing for each in compared),
        "not run to the end": sum(each.missing > 0 for each in compared),
    }
    seen = ", ".join(f"{count} {what}" for what, count in counts.items() if count)
    seen = f"of {len(compared)} comparisons {seen}" if len(compared) > 1 else seen[2:]
    if -1 in sides:
        return "refuted", seen
    return ("confirmed" if all(side == 1 for side in sides) else "open"), seen


def _verdict_of_the_theory(name: str) -> tuple[str, str]:
    """What docs/theory.md has found, whose table the tests compare with the checks themselves."""
    claim = claims()[name]
    rows = [row for row in theory_rows() if row[0] == claim["theory"]]
    if "condition" in claim:
        rows = [row for row in rows if row[1] == claim["condition"]]
    if not rows:
        raise ValueError(f"docs/theory.md says nothing about {name}.")
    failed = [row for row in rows if (row[2] == "yes") == bool(claim.get("denies"))]
    seen = [row[3] for row in failed or rows if row[3]][:1]
    if "instead" in claim:
        seen.append(str(claim["instead"]))
    return ("refuted" if failed else "confirmed"), "; ".join(seen) or "exact, by enumeration"


@cache
def theory_rows() -> list[tuple[str, str, str, str]]:
    """The rows of the table in docs/theory.md: claim, condition, whether it holds, evidence."""
    rows, current = [], ""
    for line in (ROOT / "docs/theory.md").read_text().splitlines():
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        if len(cells) == 4 and cells[2].strip("*") in ("yes", "no"):
            named = re.match(r"\*\*(.*?)\*\*", cells[0])
            current = named[1] if named else current
            rows.append((current, cells[1], cells[2].strip("*"), cells[3]))
    return rows


@cache
def comparisons(name: str) -> list[Compared]:
    """Every difference that a claim about learning is about."""
    claim = claims()[name]
    folders, pairs = claim["folders"], claim.get("pairs")
    assert isinstance(folders, list)
    planned = declared(*folders)
    tasks = claim.get("tasks") or list(dict.fromkeys(task for task, _ in planned))
    assert isinstance(tasks, list)
    runs = runs_of(*folders)
    if pairs is None:
        return [_between_columns(str(claim["columns"]), task, runs, planned) for task in tasks]
    assert isinstance(pairs, list)
    metric = str(claim.get("metric", "return_mean"))
    summary = summarise(runs, column=metric, mixed=True) if runs else None
    return [_compared(pair, task, summary, planned) for pair in pairs for task in tasks]


@cache
def declared(*folders: str) -> Counter[tuple[str, str]]:
    """How many runs of each method on each task the grids of some folders declare."""
    grids = [Grid.read(RESULTS / name / "grid.toml") for name in folders]
    runs = [run.settings for grid in grids for run in grid.runs()]
    return Counter((str(run.task), str(run.label)) for run in runs)


def _compared(
    pair: str, task: str, summary: Summary | None, planned: Counter[tuple[str, str]]
) -> Compared:
    """The comparison that "A > B" or "A > 0.95 B" asks for."""
    first, right = pair.split(" > ")
    *factors, second = right.split()
    factor = float(factors[0]) if factors else 1.0
    what = f"`{first}` − {' × '.join([*factors, f'`{second}`'])}"
    if missing := {(task, method) for method in (first, second)} - {*planned}:
        raise ValueError(f"No grid declares {missing}, which a claim is about.")
    a, b = (summary.group(task, method) if summary else None for method in (first, second))
    due = planned[task, first] + planned[task, second]
    if a is None or b is None:
        return Compared(what, task, missing=due)
    others = [factor * score for score in b.scores]
    return Compared(
        what,
        task,
        missing=due - len(a.scores) - len(b.scores),
        seeds=f"{len(a.scores)} and {len(b.scores)}",
        difference=difference([a.scores], [others]),
        smallest=smallest_difference(a.scores, others),
    )


def _between_columns(
    pair: str, task: str, runs: list[Run], planned: Counter[tuple[str, str]]
) -> Compared:
    """The comparison of two columns of the same runs."""
    first, second = pair.split(" > ")
    what = f"`{first}` − `{second}`"
    gaps = [
        float(run.curve(first).values.mean() - run.curve(second).values.mean())
        for run in runs
        if run.task == task
    ]
    due = sum(count for (where, _), count in planned.items() if where == task)
    if not gaps:
        return Compared(what, task, missing=due)
    return Compared(what, task, due - len(gaps), str(len(gaps)), estimate([gaps], mean))


def comparison_table(of: str) -> str:
    """The comparisons behind all claims of the paper, or ours, as far as they were run."""
    rows = []
    for name, claim in claims_of(of).items():
        for each in comparisons(name) if "theory" not in claim else ():
            if each.difference is not None:
                seen = f"{signed(each.difference.value)}{between(each.difference, signed)}"
                shown = "" if math.isnan(each.smallest) else as_number(each.smallest)
                seeds = f"{each.seeds}{f', {each.missing} missing' if each.missing else ''}"
                rows.append([name, each.what, each.task, typeset(seen), seeds, shown])
    header = ["claim", "difference", "task", "seen (95 % interval)", "seeds", "would have shown"]
    return markdown_table(header, rows)
