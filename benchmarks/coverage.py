"""How often intervals hold the truth and what few seeds can show: docs/statistics.md's tables.

Simulated scores, whose truth is known, on one core. Seeded: the same numbers each time.
"""

from __future__ import annotations

import json as json_module
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import tyro
from rich.console import Console
from rich.progress import track
from rich.table import Table
from scipy import special

from belated.analysis import comparison, statistics
from belated.analysis.comparison import difference, probability_of_improvement
from belated.analysis.intervals import Array
from belated.analysis.statistics import bootstrap, iqm, mean, median

RANDOM = np.random.default_rng(0)
TIE = 1e-9
"""Shares that should equal the truth may miss it by rounding."""
Row = dict[str, Any]
Draw = Callable[[int, int], Array]
"""Scores of so many tasks and seeds."""


class Case(NamedTuple):
    """Scores of one method or of two, what is measured of them, and its true value."""

    scores: str
    what: Callable[..., Any]
    tasks: int
    truth: float
    a: Draw
    b: Draw | None = None


def normal(centre: float = 0.0, spread: float = 1.0) -> Draw:
    return lambda tasks, seeds: RANDOM.normal(centre, spread, (tasks, seeds))


def lognormal(tasks: int, seeds: int) -> Array:
    return RANDOM.lognormal(0, 0.5, (tasks, seeds))


def bimodal(tasks: int, seeds: int) -> Array:
    """A quarter of the seeds gets stuck."""
    learned = RANDOM.random((tasks, seeds)) < 0.75
    return np.where(learned, normal(4_000, 300)(tasks, seeds), normal(1_000, 100)(tasks, seeds))


def intervals(case: Case, seeds: int) -> tuple[Any, Any]:
    """Draw scores once: the interval of this library, and the percentiles of a bootstrap."""
    a, seed = case.a(case.tasks, seeds), int(RANDOM.integers(2**31))
    if case.b is None:
        ours = statistics.estimate(a, case.what, seed=seed)
        replicates = bootstrap(list(a), case.what, 500, RANDOM)
    elif case.what is difference:
        b = case.b(case.tasks, seeds)
        ours = difference(a, b, seed=seed)
        replicates = bootstrap(list(a), mean, 500, RANDOM) - bootstrap(list(b), mean, 500, RANDOM)
    else:
        b = case.b(1, seeds)
        ours = probability_of_improvement(a, b)
        # How often each seed is drawn, as shares, of shape (sides, resamples, seeds).
        drawn = RANDOM.multinomial(seeds, np.full(seeds, 1 / seeds), (2, 500)) / seeds
        replicates = ((drawn[0] @ (a[0, :, None] > b[0])) * drawn[1]).sum(axis=1)
    return ours[1:], np.quantile(replicates, [0.025, 0.975])


def of_scores() -> Iterator[Case]:
    kinds = {"normal": normal(), "lognormal": lognormal, "bimodal": bimodal}
    for name, draw in kinds.items():
        many = draw(1, 4_000_000)
        yield from (Case(name, of, k, of(many), draw) for of in (mean, iqm) for k in (1, 5))
    spreads, centres = 2.0 ** np.arange(5)[:, None], np.arange(-2.0, 3.0)[:, None]
    yield Case("spreads 1 to 16", mean, 5, 0.0, lambda k, n: spreads * normal()(k, n))
    yield Case("means −2 to 2", median, 5, 0.0, lambda k, n: centres + normal()(k, n))
    yield Case("normal", difference, 1, 0.0, normal(), normal())
    yield Case("spreads 1 and 4", difference, 1, 0.0, normal(), normal(0, 4))


def of_wins() -> Iterator[Case]:
    what = probability_of_improvement
    for gap, name in enumerate(("the same", "one spread apart", "two spreads apart")):
        truth = float(special.ndtr(gap / 2**0.5))
        yield Case(name, what, 1, truth, normal(gap), normal())
    truth = 0.75 * float(special.ndtr(500 / (300 * 2**0.5)))  # those that are stuck never win
    yield Case("bimodal against N(3500, 300)", what, 1, truth, bimodal, normal(3_500, 300))
    yield Case("spreads 1 and 5", what, 1, 0.5, normal(), normal(0, 5))


def coverage(cases: Iterator[Case], sets: int) -> Iterator[Row]:
    """How often intervals hold the truth, how often percentiles do, and the ratio of widths."""
    for case in cases:
        row: Row = {"scores": case.scores, "of": case.what.__name__, "tasks": case.tasks}
        row["truth"] = case.truth
        for n in (3, 5, 10, 20):
            found = np.array([intervals(case, n) for _ in range(sets)])  # (sets, kinds, ends)
            held = (found[..., 0] - TIE <= case.truth) & (case.truth <= found[..., 1] + TIE)
            wider = np.divide(*np.ptp(found, axis=2).mean(axis=0))
            ours, usual = 100 * held.mean(axis=0)
            row[str(n)] = {"covered": ours, "percentiles": usual, "times_wider": wider}
        yield row


def profiles(sets: int) -> Iterator[Row]:
    """How often intervals of profiles hold the share: in one task, and in five that differ."""
    for share in (0.5, 0.8, 0.95):
        for shares in (np.array([share]), share + min(0.4, 1 - share) * np.linspace(-1, 1, 5)):
            row = {"share above": share, "tasks": len(shares)}
            for n in (3, 10, 20):
                above = RANDOM.random((sets, len(shares), n)) < shares[:, None]
                ends = np.array([statistics.performance_profile(one, [0.5])[1:] for one in above])
                low, high = ends[..., 0].T
                row[str(n)] = 100 * np.mean((low - TIE <= share) & (share <= high + TIE))
            yield row


def power(sets: int) -> Iterator[Row]:
    """The smallest p, and how often the smallest difference is shown, in one task."""
    for n in (2, 3, 4, 5, 6, 8, 10):
        scores = np.arange(n) / np.arange(n).std(ddof=1)
        gap = comparison.smallest_difference(scores, scores)
        pairs = ((normal(gap)(1, n), normal()(1, n)) for _ in range(sets))
        shown = [comparison.permutation_test(a, b) <= 0.05 for a, b in pairs]
        row = {"seeds": n, "smallest p": comparison.smallest_p([n], [n])}
        yield row | {"smallest difference": gap, "shown, %": 100 * np.mean(shown)}


def main(sets: int = 2_000, json: Path | None = None) -> None:
    """Measure and print the tables: percent (those of percentiles), how many times wider.

    Args:
        sets: How many sets of scores to draw for each number.
        json: Also write the figures to this file.
    """
    tables = {
        "intervals": coverage(of_scores(), sets),
        "probability of improvement": coverage(of_wins(), sets),
        "profiles": profiles(sets),
        "what few seeds can show": power(sets),
    }
    report: dict[str, list[Row]] = {}
    for title, rows in tables.items():
        report[title] = list(track(rows, title, transient=True))
        table = Table(*report[title][0], title=title)
        for row in report[title]:
            table.add_row(*map(written, row.values()))
        Console(width=140).print(table)
    if json is not None:
        json.write_text(json_module.dumps({"sets": sets, **report}, indent=2) + "\n")


def written(value: Any) -> str:
    if isinstance(value, dict):
        ours, usual, wider = value.values()
        return f"{ours:.1f} ({usual:.0f}) {wider:.2f}×"
    return value if isinstance(value, str) else f"{value:.4g}"


if __name__ == "__main__":
    tyro.cli(main)
