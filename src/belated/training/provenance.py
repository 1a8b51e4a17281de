"""Where a run's numbers come from: the code, the versions and the kind of machine behind them."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import platform
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

VERSIONS = ("belated", "jax", "jaxlib", "equinox", "optax", "numpy", "gymnasium", "mujoco")
"""The packages that can change a run's numbers."""


def provenance(modules: Iterable[str] = ()) -> dict[str, Any]:
    """Say what code runs here, and on what; nothing in it names the machine or its user.

    Args:
        modules: modules from outside that take part, such as the environment's.
    """
    versions = {"python": platform.python_version()} | {
        name: version for name in VERSIONS if (version := _version(name)) is not None
    }
    sources = {name: _commit(name) for name in sorted({__package__.split(".")[0], *modules})}
    return {
        "sources": {name: commit for name, commit in sources.items() if commit is not None},
        "versions": versions,
        "cpu": _cpu(),
        "threads": usable_cores(),
    }


def usable_cores() -> int:
    """How many cores this process may run on: one, where it is pinned to one."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _commit(module: str) -> dict[str, Any] | None:
    """The commit of a module's folder and whether the files there differ from it.

    None where it is not under version control, an installed package for example.
    """
    try:
        found = importlib.util.find_spec(module)
    except (ImportError, ValueError):  # (__main__ has none, say)
        return None
    if found is None or found.origin is None:
        return None
    file = Path(found.origin)
    if _git(file.parent, "ls-files", "--error-unmatch", file.name) is None:
        return None
    commit = _git(file.parent, "rev-parse", "HEAD")
    changes = _git(file.parent, "status", "--porcelain", "--", ".")
    return {"commit": commit, "dirty": bool(changes)}


def _git(folder: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *arguments], capture_output=True, text=True, timeout=30
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def _cpu() -> str:
    """The model of the CPU, as far as the system tells."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()
