from __future__ import annotations

import json
import subprocess
import sys

import pytest

from belated.cli import main

FEW = ["--interval", "5", "--samples", "100"]


def test_a_reward_is_judged_with_its_limits_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check-reward", "Pendulum-v1", *FEW]) == 0
    out = capsys.readouterr().out
    assert "Pendulum-v1, sum reward: strongly past-invariant on all samples" in out
    assert "dynamics may not allow" in out
    assert "The worst" not in out
    assert out.splitlines()[-1].startswith("What to do: take crossq-hc-singleton")


def test_a_bad_verdict_comes_with_examples_and_exits_with_0(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["check-reward", "Pendulum-v1", *FEW, "--reward", "max"]) == 0
    out = capsys.readouterr().out
    assert "max reward: not past-invariant" in out
    assert "The worst" in out
    assert "2 then 2" in out
    assert out.splitlines()[-1].startswith("What to do: try hc-pairwise-1 and hc-rnn")


def test_json_has_one_line_for_each_environment(capsys: pytest.CaptureFixture[str]) -> None:
    ids = ["Pendulum-v1", "MountainCarContinuous-v0"]
    assert main(["check-reward", *ids, *FEW, "--reward", "max", "--json"]) == 0
    reports = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [report["env"] for report in reports] == ids
    for report in reports:
        assert report["verdict"] == "not past-invariant"
        assert report["quadruples"] == 100
        assert report["flips"] == round(100 * report["flip_fraction"]) > 0
        assert len(report["examples"][0]["first_history"]) == 2


def test_overlap_and_seed_are_passed_on(capsys: pytest.CaptureFixture[str]) -> None:
    def rewards(*arguments: str) -> str:
        own = ["--reward", "reward_functions:masked_mean_action", "--json"]
        assert main(["check-reward", "Pendulum-v1", *FEW, *own, *arguments]) == 0
        return capsys.readouterr().out

    assert rewards("--overlap", "2") != rewards()
    assert rewards("--overlap", "2") != rewards("--overlap", "2", "--seed", "1")


def test_a_reward_that_is_late_by_itself_is_judged_by_its_records(
    capsys: pytest.CaptureFixture[str],
) -> None:
    late = ["late_envs:Lab-v0", "--info-key", "lab_report", "--max-length", "5", "--samples", "60"]
    assert main(["check-reward", *late]) == 0
    out = capsys.readouterr().out
    assert "late_envs:Lab-v0, recorded reward: close to a sum of a term for each step" in out
    assert "What cannot be known" in out
    assert out.splitlines()[-1].startswith("What to do: take crossq-hc-singleton")
    assert main(["check-reward", *late, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["intervals"] == 60
    assert told["pairs"]["share"] < 0.02


def test_a_task_brings_its_own_reward(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check-reward", "belated/Reacher-max-n20-v0", "--samples", "50"]) == 0
    assert "max reward: not past-invariant" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["Pendulum-v1"], "does not say how its reward is delayed"),
        (["Pendulum-v1", "--interval", "5", "--samples", "0"], "number of samples"),
        (["Pendulum-v1", "--interval", "5", "--reward", "median"], "no interval reward 'median'"),
        ([], "Which environment?"),
    ],
)
def test_bad_input_exits_with_2(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check-reward", *arguments]) == 2
    assert said in capsys.readouterr().err


def test_the_command_is_installed_and_explains_itself() -> None:
    command = [sys.executable, "-m", "belated", "check-reward", "--help"]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "past-invariant" in result.stdout
