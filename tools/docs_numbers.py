"""Numbers inside sentences: of a file of results/, or the scores of runs."""

from __future__ import annotations

import json
import re
from typing import Any

from docs_examples import runs_in_text, written
from docs_scores import RESULTS, require, runs_of, typeset

from belated.analysis.wording import as_number


def value(asked: str) -> str:
    """One number of a file, "FILE PATH" or "FILE PATH, N digits".

    A path is "runs/method=sac/seed=0/reward": names, and what entries of a list must have; "*" is
    every name. In a text file "best" and "rule" are what its first line says.
    """
    values, digits = _values(asked)
    if len(values) != 1:
        raise ValueError(f"results/ has {len(values)} numbers at {asked!r}, not one.")
    return _written(values[0], digits)


def span(asked: str) -> str:
    """The least and the greatest of several numbers, asked for as one is."""
    values, digits = _values(asked)
    return f"{_written(min(values), digits)} to {_written(max(values), digits)}"


def score_span(asked: str) -> str:
    """The lowest and the highest score, of all seeds: "FOLDER TASK METHOD METHOD ..."."""
    folder, task, *methods = asked.split()
    if not methods:
        raise ValueError(f"Of which methods in {asked!r}?")
    runs = [run for run in runs_of(folder) if run.task == task]
    require(methods, [run.method for run in runs], f"{folder}/{task}")
    scores = [run.score() for run in runs if run.method in methods]
    return typeset(f"{as_number(min(scores))} to {as_number(max(scores))}")


def _values(asked: str) -> tuple[list[float], int | None]:
    place, _, digits = asked.partition(", ")
    file, _, path = place.partition(" ")
    found = [_read(file)]
    try:
        for step in path.split("/"):
            found = [entry for part in found for entry in _at(part, step)]
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"results/{file} has no {path!r}: {error!r}.") from error
    values = [float(one) for one in found if one is not None]
    if not values:
        raise ValueError(f"results/{file} has no number at {path!r}.")
    return values, int(digits.split()[0]) if digits else None


def _at(part: Any, step: str) -> list[Any]:
    """What is one step of a path further; in a list that of each entry."""
    if isinstance(part, list):
        return [found for entry in part for found in _at(entry, step)]
    name, picks, wanted = step.partition("=")
    if picks:
        return [part] if str(part[name]) == wanted else []
    return [*part.values()] if step == "*" else [part[step]]


def _read(file: str) -> Any:
    text = (RESULTS / file).read_text()
    if file.endswith(".json"):
        return json.loads(text)
    yardsticks = re.findall(r"([\d.]+) (?:at|by) (\w+)", text.partition("\n")[0])
    return {"runs": runs_in_text(text)} | {name: float(found) for found, name in yardsticks}


def _written(found: float, digits: int | None) -> str:
    return written(found) if digits is None else typeset(f"{found:,.{digits}f}")
