"""There is one kind of run folder, whoever made it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode
from scripted_envs import RandomEnv, ScriptedEnv
from small_agents import delayed, small_agent, vector_of

import belated
from belated import Agent, Evaluate
from belated.cli import main
from belated.credit.base import Unlearned
from belated.methods import METHODS, SAC, Method, find_method
from belated.parts import override
from belated.training.naming import name_of
from belated.training.recipes import recipe_of
from belated.training.run import RunSettings, load_run, read_config, read_settings

QUICK: dict[str, Any] = {"eval_every": 5, "eval_episodes": 1}
"""With the 30 random steps of a small agent, 10 steps compile no update."""

if "scripted/Late-v0" not in gym.registry:
    gym.register(
        "scripted/Late-v0",
        entry_point="scripted_envs:ScriptedEnv",
        kwargs={"rewards": [0, 0, 5.0, 0, 0, 7.0]},
    )


def pendulum(**how: Any) -> gym.Env[Any, Any]:
    return belated.delay(gym.make("Pendulum-v1"), **{"interval": "5:7"} | how)


def by_hand() -> gym.Env[Any, Any]:
    return belated.delay(RandomEnv(), interval="2:5")


def test_a_run_from_python_is_evaluated_credited_drawn_and_resumed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    small_agent(env=pendulum(), learning_starts=50).learn(10, out="run", **QUICK)
    assert main(["evaluate", "run", "--episodes", "1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["steps"] == 10
    assert main(["credit", "run", "--intervals", "1"]) == 0
    assert Path("run/credit.png").stat().st_size > 5_000
    assert main(["report", "run"]) == 0
    assert "Pendulum-v1" in Path("report.html").read_text()
    assert main(["plot", "run"]) == 0
    assert main(["train", "--resume", "run", "--steps", "20", "--no-progress"]) == 0
    assert Agent.load("run").steps == 20
    before = read_config(Path("run")) | {"label": "mine"}
    Path("run/config.json").write_text(json.dumps(before))
    Agent.load("run", pendulum()).learn(5, out="run")  # as often as before, not as by default
    after = read_config(Path("run"))
    assert after == before | {"steps": 25}


def test_an_environment_with_arguments_is_made_again_with_them(tmp_path: Path) -> None:
    env = belated.delay(gym.make("Pendulum-v1", g=3.0), interval=4, phase=False)
    small_agent(env=env).learn(10, out=tmp_path, **QUICK)
    made = load_run(tmp_path).env
    assert made is not None
    assert made.unwrapped.g == 3.0  # type: ignore[attr-defined]
    assert made.spec == env.spec
    settings = read_settings(tmp_path)
    assert (settings.interval, settings.reward, settings.phase) == ("4", None, False)


def test_the_same_task_from_python_and_from_the_command_line_may_be_compared(
    tmp_path: Path,
) -> None:
    small_agent(env=pendulum()).learn(10, out=tmp_path / "td3", **QUICK)
    command = ["train", "--env", "Pendulum-v1", "--interval", "5:7", "--method", "sac"]
    command += ["--steps", "10", "--eval-every", "5", "--eval-episodes", "1", "--no-progress"]
    small = ["--set", "hidden=[8,8]", "--learning-starts", "9"]
    assert main([*command, *small, "--out", str(tmp_path / "sac")]) == 0
    python, shell = (read_config(tmp_path / name) for name in ("td3", "sac"))
    for name in ("env", "interval", "reward", "overlap", "recipe", "period"):
        assert python[name] == shell[name], name


def test_going_on_runs_no_code_of_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    small_agent(env=pendulum(), learning_starts=50).learn(10, out="run", **QUICK)
    (tmp_path / "run" / "evil").mkdir()
    (tmp_path / "run" / "evil" / "__init__.py").write_text("raise SystemExit('code ran')")
    hostile = read_config(Path("run")) | {"method": "run.evil.x:M", "when": "run.evil.x:f"}
    Path("run/config.json").write_text(json.dumps(hostile))
    Agent.load("run", pendulum()).learn(5, out="run")


@pytest.mark.parametrize(
    "damage",
    [{"method": 3}, {"recipe": "x"}, {"recipe": []}, {"recipe": {"additional_wrappers": ["x"]}},
     {"set": "x=1"}, {"eval_every": "often"}, {"seed": True}],
)  # fmt: skip
def test_damaged_settings_are_told(damage: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"env": "Pendulum-v1"} | damage))
    with pytest.raises(ValueError, match=f"is damaged: {next(iter(damage))}"):
        read_settings(tmp_path)


def test_arguments_that_a_file_cannot_hold_are_not_written_down() -> None:
    gym.register("scripted/Keys-v0", entry_point="scripted_envs:ScriptedEnv")
    env = gym.make("scripted/Keys-v0", rewards={0: 1.0, 1: 2.0})
    assert recipe_of(env) is None
    del gym.registry["scripted/Keys-v0"]


def test_an_environment_that_is_late_by_itself_is_made_again_by_who_trusts_the_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    env = belated.mark(gym.make("scripted/Late-v0"), period=3)
    small_agent(env=env).learn(10, out=tmp_path, **QUICK)
    assert main(["evaluate", str(tmp_path)]) == 2
    assert "name code to import: scripted_envs:ScriptedEnv" in capsys.readouterr().err
    assert main(["evaluate", str(tmp_path), "--trust", "--episodes", "2"]) == 0
    assert "return 12.00" in capsys.readouterr().out
    assert "scripted_envs" in read_config(tmp_path)["provenance"]["sources"]


@pytest.mark.parametrize(
    "recipe",
    [
        {"id": "Pendulum-v1", "entry_point": "antigravity:fly"},
        {"id": "X-v0", "entry_point": "gymnasium.envs.registration:load_env_creator",
         "kwargs": {"name": "antigravity:fly"}},
        {"additional_wrappers": [{"entry_point": "antigravity:fly", "kwargs": {}}]},
        {"kwargs": {"file": "antigravity"}},
        {"additional_wrappers": [{"name": "MarkIntervals", "kwargs": {"when": "antigravity:fly"},
                                  "entry_point": "belated.envs.mark_intervals:MarkIntervals"}]},
        {"additional_wrappers": [{"name": "DelayReward", "kwargs": {"reward": "antigravity:fly"},
                                  "entry_point": "belated.envs.delay_reward:DelayReward"}]},
    ],
)  # fmt: skip
def test_a_strangers_recipe_imports_nothing(recipe: dict[str, Any], tmp_path: Path) -> None:
    usual = json.loads(gym.spec("Pendulum-v1").to_json())
    document = {"env": "Pendulum-v1", "recipe": usual | recipe}
    (tmp_path / "config.json").write_text(json.dumps(document))
    with pytest.raises(
        ValueError, match=r"name code to import: (antigravity|gymnasium\.envs\.r|P.* with)"
    ):
        load_run(tmp_path)


@pytest.mark.parametrize(
    "recipe", [{"entry_point": "no_such_module:Env"}, {"additional_wrappers": [{}]}, {"x": 1}]
)
def test_a_recipe_that_does_not_work_here_is_told(recipe: dict[str, Any]) -> None:
    usual = json.loads(gym.spec("Pendulum-v1").to_json())
    with pytest.raises(ValueError, match=r"Cannot make the run's environment|An issue occurred"):
        RunSettings(env="Pendulum-v1", recipe=usual | recipe).make_env()


@pytest.mark.parametrize("kind", ["by hand", "lambda"])
def test_an_environment_that_no_file_can_name_needs_python(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def make() -> gym.Env[Any, Any]:
        if kind == "by hand":
            return by_hand()
        return delayed(reward=lambda observations, actions, rewards: rewards.sum())

    monkeypatch.chdir(tmp_path)
    small_agent(env=make()).learn(10, out="run", eval_env=make(), **QUICK)
    for command in (["evaluate", "run"], ["credit", "run"], ["train", "--resume", "run"]):
        assert main(command) == 2
        assert "belated.Agent.load('run', env)" in capsys.readouterr().err
    assert main(["report", "run"]) == 0
    assert ("RandomEnv" if kind == "by hand" else "scripted/Random-v0") in Path(
        "report.html"
    ).read_text()
    assert Agent.load("run", make()).evaluate(1, env=make()).episodes == 1


def test_the_run_of_a_vector_environment_is_described_by_where_it_is_evaluated(
    tmp_path: Path,
) -> None:
    agent = small_agent(env=vector_of(2, AutoresetMode.SAME_STEP))
    with pytest.raises(ValueError, match="eval_env="):
        agent.learn(10, out=tmp_path / "run")
    agent.learn(10, out=tmp_path / "run", eval_env=delayed(), **QUICK)
    settings = read_settings(tmp_path / "run")
    assert (settings.env, settings.interval, settings.num_envs) == ("scripted/Random-v0", "2:5", 2)


@belated.register
@dataclass(frozen=True)
class Halved(Unlearned):
    """A credit rule of one's own."""

    def reward(self, state: None, batch: Any) -> Any:
        return batch.reward / 2


