"""``belated theory``: every claim of the paper's theory, checked on small problems."""

from __future__ import annotations

import dataclasses
import itertools
import json as json_module
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from belated.ranges import positive_int

if TYPE_CHECKING:
    from belated.tabular import Claim

READING = {"either": "", "reveal": ", if ends reveal", "absorb": ", if ends absorb"}
LEGEND = """\
Π_τ: policies that see the history since the last reward; Π_s: those that see the state and the
position in the interval. An end reveals if it closes the interval that it falls into, as in
environments; it absorbs if time goes on behind it, as in the paper. c: the overlap. ·: a step
before the episode. Conditions, proofs and problems: docs/theory.md"""


def theory(
    problems: int = 1_000,
    seed: int = 0,
    verbose: bool = False,
    json: bool = False,
    markdown: bool = False,
    draw: Path | None = None,
) -> int:
    """Check the paper's claims on small exact problems.

    Says for each claim under which condition it holds, and shows the smallest counterexample where
    it does not. The exit code is 1 if anything differs from what docs/theory.md says.

    Examples:
        belated theory
        belated theory --problems 100 --draw figures

    Args:
        problems: How many random problems the central claims are checked on.
        seed: Seeds the random problems.
        verbose: Also print how many problems there were and the largest deviation.
        json: Print JSON instead.
        markdown: Print the table of docs/theory.md instead.
        draw: Draw the examples that the claims are about into this folder, as SVG and as LaTeX.
    """
    from belated.tabular import check_claims  # brings a part of SciPy; others need none

    positive_int(problems, "The number of problems")
    if json and markdown:
        raise ValueError("Choose one of --json and --markdown.")
    if draw is not None:
        draw.mkdir(parents=True, exist_ok=True)
    claims: list[Claim] = []
    progress = Progress(
        SpinnerColumn(),
        TextColumn("{task.completed} claims checked"),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    with progress:
        task = progress.add_task("claims", total=None)
        for claim in check_claims(problems, seed):
            claims.append(claim)
            progress.advance(task)
    if json:
        print(json_module.dumps([dataclasses.asdict(claim) for claim in claims], indent=2))
    elif markdown:
        print(as_markdown(claims))
    else:
        _show(claims, verbose)
    if draw is not None:
        _draw(claims, draw)
    return _judge(claims, Console(stderr=True, soft_wrap=True, highlight=False))


def _show(claims: list[Claim], verbose: bool) -> None:
    console = Console(highlight=False, soft_wrap=True)
    for (name, statement), rows in itertools.groupby(claims, lambda c: (c.name, c.statement)):
        console.print(f"[bold]{escape(name)}[/bold]: {escape(statement)}")
        for claim in rows:
            mark = "[green]✓[/green]" if claim.holds else "[red]✗[/red]"
            line = f"{claim.condition}{READING[claim.ends]}"
            if claim.evidence:
                line += ": " + ("" if claim.holds else "for example, ") + claim.evidence
            if verbose:
                line += f" [{claim.problems} problems, deviation {claim.deviation:.1g}]"
            console.print(f"  {mark} {escape(line)}")
    console.print(f"\n[dim]{escape(LEGEND)}[/dim]")


def _judge(claims: list[Claim], console: Console) -> int:
    """Say whether all is as expected; return the exit code."""
    wrong = [claim for claim in claims if claim.holds != claim.expected]
    holds = sum(claim.holds for claim in claims)
    console.print(
        f"{len(claims)} checks: {holds} hold, {len(claims) - holds} do not; "
        + ("all as expected." if not wrong else f"{len(wrong)} not as expected:")
    )
    for claim in wrong:
        said = "holds" if claim.holds else "does not hold"
        console.print(
            f"  [red]{escape(claim.name)}[/red], {escape(claim.condition)}{READING[claim.ends]}: "
            f"{escape(claim.statement)}. It {said}; the deviation is {claim.deviation:.3g}. "
            f"{escape(claim.evidence)}"
        )
    return 1 if wrong else 0


def as_markdown(claims: list[Claim]) -> str:
    """The table of docs/theory.md."""
    lines = ["| claim | on | holds | |", "|---|---|---|---|"]
    last = ""
    for claim in claims:
        name = f"**{claim.name}**: {claim.statement}"
        cells = [
            "" if name == last else name,
            claim.condition + READING[claim.ends],
            "yes" if claim.holds else "**no**",
            claim.evidence,
        ]
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
        last = name
    return "\n".join(lines)


def _draw(claims: list[Claim], folder: Path) -> None:
    from belated.tabular import examples
    from belated.tabular.drawing import as_tikz, draw_problem

    for name in dict.fromkeys(claim.example for claim in claims if claim.example):
        problem = getattr(examples, name)()
        draw_problem(problem, folder / f"{name}.svg")
        (folder / f"{name}.tex").write_text(as_tikz(problem), encoding="utf-8")
