from __future__ import annotations

import os
from pathlib import Path

import pytest
from sweeps import GRID, start

from belated.training.lock import locked


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A grid and the folder of its undisturbed sweep, made once for all of pytest's processes."""
    base = tmp_path_factory.getbasetemp()
    # With several processes the folder above is the one that they share; alone, it is everybody's.
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "undisturbed"
    grid = folder / "grid.toml"
    with locked(folder):
        if not (folder / "out" / "report.html").is_file():
            folder.mkdir(exist_ok=True)
            grid.write_text(GRID)
            output, _ = start(grid, folder / "out", "--workers", "2").communicate(timeout=300)
            assert "too few seeds for a verdict" in output.replace("\n", " "), output
    return grid, folder / "out"
