"""What we depend on: licences, known vulnerabilities, what is unused, and a bill of materials.

Vulnerabilities are those of advisories.toml. pip-audit knows more, and needs the network:
``pip install pip-audit && pip-audit -r constraints.txt --no-deps --disable-pip``.
"""

from __future__ import annotations

import ast
import importlib.metadata
import json as json_module
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import tyro
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).parents[1]
FREE = re.compile(r"MIT|BSD|Apache|ISC|PSF|Python|HPND|MPL|0BSD|Unlicense|Zlib|CC0", re.IGNORECASE)
IMPORTED_AS = {"tensorboardx": "tensorboardX"}
RUN_ONLY = {"mujoco"}  # Gymnasium's robots import it
EXTRAS = ("onnx", "ray", "wandb")


def requirements(lines: list[str]) -> Iterator[Requirement]:
    """The requirements that hold here, without extras' own."""
    for line in lines:
        requirement = Requirement(line)
        extras = requirement.extras or {""}
        if requirement.marker is None or any(
            requirement.marker.evaluate({"extra": extra}) for extra in extras
        ):
            yield requirement


def closure(direct: list[str]) -> dict[str, importlib.metadata.Distribution]:
    """Everything that is installed because of these."""
    found: dict[str, importlib.metadata.Distribution] = {}
    waiting = list(requirements(direct))
    while waiting:
        requirement = waiting.pop()
        name = requirement.name.lower().replace("_", "-")
        if name in found:
            continue
        found[name] = importlib.metadata.distribution(requirement.name)
        for line in found[name].requires or []:
            needed = Requirement(line)
            if needed.marker is None or any(
                needed.marker.evaluate({"extra": extra}) for extra in requirement.extras or {""}
            ):
                waiting.append(needed)
    return dict(sorted(found.items()))


def licence(distribution: importlib.metadata.Distribution) -> str:
    """What a distribution says of its licence."""
    metadata = distribution.metadata
    if "License-Expression" in metadata:
        return str(metadata["License-Expression"])
    classifiers = [
        text.rpartition(" :: ")[2]
        for text in metadata.get_all("Classifier") or []
        if text.startswith("License ::")
    ]
    plain = str(metadata["License"]) if "License" in metadata else "?"
    return "; ".join(classifiers) or plain.splitlines()[0][:60]


def vulnerabilities(found: dict[str, importlib.metadata.Distribution]) -> list[str]:
    """The known vulnerabilities of what is installed."""
    known = tomllib.loads(Path(__file__).with_name("advisories.toml").read_text())
    return [
        f"{name} {distribution.version}: {advisory}"
        for name, distribution in found.items()
        for advisory, affected in known.get(name, {}).items()
        if SpecifierSet(affected).contains(distribution.version, prereleases=True)
    ]


def imported_modules() -> set[str]:
    """The top-level modules that the library imports anywhere."""
    modules = set()
    for path in (ROOT / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                modules |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                modules.add(node.module.partition(".")[0])
    return modules


def main(json: Path | None = None) -> None:
    """Print a table; exit with 1 if a licence is not free, or something unused or vulnerable.

    Args:
        json: Where to write the bill of materials (CycloneDX).
    """
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    direct = project["dependencies"]
    modules, found = imported_modules(), closure(direct)
    names = [Requirement(line).name for line in direct]
    unused = [
        name
        for name in names
        if IMPORTED_AS.get(name.lower(), name) not in modules and name not in RUN_ONLY
    ]
    table = Table("package", "version", "licence", "")
    odd = []
    for name, distribution in found.items():
        free = FREE.search(licence(distribution)) is not None
        odd += [] if free else [name]
        table.add_row(name, distribution.version, licence(distribution), "" if free else "look")
    Console().print(table)
    if json is not None:
        components = [
            {
                "type": "library",
                "name": name,
                "version": distribution.version,
                "purl": f"pkg:pypi/{name}@{distribution.version}",
                "licenses": [{"license": {"name": licence(distribution)}}],
            }
            for name, distribution in found.items()
        ]
        document = {"bomFormat": "CycloneDX", "specVersion": "1.5", "components": components}
        json.write_text(json_module.dumps(document, indent=2) + "\n")
    print(f"{len(names)} direct dependencies, {len(found)} in all.")
    print(
        f"Not used: {', '.join(unused) or 'none'}. Licence to look at: {', '.join(odd) or 'none'}."
    )
    extras = closure([line for each in EXTRAS for line in project["optional-dependencies"][each]])
    risky = vulnerabilities(found | extras)
    print(f"Known vulnerabilities, those of extras included: {', '.join(risky) or 'none'}.")
    sys.exit(1 if unused or odd or risky else 0)


if __name__ == "__main__":
    tyro.cli(main)
