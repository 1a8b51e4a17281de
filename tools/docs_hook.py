"""A hook of MkDocs: what pages link to outside docs/ is on the site too, and the links lead there.

On a code-hosting site a page may link to ``../results/README.md``. The built site has such files at
their path in the repository. Python files become pages; pictures and data are copied.
"""

from __future__ import annotations

import os.path
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
LINK = re.compile(r"(?<=\]\()(?![a-z]+:)[^)#\s]+")


def uri_of(target: Path) -> str:
    """Where the site has a file of the repository; a folder is its README."""
    if target.is_dir():
        target /= "README.md"
    if target.is_relative_to(DOCS):
        return target.relative_to(DOCS).as_posix()
    uri = target.relative_to(ROOT).as_posix()
    return f"{uri}.md" if target.suffix == ".py" else uri


def linked(page: Path, text: str) -> Iterator[Path]:
    """The files and folders of the repository that a page links to."""
    for link in LINK.findall(text):
        target = (page.parent / link).resolve()
        if target.exists() and target.is_relative_to(ROOT):
            yield target


def rewritten(text: str, page: Path) -> str:
    """The text of a page, with links as the site needs them; those that lead nowhere stay."""

    def link_on_site(match: re.Match[str]) -> str:
        for target in linked(page, f"]({match[0]}"):
            return os.path.relpath(uri_of(target), Path(uri_of(page)).parent)
        return match[0]

    return LINK.sub(link_on_site, text)


def on_files(files: Any, config: Any) -> Any:
    """Add the files outside docs/ that pages link to, and those that these link to."""
    from mkdocs.structure.files import File

    pages = [Path(file.abs_src_path) for file in files.documentation_pages()]
    for page in pages:  # it grows
        for target in linked(page, page.read_text()):
            uri = uri_of(target)
            if files.get_file_from_path(uri) is not None or not target.is_file():
                continue
            if target.suffix == ".py":
                listing = f"# {target.name}\n\n```py\n{target.read_text()}```\n"
                files.append(File.generated(config, uri, content=listing))
            else:
                files.append(File.generated(config, uri, abs_src_path=str(target)))
            if target.suffix == ".md":
                pages.append(target)
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Rewrite the links of a page."""
    source = page.file.abs_src_path
    return markdown if source is None else rewritten(markdown, Path(source))
