"""Tables of what the examples and the exact problems reached."""

from __future__ import annotations

import json
import re
from typing import Any

from docs_scores import RESULTS, require, typeset

from belated.analysis.summary_files import markdown_table

NEAR = 0.02
"""Within this share of what there is to gain a policy counts as the best one."""


def seeds_table(asked: str) -> str:
    """What each seed reached: "FILE NUMBER METHOD ...".

    FILE is one of results/: JSON with a list of ``runs``, where NUMBER is the name of one of their
    numbers; or text with lines like "sac seed 0: 137.57", where it is not looked at.
    """
    file, number, *methods = asked.split()
    runs = _runs(file)
    seeds = sorted({run["seed"] for run in runs if run["seed"] is not None})
    require(methods, [run["method"] for run in runs], file)
    found = {(run["method"], run["seed"]): run.get("value", run.get(number)) for run in runs}
    rows = [[f"`{name}`", *(written(found.get((name, s))) for s in seeds)] for name in methods]
    return markdown_table(["", *(f"seed {seed}" for seed in seeds)], rows)


def _runs(file: str) -> list[dict[str, Any]]:
    text = (RESULTS / file).read_text()
    if file.endswith(".json"):
        runs: list[dict[str, Any]] = json.loads(text)["runs"]
        return runs
    return runs_in_text(text)


def runs_in_text(text: str) -> list[dict[str, Any]]:
    """The runs of lines like "sac seed 0: 137.57"."""
    lines = re.findall(r"^(\S+) +seed (\d+): (\S+)$", text, re.MULTILINE)
    return [{"method": name, "seed": int(seed), "value": float(v)} for name, seed, v in lines]


def written(value: float | None) -> str:
    """A number of an example, with as many digits as its size asks for."""
    if value is None:
        return ""
    digits = 1 if abs(value) >= 10 else 2 if abs(value) >= 0.1 else 4
    return typeset(f"{value:.{digits}f}")


def truth_table(asked: str) -> str:
    """On how many exact problems methods found the best policy without history: "METHOD ..."."""
    runs = json.loads((RESULTS / "tabular_truth.json").read_text())
    require(asked.split(), [run["method"] for run in runs], "tabular_truth.json")
    gaps = {name: [run["gap"] for run in runs if run["method"] == name] for name in asked.split()}
    cells = [f"{sum(gap <= NEAR for gap in own)} of {len(own)}" for own in gaps.values()]
    return markdown_table([f"`{name}`" for name in gaps], [cells])
