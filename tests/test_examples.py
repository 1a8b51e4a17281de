"""Every example runs as it stands."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parent.parent / "examples").glob("*.py"))
SHORTER = {
    "inventory": ["--steps", "1200", "--methods", "dqn-hc-singleton"],
    "traffic_light": ["--steps", "1260", "--episodes", "1", "--methods", "dqn-hc-singleton"],
    "chemical_process": ["--steps", "1050", "--methods", "hc-pairwise-1", "--episodes", "1"],
}
NEEDS = {"traffic_light": "sumo", "chemical_process": "pcgym"}


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_example_runs(example: Path, tmp_path: Path) -> None:
    if example.stem in NEEDS:
        pytest.importorskip(NEEDS[example.stem])
    command = [sys.executable, "-W", "error", str(example), *SHORTER.get(example.stem, [])]
    subprocess.run(command, check=True, cwd=tmp_path, timeout=300)
