"""Tables of claims: verdicts on those of results/claims.toml, and the comparisons behind them.

A claim about learning is confirmed if the interval of every difference is on the claimed side of
0: that all of them are there by chance is no likelier than that one is. It is refuted if that of
one is on the other side. One of many may be there by chance, so for this the intervals of a claim
are so wide that all of them together hold in 95 of 100 cases (Bonferroni's). Otherwise it is open.
A difference counts when all runs that were declared for it are there.
"""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np
from docs_scores import RESULTS, ROOT, cut, runs_of, typeset

from belated.analysis.comparison import difference, smallest_difference
from belated.analysis.intervals import Estimate
from belated.analysis.runs import Run
from belated.analysis.statistics import Statistic, estimate, iqm, mean
from belated.analysis.summary_files import markdown_table
from belated.analysis.wording import as_number, between, signed
from belated.experiments.grid import Grid
from belated.experiments.reproduce.variance import over_training

Claim = dict[str, Any]
Verdict = tuple[str, str]
"""Confirmed, refuted or open; and what that rests on in a few words."""
Planned = dict[tuple[str, str, int], int]
"""How many steps were declared, by task, method and seed."""


# ---------------------------------------------------------------- tables


def claims_table(of: str) -> str:
    """All claims of the paper, or ours, with verdicts."""
    rows = [
        [name, f"{claim['says']} ({claim['place']})", f"**{verdict}**", seen]
        for name, claim in claims_of(of).items()
        for verdict, seen in [verdict_on(name)]
    ]
    return markdown_table(["", "claim", "verdict", "what was seen"], rows)


def comparison_table(of: str) -> str:
    """The comparisons behind all claims of the paper, or ours, as far as they were run."""
    rows = []
    for name, claim in claims_of(of).items():
        for each in comparisons(name) if {"pairs", "columns"} & {*claim} else ():
            if each.difference is not None:
                seen = f"{signed(each.difference.value)}{between(each.difference, signed)}"
                shown = as_number(each.smallest) if each.smallest > 0 else ""
                seeds = f"{each.seeds}{f', {each.missing} missing' if each.missing else ''}"
                rows.append([name, each.what, each.task, typeset(seen), seeds, shown])
    header = ["claim", "difference", "task", "seen (95 % interval)", "seeds", "would have shown"]
    return markdown_table(header, rows)


@cache
def claims() -> dict[str, Claim]:
    """All claims by name."""
    return tomllib.loads((RESULTS / "claims.toml").read_text())


def claims_of(of: str) -> dict[str, Claim]:
    """The claims of the paper, or ours, by name."""
    return {name: claim for name, claim in claims().items() if claim["of"] == of}


def verdict_on(name: str) -> Verdict:
    """The verdict on a claim."""
    claim = claims()[name]
    if "theory" in claim:
        return verdict_of_the_theory(claim)
    if "stays" in claim:
        return verdict_on_staying(claim)
    if "reaches" in claim:
        return verdict_on_reaching(claim)
    return verdict_of_comparisons(comparisons(name))


# ---------------------------------------------------------------- theory


def verdict_of_the_theory(claim: Claim) -> Verdict:
    """What docs/theory.md has found, whose table the tests compare with the checks themselves."""
    rows = [
        (holds, evidence)
        for statement, condition, holds, evidence in theory_rows()
        if statement.startswith(claim["theory"]) and condition == claim.get("condition", condition)
    ]
    if not rows:
        raise ValueError(f"docs/theory.md says nothing about {claim['theory']}.")
    failed = [row for row in rows if row[0] == bool(claim.get("denies"))]
    seen = [evidence for _, evidence in failed or rows if evidence][:1]
    if "instead" in claim:
        seen.append(claim["instead"])
    return ("refuted" if failed else "confirmed"), "; ".join(
        seen
    ) or "in every problem that was tried, each solved exactly"


@cache
def theory_rows() -> list[tuple[str, str, bool, str]]:
    """The rows of the table in docs/theory.md: claim, condition, whether it holds, evidence."""
    rows, statement = [], ""
    for line in (ROOT / "docs/theory.md").read_text().splitlines():
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        if len(cells) == 4 and (holds := cells[2].strip("*")) in ("yes", "no"):
            statement = cells[0].replace("**", "") or statement
            rows.append((statement, cells[1], holds == "yes", cells[3]))
    return rows


