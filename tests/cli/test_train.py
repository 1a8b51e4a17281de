from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from small_agents import small_agent

import belated
from belated.analysis import agent_figures
from belated.cli import main
from belated.training.lock import locked
from belated.training.run import RunSettings

QUICK = ["--learning-starts", "60", "--eval-every", "50", "--eval-episodes", "1", "--no-progress",
         "--set", "hidden=[8,8]", "batch_size=8"]  # fmt: skip


def train(out: Path, *arguments: str) -> int:
    command = ["train", "--env", "Pendulum-v1", "--interval", "5:7", "--method", "hc-singleton"]
    return main([*command, "--out", str(out), *QUICK, *arguments])


def test_a_run_is_trained_evaluated_credited_and_resumed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "run"
    assert train(run, "--steps", "120", "--seed", "3") == 0
    config = json.loads((run / "config.json").read_text())
    assert (config["method"], config["seed"], config["interval"]) == ("hc-singleton", 3, "5:7")
    assert config["hyperparameters"]["training"]["batch_size"] == 8
    assert (run / "checkpoint" / "manifest.json").is_file()
    rows = (run / "progress.csv").read_text().splitlines()
    assert all(any(column) for column in zip(*(row.split(",") for row in rows[1:]), strict=True))
    capsys.readouterr()

    env = belated.delay(gym.make("Pendulum-v1"), interval="5:7")
    small: dict[str, Any] = {"hidden": (8, 8), "batch_size": 8, "learning_starts": 60}
    agent = belated.Agent("hc-singleton", env, seed=3, **small)
    agent.learn(1, out=tmp_path / "python", eval_every=50, eval_episodes=1)
    python = json.loads((tmp_path / "python" / "config.json").read_text())
    unsaid = {"steps": 120, "reward": None, "overlap": None}
    assert python | unsaid == config

    assert main(["evaluate", str(run), "--episodes", "2", "--json"]) == 0
    outcome: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert outcome["steps"] == 120
    assert len(outcome["returns"]) == 2
    assert outcome["return_mean"] == pytest.approx(outcome["revealed_return_mean"])

    evaluated = [row.split(",") for row in rows if row.split(",")[1]]
    told = evaluated[0].index("revealed_return_mean")
    best = max(evaluated[1:], key=lambda row: float(row[told]))
    arguments = ["evaluate", str(run), "--best", "--episodes", "1", "--json"]
    assert main(arguments) == 0
    outcome = json.loads(capsys.readouterr().out)
    assert outcome["steps"] == int(best[0])
    assert outcome["revealed_return_mean"] == pytest.approx(float(best[told]))
    assert main([*arguments, "--seed", "1"]) == 0
    other = json.loads(capsys.readouterr().out)
    assert other["steps"] == outcome["steps"]
    assert other["returns"] != outcome["returns"]
    assert main(["credit", str(run), "--best"]) == 0
    assert (run / "best" / "credit.csv").is_file()
    shutil.rmtree(run / "best")
    capsys.readouterr()
    assert main(arguments) == 2
    assert "has kept no best agent" in capsys.readouterr().err

    assert main(["credit", str(run), "--intervals", "1"]) == 0
    assert "Correlation of credit with the hidden reward" in capsys.readouterr().out
    assert (run / "credit.png").stat().st_size > 5_000
    assert len((run / "credit.csv").read_text().splitlines()) == 201

    assert main(["train", "--resume", str(run), "--steps", "160", "--no-progress"]) == 0
    steps = [row.split(",")[0] for row in (run / "progress.csv").read_text().splitlines()[1:]]
    assert steps == ["50", "100", "120", "150", "160"]
    assert main(["train", "--resume", str(run), "--no-progress"]) == 0
    assert "160 steps already" in capsys.readouterr().out
    assert main(["train", "--resume", str(run), "--steps", "100", "--no-progress"]) == 2
    assert "has taken 160 steps already" in capsys.readouterr().err
    assert json.loads((run / "config.json").read_text())["steps"] == 160


