"""Does the built site load anything from elsewhere? Links to other sites are fine."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

LOADING = {"src", "srcset", "poster", "data"}
"""Attributes whose value a browser fetches by itself; ``href`` too, of a <link>."""
HARMLESS = {"canonical", "next", "prev"}
"""Kinds of <link> that nothing is fetched for."""
ELSEWHERE = re.compile(r"(?:https?:)?//")
IN_CSS = re.compile(r"""(?:url\(|@import)\s*["']?((?:https?:)?//[^"')\s]+)""")
IN_JS = re.compile(r"""["'`](https?://[^"'`\s]+)""")
DORMANT = (
    "https://unpkg.com/mermaid@",
    "https://api.github.com/",
    "https://${e}/api/v4/projects/",
    "https://unpkg.com/resize-observer-polyfill",  # for browsers of before 2020
)
"""What the theme's script would load, but for"""
WAKING = {"mermaid", "md-source"}
"""elements of these classes alone: diagrams, and a repository's stars."""


class Page(HTMLParser):
    """Collects what a page loads from elsewhere, its scripts and styles, and its classes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.loads: list[str] = []
        self.classes: set[str] = set()
        self._inside = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Look at an element's attributes."""
        self._inside = tag
        values = {name: value or "" for name, value in attrs}
        self.classes.update(values.get("class", "").split())
        self.loads += IN_CSS.findall(values.get("style", ""))
        for name, value in values.items():
            fetched = name in LOADING or (
                (tag, name) == ("link", "href") and values.get("rel") not in HARMLESS
            )
            if fetched and ELSEWHERE.match(value.strip()):
                self.loads.append(value)

    def handle_data(self, data: str) -> None:
        """Look into scripts and styles."""
        if self._inside == "style":
            self.loads += IN_CSS.findall(data)
        elif self._inside == "script":
            self.loads += IN_JS.findall(data)

    def handle_endtag(self, tag: str) -> None:
        """Leave an element."""
        self._inside = ""


def loads_of(path: Path) -> Iterator[str]:
    """What a file of the site loads from elsewhere."""
    if path.suffix not in {".html", ".css", ".svg", ".js"}:
        return
    text = path.read_text()
    if path.suffix == ".html":
        page = Page(text)
        yield from page.loads
        yield from (f"what class={name} needs" for name in sorted(page.classes & WAKING))
    elif path.suffix in {".css", ".svg"}:
        yield from IN_CSS.findall(text)
    else:
        yield from (url for url in IN_JS.findall(text) if not url.startswith(DORMANT))


def main(site: Path) -> int:
    """Print what is loaded from elsewhere; return the exit code."""
    files = [path for path in sorted(site.rglob("*")) if path.is_file()]
    found = [f"{path}: {load}" for path in files for load in loads_of(path)]
    print(*found, sep="\n", end="\n" if found else "")
    if not any(path.suffix == ".html" for path in files):
        print(f"There is no site in {site}: build it with make docs.")
        return 1
    print(f"{len(files)} files, {len(found)} loads from elsewhere")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