# ---------------------------------------------------------------- learning


@dataclass(frozen=True)
class Compared:
    """One difference that a claim is about.

    Attributes:
        what: of what.
        task: on which task.
        missing: how many runs that were declared for it are not there yet.
        seeds: how many each side has.
        difference: with its interval; None if one side has no runs at all.
        strictly: the same with the wider interval that can refute a claim.
        smallest: the smallest difference that so many seeds would probably have shown.
    """

    what: str
    task: str
    missing: int
    seeds: str = ""
    difference: Estimate | None = None
    strictly: Estimate | None = None
    smallest: float = math.nan

    @property
    def side(self) -> int:
        """1 if the difference is shown to be on the claimed side of 0, −1 on the other, else 0."""
        return self._side(self.difference)

    @property
    def refutes(self) -> bool:
        """Whether it is on the other side beyond what one of so many may be by chance."""
        return self._side(self.strictly) < 0

    def _side(self, found: Estimate | None) -> int:
        """Which side of 0 an interval is on, if that shows anything.

        Nothing is shown before all runs are there: whoever stops when it suits finds what they
        like. Nor is it by scores without any spread, of which an interval knows nothing.
        """
        if self.missing or found is None or not found.low < found.high:
            return 0
        return int(found.low > 0) - int(found.high < 0)


def verdict_of_comparisons(compared: Sequence[Compared]) -> Verdict:
    """The verdict that some comparisons give together."""
    if not compared:
        raise ValueError("A claim without comparisons cannot be judged.")
    sides = [each.side for each in compared]
    counts = {
        "as claimed": sides.count(1),
        "the other way round": sides.count(-1),
        "no difference shown": sum(not each.side and not each.missing for each in compared),
        "not run to the end": sum(each.missing > 0 for each in compared),
    }
    seen = ", ".join(f"{count} {what}" for what, count in counts.items() if count)
    seen = f"of {len(compared)} comparisons {seen}" if len(compared) > 1 else seen[2:]
    if any(each.refutes for each in compared):
        return "refuted", seen
    return ("confirmed" if set(sides) == {1} else "open"), seen


class How(NamedTuple):
    """How runs are compared.

    Attributes:
        score: what a run is judged by.
        level: how often the interval that can refute a claim should hold the truth.
    """

    score: Callable[[Run], float] = Run.score
    level: float = 0.95


USUAL = How()


@cache
def comparisons(name: str) -> list[Compared]:
    """Every difference that a claim about learning is about."""
    claim = claims()[name]
    planned = declared(*claim["folders"])
    runs = finished(runs_of(*claim["folders"]), planned)
    if "until" in claim:
        runs = [cut(run, claim["until"]) for run in runs]
    tasks = claim.get("tasks") or list(dict.fromkeys(task for task, _, _ in planned))
    metric = claim.get("metric", "return_mean")
    score = partial(over_training if claim.get("whole") else Run.score, column=metric)
    pairs = [claim["columns"]] if "columns" in claim else claim["pairs"]
    how = How(score, level=1 - 0.05 / (len(pairs) * len(tasks)))
    compare = between_columns if "columns" in claim else between_methods
    return [compare(pair, task, runs, planned, how) for pair in pairs for task in tasks]


@cache
def declared(*folders: str) -> Planned:
    """The runs that the grids of some folders declare."""
    runs = [
        run.settings for name in folders for run in Grid.read(RESULTS / name / "grid.toml").runs()
    ]
    return {(str(run.task), str(run.label), run.seed): run.total_steps for run in runs}


def finished(runs: Sequence[Run], planned: Planned) -> list[Run]:
    """The runs that have all the steps that were declared for them.

    Raises:
        ValueError: if there are runs that were not declared.
    """
    if extra := [run.name for run in runs if _key(run) not in planned]:
        raise ValueError(f"No grid declares {', '.join(extra)}.")
    return [run for run in runs if run.steps >= planned[_key(run)]]