def test_an_on_policy_run_is_trained_credited_and_resumed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "run"
    arguments = ["--steps", "60", "--eval-every", "50", "--eval-episodes", "1", "--no-progress"]
    small = ["hidden=[8,8]", "rollout_steps=32", "minibatches=4", "epochs=2", "lstm_units=8"]
    command = ["train", "--env", "Pendulum-v1", "--interval", "5:7", "--method", "rudder"]
    assert main([*command, "--out", str(run), *arguments, "--set", *small]) == 0
    rows = (run / "progress.csv").read_text().splitlines()
    values = dict(zip(rows[0].split(","), rows[-1].split(","), strict=True))
    assert float(values["rudder_error"]) > 0
    assert float(values["value_loss"]) > 0
    assert "td_loss" not in values
    assert main(["credit", str(run), "--intervals", "1"]) == 0
    assert "Correlation" in capsys.readouterr().out
    assert main(["train", "--resume", str(run), "--steps", "90", "--no-progress"]) == 0
    assert main([*command, "--out", str(tmp_path / "no"), "--learning-starts", "5"]) == 2
    assert "no hyperparameter learning_starts" in capsys.readouterr().err


def test_a_late_environment_is_marked_alike_by_every_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run, marks = tmp_path / "run", ["--info-key", "lab_report", "--max-length", "6"]
    command = ["train", "--env", "late_envs:Lab-v0", *marks, "--method", "hc-singleton"]
    assert main([*command, "--out", str(run), *QUICK, "--steps", "90"]) == 0
    config = json.loads((run / "config.json").read_text())
    assert (config["info_key"], config["max_length"]) == ("lab_report", 6)
    assert main(["train", "--resume", str(run), "--trust", "--steps", "95", "--no-progress"]) == 0
    assert main(["evaluate", str(run), "--trust", "--episodes", "1"]) == 0
    capsys.readouterr()
    assert main(["credit", str(run), "--trust"]) == 0
    assert "hidden" not in capsys.readouterr().out


def test_a_run_stopped_before_its_first_checkpoint_starts_again_and_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "run"
    assert train(run, "--steps", "70") == 0
    shutil.rmtree(run / "checkpoint")
    assert main(["train", "--resume", str(run), "--no-progress"]) == 0
    assert "holds no checkpoint yet: the run starts from the beginning" in capsys.readouterr().out
    assert (run / "checkpoint" / "manifest.json").is_file()


def test_a_run_that_another_process_is_at_is_not_resumed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "run"
    assert train(run, "--steps", "70") == 0
    with locked(run / "run"):
        assert main(["train", "--resume", str(run), "--steps", "90", "--no-progress"]) == 2
    assert "Another process is writing to" in capsys.readouterr().err
    assert main(["train", "--resume", str(run), "--steps", "90", "--no-progress"]) == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "Which environment?"),
        (["--env", "Pendulum-v1"], "On the command line: --interval 20"),
        (["--env", "NoSuchEnv-v0"], "There is no environment"),
        (["--env", "belated/PointReach-v0", "--method", "sax"], "There are sac, oracle"),
        (["--env", "belated/PointReach-v0", "--interval", "5"], "leave out interval"),
        (["--env", "belated/PointReach-v0", "--set", "batch_size"], "--set batch_size=256"),
        (["--env", "belated/PointReach-v0", "--set", "batchsize=1"], "no hyperparameter"),
        (["--env", "belated/PointReach-v0", "--set", "hidden=[8,"], "--set batch_size=256"),
        (["--env", "belated/PointReach-v0", "--set", "precision=half"], "float32, bfloat16"),
        (["--env", "belated/PointReach-v0", "--steps", "0"], "--steps must be at least 1"),
        (["--env", "belated/PointReach-v0", "--steps", "-5"], "--steps must be at least 1"),
        (["--env", "belated/PointReach-v0", "--steps", "5e3"], "its 5000 steps are random"),
        (["--env", "belated/PointReach-v0", "--eval-every", "0"], "--eval-every must be at lea"),
        (["--env", "belated/PointReach-v0", "--num-envs", "0"], "--num-envs must be at least 1"),
        (
            [
                "--env",
                "belated/PointReach-v0",
                "--learning-starts",
                "9",
                "--set",
                "learning_starts=7",
            ],
            "--learning-starts 9 and as",
        ),
        (
            ["--env", "belated/PointReach-v0", "--set", "gamma=0.9", "gamma=0.8"],
            "gives gamma twice",
        ),
        (["--env", "belated/PointReach-v0", "--set", "batchsize=1"], "Did you mean batch_size?"),
        (["--env", "belated/PointReach-v0", "--method", "hc-singelton"], "mean hc-singleton?"),
        (["--env", "belated/PointReach-v0", "--method", "math:pi"], "is no method and no backbone"),
        (["--env", "belated/PointReach-v0", "--eval-episodes", "0"], "--eval-episodes must be at"),
        (["--resume", "nowhere"], "holds no run"),
        (["--resume", "nowhere", "--seed", "3", "--method", "sac"], "leave out --method, --seed"),
    ],
)
def test_bad_input_exits_with_2(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    out = [] if "--resume" in arguments else ["--out", str(tmp_path / "run")]
    assert main(["train", *arguments, *out]) == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_a_folder_that_holds_a_run_is_left_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "config.json").write_text("{}")
    assert train(tmp_path, "--steps", "70") == 2
    assert "holds a run already" in capsys.readouterr().err