@pytest.mark.parametrize("name", [*METHODS, "td3-hc-pairwise-7"])
def test_a_method_is_told_by_its_name_and_what_differs_from_it(name: str) -> None:
    method = find_method(name)
    assert name_of(method) == (name, {})
    changes = {"gamma": 0.5, "hidden": (8,)}
    changed = override(method, changes)
    found, different = name_of(changed)
    assert found == name
    assert override(find_method(found), different) == changed
    assert sorted(different) == sorted(changes)


def test_a_method_of_ones_own_is_told_by_its_parts() -> None:
    assert name_of(Method(SAC(credit=Halved()))) == ("SAC-Halved", {})


def test_evaluations_need_no_folder() -> None:
    agent = small_agent().learn(10, eval_every=5, eval_episodes=1)
    assert [row["step"] for row in agent.evaluations] == [5, 10]
    agent = small_agent(env=by_hand()).learn(7, eval_env=by_hand(), eval_episodes=1, log_every=5)
    assert [row["step"] for row in agent.history] == [5, 7]
    assert [row["step"] for row in agent.evaluations] == [7]
    assert small_agent(env=by_hand()).learn(10).history == []


def test_an_evaluation_of_the_users_is_enough(tmp_path: Path) -> None:
    agent = small_agent(env=by_hand())
    with pytest.raises(ValueError, match="eval_env="):
        agent.learn(10, out=tmp_path)
    agent.learn(10, out=tmp_path, callback=Evaluate(4, 2, by_hand()))
    assert [row["step"] for row in agent.evaluations] == [4, 8, 10]
    settings = read_settings(tmp_path)
    assert (settings.eval_every, settings.eval_episodes) == (4, 2)
    agent.learn(10, callback=Evaluate(100, 1, by_hand()), eval_every=7)
    assert [row["step"] for row in agent.evaluations] == [4, 8, 10, 14, 20]


