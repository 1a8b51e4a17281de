"""``belated theory``: every claim of the paper's theory, checked on small problems."""

from __future__ import annotations

import dataclasses
import json as json_module

from rich.console import Console
from rich.markup import escape
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from belated.ranges import positive_int


def theory(problems: int = 1_000, seed: int = 0, json: bool = False) -> int:
    """Check every claim of the paper on small problems that can be solved exactly.

    Shows for each claim the condition it was checked under, the number of problems, the largest
    deviation and whether it holds; where it does not, a small counterexample.

    Args:
        problems: How many random problems the central claims are checked on.
        seed: Seeds the random problems.
        json: Print JSON instead of a table.
    """
    from belated.tabular import Claim, check_claims  # brings a part of SciPy; others need none

    positive_int(problems, "The number of problems")
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
        return 0
    table = Table("claim", "checked on", "problems", "deviation", "holds", show_lines=True)
    for claim in claims:
        said = f"[bold]{escape(claim.name)}[/bold]: {escape(claim.statement)}"
        if claim.evidence:
            said += f"\n[dim]{escape(claim.evidence)}[/dim]"
        mark = "[green]yes[/green]" if claim.holds else "[red]no[/red]"
        row = (said, escape(claim.condition), str(claim.problems), f"{claim.deviation:.1g}", mark)
        table.add_row(*row)
    Console().print(table)
    return 0
