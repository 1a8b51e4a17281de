"""Every number that anyone reports reaches every log."""

from __future__ import annotations

import csv
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode
from gymnasium.wrappers import TimeLimit
from scripted_envs import RandomEnv, ScriptedEnv
from small_agents import delayed, small_agent, vector_of

import belated
from belated import Agent, Callback
from belated.credit.base import Unlearned
from belated.methods import SAC
from belated.training.logging import CSVWriter


@belated.register
@dataclass(frozen=True)
class Talkative(Unlearned):
    """A credit rule that reports a number of its own."""

    def update(self, state: None, batch: Any, key: Any) -> Any:
        return None, {"talk": batch.reward.mean()}

    def reward(self, state: None, batch: Any) -> Any:
        return batch.reward


def rows_of(folder: Path) -> list[dict[str, str]]:
    with (folder / "progress.csv").open() as file:
        return list(csv.DictReader(file))


def test_columns_grow_and_rows_above_stay(tmp_path: Path) -> None:
    writer = CSVWriter(tmp_path / "progress.csv", [{"step": 1, "old": 2.0}])
    writer.write({"step": 2, "old": 3.0})
    writer.write({"step": 3, "new": 4.0})
    writer.write({"step": 4, "old": 5.0, "new": 6.0})
    rows = rows_of(tmp_path)
    assert [row["step"] for row in rows] == ["1", "2", "3", "4"]
    assert [row["old"] for row in rows] == ["2.0", "3.0", "", "5.0"]
    assert [row["new"] for row in rows] == ["", "", "4.0", "6.0"]
    assert [path.name for path in tmp_path.iterdir()] == ["progress.csv"]


def test_there_are_only_columns_that_some_row_fills(tmp_path: Path) -> None:
    writer = CSVWriter(tmp_path / "progress.csv")
    assert (tmp_path / "progress.csv").read_text() == "step\n"
    writer.write({"mine": 2.0, "wall_time": 3.0, "step": 1})
    writer.write({"step": 2, "return_mean": 4.0})
    header = (tmp_path / "progress.csv").read_text().splitlines()[0]
    assert header == "step,return_mean,wall_time,mine"  # in the usual order


def test_what_a_part_reports_is_logged_everywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_SILENT", "true")
    agent = small_agent(SAC(credit=Talkative()))
    how: dict[str, Any] = {"eval_every": 50, "eval_episodes": 1, "log_every": 20}
    agent.learn(60, out=tmp_path / "run", tensorboard=True, wandb=True, **how)
    assert np.isfinite(float(rows_of(tmp_path / "run")[-1]["talk"]))
    (events,) = (tmp_path / "run" / "tensorboard").glob("events*")
    assert b"talk" in events.read_bytes()
    (logged,) = (tmp_path / "run" / "wandb").glob("offline-run-*/*.wandb")
    deadline = time.monotonic() + 30  # another process writes it
    while b"talk" not in logged.read_bytes():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_training_episodes_are_logged_between_evaluations(tmp_path: Path) -> None:
    env, second = (
        belated.delay(TimeLimit(ScriptedEnv([1.0] * 10), 100), interval=4, reward="max")
        for _ in range(2)
    )
    agent = small_agent(env=env)
    agent.learn(95, out=tmp_path, eval_env=second, eval_every=90, eval_episodes=1, log_every=25)
    rows = rows_of(tmp_path)
    assert [row["step"] for row in rows] == ["25", "50", "75", "90", "95"]
    assert [row["train_episodes"] for row in rows] == ["2.0", "3.0", "2.0", "2.0", ""]
    assert {row["train_return_mean"] for row in rows} == {"10.0", ""}
    assert {row["train_revealed_return_mean"] for row in rows} == {"30.0", ""}
    assert {row["train_length_mean"] for row in rows} == {"10.0", ""}
    assert [row["return_mean"] for row in rows] == ["", "", "", "10.0", "10.0"]
    assert len(agent.evaluations) == 2


def test_without_a_hidden_reward_training_returns_are_the_revealed_ones() -> None:
    agent = small_agent(env=belated.mark(ScriptedEnv([0, 0, 5.0, 0, 0, 7.0]), period=3)).learn(20)
    agent.log({})
    assert agent.history[0]["train_return_mean"] == 12.0
    assert agent.history[0]["train_episodes"] == 3


