from __future__ import annotations

import json

import gymnasium as gym
import pytest

from belated.cli import main


def test_every_registered_task_has_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tasks"]) == 0
    lines = capsys.readouterr().out.splitlines()
    told = dict(line.split(maxsplit=1) for line in lines)
    assert told.keys() == {name for name in gym.registry if name.startswith("belated/")}
    assert told["belated/Ant-sum-n15to20-c5-v0"] == "sum, every 15 to 20 steps, overlap 5"
    assert told["belated/PointReach-v0"].startswith("A point walks")


def test_tasks_can_be_searched(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tasks", "hopper-max", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["id"] for row in rows] == [
        f"belated/Hopper-max-{lengths}-v0" for lengths in ("n20", "n15to20", "n10to20")
    ]
    assert rows[0]["about"] == "max, every 20 steps"
    assert main(["tasks", "Humanoid"]) == 2
    assert "No task's id contains 'Humanoid'" in capsys.readouterr().err