def _key(run: Run) -> tuple[str, str, int]:
    return run.task, run.method, run.seed


def between_methods(
    pair: str, task: str, runs: Sequence[Run], planned: Planned, how: How = USUAL
) -> Compared:
    """The comparison that "A > B" or "A > 0.95 B" asks for, on one task.

    Raises:
        ValueError: if no grid declares one of them, or they did not run equally long.
    """
    first, right = pair.split(" > ")
    *factors, second = right.split()
    factor = float(factors[0]) if factors else 1.0
    what = f"`{first}` − {' × '.join([*factors, f'`{second}`'])}"
    ours, theirs = (_due(planned, task, method) for method in (first, second))
    one = [run for run in runs if (run.task, run.method) == (task, first)]
    two = [run for run in runs if (run.task, run.method) == (task, second)]
    missing = ours + theirs - len(one) - len(two)
    if not one or not two:
        return Compared(what, task, missing)
    if len({run.steps for run in one + two}) > 1:
        raise ValueError(f"{first} and {second} have different numbers of steps on {task}.")
    a, b = [how.score(run) for run in one], [factor * how.score(run) for run in two]
    return Compared(
        what,
        task,
        missing,
        seeds=f"{len(a)} and {len(b)}",
        difference=difference([a], [b]),
        strictly=difference([a], [b], level=how.level),
        smallest=smallest_difference(a, b),
    )


def _due(planned: Planned, task: str, method: str) -> int:
    count = sum(key[:2] == (task, method) for key in planned)
    if count == 0:
        raise ValueError(f"No grid declares {method} on {task}, which a claim is about.")
    return count


def between_columns(
    pair: str, task: str, runs: Sequence[Run], planned: Planned, how: How = USUAL
) -> Compared:
    """The comparison "A > B" of two columns of the same runs, each averaged over the whole run.

    A side may also be the ratio of two columns, "A / B".
    """
    first, second = pair.split(" > ")
    what = " − ".join(re.sub(r"[^ /]+", r"`\g<0>`", side) for side in (first, second))
    due = sum(key[0] == task for key in planned)
    own = [run for run in runs if run.task == task]
    if not own:
        return Compared(what, task, missing=due)
    gaps = [[_side_of(run, first) - _side_of(run, second) for run in own]]
    both = estimate(gaps, mean), estimate(gaps, mean, level=how.level)
    return Compared(what, task, due - len(own), str(len(own)), *both)


def _side_of(run: Run, columns: str) -> float:
    above, *below = (over_training(run, column) for column in columns.split(" / "))
    return above / below[0] if below else above


def verdict_on_staying(claim: Claim) -> Verdict:
    """Whether every run ends near its best: its score against five evaluations in a row."""
    planned = declared(*claim["folders"])
    runs = finished(runs_of(*claim["folders"]), planned)
    shares = [run.score() / best_five(run.curve().values) for run in runs]
    fallen = sum(share < claim["stays"] for share in shares)
    seen = f"{len(runs)} of {len(planned)} runs are there"
    if shares:
        seen += f"; the lowest ends at {min(shares):.2f} of its best"
    if fallen:
        return "refuted", seen
    return ("confirmed" if len(runs) == len(planned) else "open"), seen


def verdict_on_reaching(claim: Claim) -> Verdict:
    """Whether a method's scores on a task are as high as was hoped."""
    statistics: dict[str, Statistic] = {"mean": mean, "iqm": iqm, "lowest": lambda s: min(s[0])}
    planned = declared(*claim["folders"])
    (task,) = claim["tasks"]
    runs = finished(runs_of(*claim["folders"]), planned)
    scores = [run.score() for run in runs if (run.task, run.method) == (task, claim["method"])]
    missing = _due(planned, task, claim["method"]) - len(scores)
    if missing:
        return "open", f"{missing} runs are missing"
    value = statistics[claim["statistic"]]([np.array(scores)])
    return ("reached" if value >= claim["reaches"] else "missed"), as_number(value)


def best_five(values: np.ndarray[Any, Any]) -> float:
    """The highest mean of five values in a row."""
    return float(np.convolve(values, np.ones(5) / 5, mode="valid").max())