def test_training_statistics_survive_a_restart(tmp_path: Path) -> None:
    whole = small_agent(num_envs=2).learn(90)
    small_agent(num_envs=2).learn(50).save(tmp_path, replay=True)
    resumed = Agent.load(tmp_path, delayed()).learn(40)
    for agent in (whole, resumed):
        agent.log({})
    timing = ("wall_time", "steps_per_second")
    first, second = (
        {name: value for name, value in agent.history[0].items() if name not in timing}
        for agent in (whole, resumed)
    )
    assert first == second
    assert first["train_episodes"] > 2


class LogsEverywhere(Callback):
    """Logs whenever it can."""

    def on_start(self, agent: Agent) -> None:
        agent.log({"mine": 1})

    def on_step(self, agent: Agent) -> None:
        agent.log({"mine": agent.steps})

    def on_goal(self, agent: Agent) -> None:
        agent.log({"mine": -1})

    def on_end(self, agent: Agent) -> None:
        agent.log({"mine": float(np.float32(-2))})


def test_a_callback_may_log_at_any_time_and_evaluations_go_on(tmp_path: Path) -> None:
    agent = small_agent()
    how: dict[str, Any] = {"eval_every": 20, "eval_episodes": 1, "progress_bar": True}
    agent.learn(40, callback=LogsEverywhere(), out=tmp_path, **how)
    assert [row["step"] for row in agent.evaluations] == [20, 40]
    mine = [float(row["mine"]) for row in rows_of(tmp_path) if row["mine"]]
    assert mine == [1, *range(1, 41), -1, -2]
    assert Agent.load(tmp_path).history == agent.history[:-1]  # saved before the last callback
    agent.log({"mine": 7})
    assert agent.history[-1]["mine"] == 7


@pytest.mark.parametrize("how", ["callback", "out"])
def test_an_evaluation_environment_that_cannot_be_made_fails_at_once(
    how: str, tmp_path: Path
) -> None:
    agent = small_agent(env=belated.delay(RandomEnv(), interval="2:5"))
    options: Any = {"callback": belated.Evaluate(every=50)} if how == "callback" else {}
    with pytest.raises(ValueError, match="Cannot make another"):
        agent.learn(60, **options or {"out": tmp_path / "run"})
    assert agent.steps == 0
    assert not (tmp_path / "run").exists()


def test_an_evaluation_environment_of_another_kind_fails_at_once() -> None:
    other = belated.delay(gym.make("Pendulum-v1"), interval=5)
    with pytest.raises(ValueError, match="another kind of environment"):
        small_agent().learn(60, callback=belated.Evaluate(every=50, env=other))
    with pytest.raises(ValueError, match="does not say when its rewards"):
        small_agent().evaluate(env=gym.make("Pendulum-v1"))
    env = delayed()
    with pytest.raises(ValueError, match="another environment than the agent's"):
        small_agent(env=env).learn(60, callback=belated.Evaluate(every=50, env=env))


def test_an_error_in_a_callback_is_the_one_that_is_seen_and_files_are_closed(
    tmp_path: Path,
) -> None:
    class Fails(Callback):
        def on_start(self, agent: Agent) -> None:
            raise OSError("no such printer")

    agent = small_agent()
    with pytest.raises(OSError, match="printer"):
        agent.learn(40, callback=Fails(), progress_bar=True, out=tmp_path)
    assert agent.journal._writers == []
    assert agent.learn(40, callback=lambda agent: agent.steps // 30).steps == 40  # 0 is not False


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"tensorboard": True}, "needs a run folder"),
        ({"out": "run", "eval_every": 0}, "eval_every must be at least 1"),
        ({"eval_episodes": 0}, "eval_episodes must be at least 1"),
        ({"log_every": 0}, "log_every must be at least 1"),
        ({"callback": belated.Evaluate, "eval_every": 1.5}, "eval_every must be a whole number"),
        ({"out": "run", "eval_env": "vector"}, "one gymnasium.Env at a time"),
        ({"callback": lambda agent: agent.log({"mine": [1, 2]})}, "mine is .1, 2."),
    ],
)
def test_bad_options_are_refused_by_name(
    options: Any, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    if options.get("eval_env"):
        options = options | {"eval_env": vector_of(2, AutoresetMode.SAME_STEP)}
    with pytest.raises(ValueError, match=said):
        small_agent().learn(20, **options)


def test_exploding_values_are_told_once() -> None:
    agent = small_agent("sac").learn(60)
    agent.log({"value_largest": 5.0})
    with pytest.warns(UserWarning, match=r"a critic says 1e\+06, but .* values are exploding"):
        agent.log({"value_largest": 1e6})
    agent.log({"value_largest": 1e6})
