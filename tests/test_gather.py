"""Gathering evidence: only what is missing is done, and finished curves are kept."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gather
import numpy as np
import pytest
from docs_scores import RESULTS
from small_agents import small_agent
from sweeps import GRID

from belated.experiments.grid import Grid
from belated.methods import find_method

OWN = sorted(RESULTS.glob("*/*.py"))


def test_what_is_missing_is_done_and_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    results, runs = tmp_path / "results", tmp_path / "runs"
    task = results / "mine" / "Pendulum-v1-n5to7"
    task.mkdir(parents=True)
    (results / "mine/grid.toml").write_text(GRID.replace("steps = 500", "steps = 120"))
    (task / "sac-s0").mkdir()
    (task / "sac-s0/progress.csv").write_text("step\n120\n")

    def names(only: str = "") -> list[str]:
        return [job.run.name for job in gather.missing(results, runs, (), only)]

    prefix = "mine/Pendulum-v1-n5to7"
    assert names() == [
        f"{prefix}/{run}" for run in ("hc-singleton-s0", "hc-singleton-s1", "sac-s1")
    ]
    assert names("sac") == [f"{prefix}/sac-s1"]

    def code(dirty: bool) -> dict[str, Any]:
        return {"sources": {"belated": {"dirty": dirty}}}

    asked: dict[str, Any] = {"only": "sac", "results": results, "runs": runs, "workers": 1}
    monkeypatch.setattr(gather, "provenance", lambda: code(dirty=True))
    assert gather.main((), **asked) == 2
    assert names("sac") == [f"{prefix}/sac-s1"]
    monkeypatch.setattr(gather, "provenance", lambda: code(dirty=False))
    assert gather.main((), **asked) == 0
    assert names("sac") == []
    assert {file.name for file in (task / "sac-s1").iterdir()} == {"config.json", "progress.csv"}
    with pytest.raises(ValueError, match="There is no grid"):
        gather.missing(results, runs, ("typo",), "")


@pytest.mark.parametrize("file", OWN, ids=[file.stem for file in OWN])
def test_methods_that_lie_beside_a_grid_can_learn(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Runs of hours should not be the first to find that they cannot."""
    monkeypatch.syspath_prepend(file.parent)
    grid = Grid.read(file.parent / "grid.toml")
    names = [each.method for each in grid.methods if each.method.startswith(f"{file.stem}:")]
    assert names
    for name in names:
        agent = small_agent(find_method(name)).learn(50)
        assert all(np.isfinite(float(value)) for value in agent.metrics.values())
