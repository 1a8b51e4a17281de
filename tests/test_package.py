"""What others read about the package agrees with what is installed."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import belated

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def test_one_version_everywhere() -> None:
    citation = re.search(r"^version: (.+)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)
    assert citation
    assert belated.__version__ == PROJECT["version"] == citation[1]


def test_a_python_that_is_claimed_is_tested() -> None:
    (pythons,) = re.findall(r"^PYTHONS \?= (.+)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    claimed = re.findall(r"Programming Language :: Python :: (3\.\d+)", str(PROJECT["classifiers"]))
    assert pythons.split() == claimed
    assert PROJECT["requires-python"] == f">={claimed[0]}"
