"""Pictures of runs in README, docs and results: `make docs-tables` draws those whose runs changed.

What a picture shows stands in a comment above it:

    <!-- picture: results/FILE.png FOLDER+FOLDER METHOD METHOD=NAME ..., over minutes -->

It has the learning curves of some methods, each under its name or another one, over steps or over
the time spent learning. The file remembers what it was drawn from.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from docs_scores import ROOT, require, runs_of
from PIL import Image

from belated.analysis.figures import draw_curves
from belated.analysis.frame import in_style
from belated.analysis.runs import Run

COMMENT = re.compile(r"<!-- picture: (.*?) -->\n!\[[^\]]+\]\((.*?)\)")
_MARK = "Description"
"""Where a PNG file says what it was drawn from."""


@dataclass(frozen=True)
class Picture:
    """A picture that a page asks for."""

    path: Path
    folders: tuple[str, ...]
    names: Mapping[str, str]
    """What the methods are called in it."""
    x: Literal["step", "wall_time"]

    @classmethod
    def of(cls, asked: str) -> Picture:
        """Read what stands in the comment."""
        what, _, option = asked.partition(", ")
        if option not in ("", "over minutes"):
            raise ValueError(f"A picture has no option {option!r}.")
        file, folders, *methods = what.split()
        names = {method: name or method for method, _, name in (m.partition("=") for m in methods)}
        x: Literal["step", "wall_time"] = "wall_time" if option else "step"
        return cls(ROOT / file, tuple(folders.split("+")), names, x)

    def runs(self) -> list[Run]:
        """Its runs, under the names that they have in it."""
        runs = runs_of(*self.folders)
        require([*self.names], [run.method for run in runs], "+".join(self.folders))
        return [
            replace(run, config={**run.config, "label": self.names[run.method]})
            for run in runs
            if run.method in self.names
        ]

    def source(self) -> str:
        """A digest of all that it shows."""
        columns = ("step", "return_mean", self.x)
        shown = [
            (run.name, [[row.get(column) for column in columns] for row in run.rows])
            for run in self.runs()
        ]
        return hashlib.sha256(json.dumps([self.x, shown]).encode()).hexdigest()[:16]

    def is_current(self) -> bool:
        """Whether the file shows what its runs say now."""
        if not self.path.is_file():
            return False
        with Image.open(self.path) as image:
            return image.info.get(_MARK) == self.source()

    def draw(self) -> None:
        """Write the file."""
        figure = draw_curves(self.runs(), x=self.x)
        with in_style():
            figure.savefig(self.path, dpi=250, metadata={_MARK: self.source()})


def pictures(page: Path) -> Iterator[Picture]:
    """The pictures that a page asks for.

    Raises:
        ValueError: if it shows another file below the comment.
    """
    text = page.read_text()
    found = COMMENT.findall(text)
    if len(found) != text.count("<!-- picture: "):
        raise ValueError(f"{page.name}: a picture belongs right below its comment.")
    for asked, link in found:
        picture = Picture.of(asked)
        if (page.parent / link).resolve() != picture.path:
            raise ValueError(f"{page.name} shows {link} where {asked.split()[0]} is asked for.")
        yield picture