@pytest.mark.parametrize("command", [["evaluate"], ["credit"], ["train", "--resume"]])
@pytest.mark.parametrize(
    "how",
    [{"interval": "5", "reward": "antigravity:fly"}, {"max_length": 5, "when": "antigravity:fly"}],
)
def test_a_strangers_folder_imports_nothing(
    command: list[str], how: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = {"env": "Pendulum-v1", **how}
    (tmp_path / "config.json").write_text(json.dumps(config))
    assert main([*command, str(tmp_path)]) == 2
    assert "name code to import: antigravity:fly" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "value"),
    [("False", False), ("false", False), ("None", None), (".5", 0.5), ("[8, 8]", (8, 8))],
)
def test_values_may_be_written_as_json_or_as_python(text: str, value: Any) -> None:
    found = RunSettings(env="Pendulum-v1", set=[f"x={text}"]).overrides()["x"]
    assert (tuple(found) if isinstance(found, list) else found) == value


def test_a_picture_of_credit_says_whose_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    titles = []
    draw = agent_figures.draw_credit

    def watched(*arguments: Any, title: str, **others: Any) -> Any:
        titles.append(title)
        return draw(*arguments, title=title, **others)

    monkeypatch.setattr(agent_figures, "draw_credit", watched)
    assert train(tmp_path / "run", "--steps", "70") == 0
    assert main(["credit", str(tmp_path / "run")]) == 0
    assert titles == ["hc-singleton after 70 steps, on Pendulum-v1"]


def test_credit_says_what_it_adds_up_to_and_refuses_what_it_cannot_show(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    env = belated.delay(gym.make("Pendulum-v1"), interval=20)
    small_agent(env=env).learn(10, out=tmp_path, eval_episodes=1)
    capsys.readouterr()
    assert main(["credit", str(tmp_path), "--intervals", "1"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    earned, rewards = np.loadtxt(
        tmp_path / "credit.csv", delimiter=",", skiprows=1, usecols=(1, 3), unpack=True
    )
    assert f"add up to {earned.sum():.4g}, revealed rewards to {rewards.sum():.4g}" in said
    for option in ("--seed=-1", "--intervals=0"):
        assert main(["credit", str(tmp_path), option]) == 2
        assert option.partition("=")[0] in capsys.readouterr().err


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("def broken(:", "line 1"),
        ("import gymnasium as gym\nclass Env(gym.Env):\n    def __init__(self, server): ...\n"
         "gym.register('Needy-v0', entry_point=Env)", "server"),
    ],
)  # fmt: skip
def test_an_environment_that_cannot_be_made_is_told_in_a_sentence(
    code: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    name = f"module_{len(code)}"
    (tmp_path / f"{name}.py").write_text(code)
    monkeypatch.syspath_prepend(str(tmp_path))
    assert main(["check-env", f"{name}:Needy-v0", "--interval", "5"]) == 2
    error = capsys.readouterr().err
    assert error.startswith("belated: Cannot make")
    assert said in error
