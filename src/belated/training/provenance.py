"""Where a run's numbers come from: the code, the versions and the kind of machine behind them."""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
import platform
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

VERSIONS = ("belated", "jax", "jaxlib", "equinox", "optax", "numpy", "gymnasium", "mujoco")
"""The packages that can change a run's numbers."""


def provenance(modules: Iterable[str] = ()) -> dict[str, Any]:
    """Say what code runs here, and on what; nothing in it names the machine or its user.

    Args:
        modules: modules from outside that take part, such as the environment's; they count once
            they are loaded.
    """
    versions = {"python": platform.python_version()} | {
        name: version for name in VERSIONS if (version := _version(name)) is not None
    }
    sources = {name: _source(name) for name in sorted({__package__.split(".")[0], *modules})}
    return {
        "sources": {name: source for name, source in sources.items() if source is not None},
        "versions": versions,
        "cpu": cpu_model(),
        "threads": len(cores()),
    }


def cores() -> list[int]:
    """The cores that this process may run on: one, where it is pinned to one."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _source(module: str) -> dict[str, Any] | None:
    """What a module's code is: a digest of it and, under version control, its commit.

    None where no such module is loaded, or it has no file. To look for one that is not would
    import the packages that it is in, and the name may be that of a stranger's file.
    """
    found = getattr(sys.modules.get(module), "__spec__", None)
    if found is None or found.origin is None or not Path(found.origin).is_file():
        return None
    file = Path(found.origin)
    source: dict[str, Any] = {"digest": _digest(file)}
    if _git(file.parent, "ls-files", "--error-unmatch", file.name) is None:
        return source
    changes = _git(file.parent, "status", "--porcelain", "--untracked-files=no", "--", ".")
    return source | {"commit": _git(file.parent, "rev-parse", "HEAD"), "dirty": bool(changes)}


def _digest(file: Path) -> str:
    """Of a module's file or, for a package, of all Python files in it."""
    package = file.name == "__init__.py"
    files = sorted(file.parent.rglob("*.py")) if package else [file]
    digest = hashlib.sha256()
    for each in files:
        digest.update(each.relative_to(file.parent).as_posix().encode() + b"\0")
        digest.update(hashlib.sha256(each.read_bytes()).digest())
    return digest.hexdigest()[:16]


def _git(folder: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *arguments], capture_output=True, text=True, timeout=30
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def cpu_model() -> str:
    """The model of the CPU, as far as the system tells."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()