@pytest.mark.parametrize(
    "option",
    [{"checkpoint_every": 5}, {"checkpoint_minutes": 5}, {"tensorboard": True}, {"wandb": True}],
)
def test_what_needs_a_folder_is_refused_without_one(option: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=f"{next(iter(option))}: that needs a run folder"):
        small_agent().learn(10, **option)


def test_credit_is_drawn(tmp_path: Path) -> None:
    env = belated.mark(ScriptedEnv([0, 0, 5.0, 0, 0, 7.0]), period=3)
    agent = small_agent(env=env)
    played = agent.plot_credit(tmp_path / "new" / "played.png", env=env)
    given = agent.plot_credit(str(tmp_path / "given.svg"), agent.play(env=env))
    assert played.stat().st_size > 5_000
    assert b"<svg" in given.read_bytes()
    with pytest.raises(ValueError, match="eval_env="):
        agent.plot_credit(tmp_path / "no.png")


def test_an_evaluation_has_all_that_is_logged_of_it() -> None:
    outcome = small_agent().evaluate(3)
    assert outcome.summary() == {
        "return_mean": outcome.return_mean,
        "return_std": outcome.return_std,
        "revealed_return_mean": outcome.revealed_return_mean,
        "discounted_return_mean": outcome.discounted_return_mean,
        "length_mean": outcome.length_mean,
    }
    assert outcome.return_mean == np.mean(outcome.returns)
    assert outcome.episodes == 3


class EvalCallback:
    """Looks like one of Stable-Baselines3's."""

    def _on_step(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("callback", "said"),
    [
        (EvalCallback(), "EvalCallback looks like a callback of Stable-Baselines3"),
        ([EvalCallback()], "belated.Evaluate"),
        (Evaluate, r"takes objects, not classes: Evaluate\(...\)"),
        ("x", "a function of the agent, a belated.Callback or a list of them; got 'x'"),
        (3, "a function of the agent, a belated.Callback or a list of them; got 3"),
    ],
)
def test_what_is_no_callback_is_refused_before_learning(callback: Any, said: str) -> None:
    agent = small_agent()
    with pytest.raises(ValueError, match=said):
        agent.learn(10, callback=callback)
    assert agent.steps == 0
