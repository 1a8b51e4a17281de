from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from belated.cli import main


def test_well_formed_environments_exit_with_0(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check-env", "belated/PointReach-v0", "--steps", "600"]) == 0
    assert "✓ belated/PointReach-v0: well-formed (600 steps" in capsys.readouterr().out


def test_a_problem_exits_with_1_and_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check-env", "belated/PointReach-v0", "Pendulum-v1", "--steps", "60"]) == 1
    out = capsys.readouterr().out
    assert "✗ Pendulum-v1: not well-formed" in out
    assert "declares no interval_spec" in out
    assert "on the command line --interval 20, or --period 20" in out


def test_an_environment_can_be_delayed_on_the_way(capsys: pytest.CaptureFixture[str]) -> None:
    delayed = ["--interval", "5:7", "--reward", "sum", "--overlap", "2", "--steps", "300"]
    assert main(["check-env", "Pendulum-v1", *delayed]) == 0
    assert "well-formed" in capsys.readouterr().out


def test_an_environment_can_be_marked_on_the_way(capsys: pytest.CaptureFixture[str]) -> None:
    for marked in (["--info-key", "lab_report", "--max-length", "6"], ["--period", "5"]):
        assert main(["check-env", "late_envs:Lab-v0", "--steps", "300", *marked]) == 0
    assert capsys.readouterr().out.count("well-formed") == 2


def test_a_module_is_found_in_the_folder_that_one_is_in(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "import gymnasium, belated\n"
        "gymnasium.register('Mine-v0', entry_point=lambda **how: "
        "belated.make('belated/PointReach-v0'))\n"
    )
    program = str(Path(sys.executable).parent / "belated")
    command = [program, "check-env", "mine:Mine-v0", "--steps", "9"]
    found = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "✓ mine:Mine-v0" in found.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["late_envs:Lab-v0", "--info-key", "lab_report"], "max_length is missing"),
        (["late_envs:Lab-v0", "--period", "weekly"], "period must be a whole number"),
        (["Pendulum-v1", "--interval", "5", "--reward", "nowhere:f"], "no module 'nowhere' in"),
        (["NoSuchEnv-v0"], "There is no environment 'NoSuchEnv-v0'"),
        (["Pendulum-v1", "--interval", "0"], "at least 1"),
        (["Pendulum-v1", "--reward", "sum"], "interval"),
        (["belated/PointReach-v0", "--interval", "5"], "leave out interval"),
        ([], "Which environment?"),
    ],
)
def test_bad_input_exits_with_2(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check-env", *arguments]) == 2
    assert said in capsys.readouterr().err


def test_the_command_is_installed_and_explains_itself() -> None:
    command = [sys.executable, "-m", "belated", "check-env", "--help"]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "what a learner would trip over" in result.stdout
