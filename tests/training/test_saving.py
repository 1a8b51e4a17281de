"""A run that was stopped goes on as if it had not been, and files run no code."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import re
import signal
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest
from scripted_envs import RandomEnv, ScriptedEnv
from small_agents import (
    assert_same_weights,
    delayed,
    small_agent,
)

import belated
from belated import Agent
from belated.experience.lanes import EnvLanes
from belated.experience.off_policy import OffPolicy
from belated.training.interrupt import deferred_interrupt
from belated.training.learner import LearningError
from belated.training.lock import locked


def test_learning_in_two_parts_is_learning_in_one() -> None:
    whole = small_agent().learn(90)
    parts = small_agent().learn(37).learn(53)
    assert parts.steps == 90
    assert_same_weights(whole, parts)


@pytest.mark.parametrize(
    "name",
    ["hc-rnn", "td3", "crossq-hc-singleton", "rrd", "ircr-original", "ppo", "rudder", "lirpg"],
)
@pytest.mark.parametrize("at", [20, 47, 61])
def test_a_resumed_run_is_bit_equal_to_one_that_never_stopped(
    name: str, at: int, tmp_path: Path
) -> None:
    whole = small_agent(name, seed=5).learn(100)
    small_agent(name, seed=5).learn(at).save(tmp_path / "agent", replay=True)
    resumed = Agent.load(tmp_path / "agent", delayed())
    assert resumed.steps == at
    resumed.learn(100 - at)
    assert_same_weights(whole, resumed)


def test_updates_that_were_due_are_not_forgotten(tmp_path: Path) -> None:
    whole = small_agent("td3", updates_per_dispatch=4).learn(60)
    small_agent("td3", updates_per_dispatch=4).learn(47).save(tmp_path / "agent", replay=True)
    resumed = Agent.load(tmp_path / "agent", delayed()).learn(13)
    assert resumed.learner.state.updates == 28  # 30 are due after 30 random steps, in fours
    assert_same_weights(whole, resumed)


@pytest.mark.parametrize("name", ["hc-singleton", "ppo", "rudder"])
def test_a_resumed_run_with_several_environments_is_bit_equal_too(
    name: str, tmp_path: Path
) -> None:
    whole = small_agent(name, seed=5, num_envs=3).learn(120)
    small_agent(name, seed=5, num_envs=3).learn(60).save(tmp_path / "agent", replay=True)
    assert_same_weights(whole, Agent.load(tmp_path / "agent", delayed()).learn(60))


def test_an_environment_that_does_not_repeat_itself_is_told_on_resume(tmp_path: Path) -> None:
    small_agent(seed=5).learn(60).save(tmp_path / "agent", replay=True)
    with pytest.raises((RuntimeError, ValueError), match=r"another observation|elsewhere"):
        Agent.load(tmp_path / "agent", belated.delay(ScriptedEnv([1.0] * 40), interval="2:5"))


def test_ctrl_c_stops_between_two_steps_and_loses_nothing(tmp_path: Path) -> None:
    agent = small_agent()

    def interrupt(agent: Agent) -> None:
        if agent.steps == 45:
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        agent.learn(1_000, callback=interrupt, out=tmp_path)
    resumed = Agent.load(tmp_path, delayed()).learn(15)
    assert_same_weights(resumed, small_agent().learn(60))


def test_loading_runs_no_code(tmp_path: Path) -> None:
    small_agent().learn(40).save(tmp_path / "agent", replay=True)
    files = {file.suffix for file in (tmp_path / "agent").rglob("*") if file.is_file()}
    assert files == {".json", ".safetensors", ".rows"}
    manifest = tmp_path / "agent" / "manifest.json"
    document = json.loads(manifest.read_text())
    document["method"]["backbone"]["critic"]["type"] = "os.system"
    manifest.write_text(json.dumps(document))
    with pytest.raises(ValueError, match=r"os\.system"):
        Agent.load(tmp_path / "agent")


def test_saving_again_replaces_the_old_agent_whole(tmp_path: Path) -> None:
    agent = small_agent().learn(40)
    agent.save(tmp_path / "agent", replay=True)
    agent.learn(40).save(tmp_path / "agent")
    assert not (tmp_path / "agent" / "replay").exists()
    assert Agent.load(tmp_path / "agent").steps == 80
    assert [path.name for path in tmp_path.iterdir()] == ["agent"]


def test_an_agent_without_environment_can_only_predict(tmp_path: Path) -> None:
    small_agent().save(tmp_path / "agent")
    loaded = Agent.load(tmp_path / "agent")
    with pytest.raises(ValueError, match="no environment"):
        loaded.learn(10)
    with pytest.raises(ValueError, match="Pass an environment"):
        loaded.evaluate()
    with pytest.raises(ValueError, match="another kind of environment"):
        Agent.load(tmp_path / "agent", delayed(interval=9))
    with pytest.raises(FileNotFoundError, match="no saved agent"):
        Agent.load(tmp_path / "nothing")


class Breaks(gym.Wrapper[Any, Any, Any, Any]):
    """Raises at a step, counted over all episodes."""

    def __init__(self, env: Any, at: int) -> None:
        super().__init__(env)
        self.left = at

    def step(self, action: Any) -> Any:
        self.left -= 1
        if self.left == 0:
            raise RuntimeError("the simulator crashed")
        return super().step(action)


@pytest.mark.parametrize("at", [10, 56, 57, 58, 59, 60])
def test_an_error_in_the_environment_loses_nothing(at: int, tmp_path: Path) -> None:
    """The last good state is the one before the step that failed, whatever that step was."""
    agent = small_agent(env=Breaks(delayed(), at))
    with pytest.raises(RuntimeError, match="crashed") as caught:
        agent.learn(100, out=tmp_path, eval_env=delayed())
    run, place = reversed(caught.value.__notes__)
    assert run == f"This was step {at} of the run."
    assert re.match(r"Environment 0 was in episode \d+, after \d+ steps: reset\(seed=\d+\)", place)
    resumed = Agent.load(tmp_path, delayed())
    assert resumed.steps == at - 1
    assert_same_weights(resumed.learn(101 - at), small_agent().learn(100))


def test_an_error_in_the_last_of_several_environments_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = small_agent(num_envs=3)
    assert isinstance(agent.loop.lanes, EnvLanes)
    agent.loop.lanes.envs[2] = Breaks(agent.loop.lanes.envs[2], 20)
    with pytest.raises(RuntimeError, match="crashed"):
        agent.learn(120, out=tmp_path, eval_env=delayed())
    resumed = Agent.load(tmp_path, delayed())
    assert resumed.steps == 57
    assert_same_weights(resumed.learn(63), small_agent(num_envs=3).learn(120))


def test_sigterm_saves_and_leaves_with_its_exit_code(tmp_path: Path) -> None:
    def terminate(agent: Agent) -> None:
        if agent.steps == 45:
            signal.raise_signal(signal.SIGTERM)

    with pytest.raises(SystemExit) as caught:
        small_agent().learn(1_000, callback=terminate, out=tmp_path)
    assert caught.value.code == 143
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
    resumed = Agent.load(tmp_path, delayed()).learn(15)
    assert_same_weights(resumed, small_agent().learn(60))


def test_an_evaluation_that_was_left_in_the_middle_is_made_up_for(tmp_path: Path) -> None:
    class Interrupts(gym.Wrapper[Any, Any, Any, Any]):
        def reset(self, **how: Any) -> Any:
            if agent.steps == 50:
                signal.raise_signal(signal.SIGINT)
            return super().reset(**how)

    def rows(folder: Path) -> list[list[str]]:
        lines = (folder / "progress.csv").read_text().splitlines()
        timed = [lines[0].split(",").index(name) for name in ("wall_time", "steps_per_second")]
        cells = [line.split(",") for line in lines]
        return [[c for n, c in enumerate(row) if n not in timed] for row in cells]

    how: dict[str, Any] = {"eval_every": 25, "eval_episodes": 2, "log_every": 10}
    agent = small_agent()
    with pytest.raises(KeyboardInterrupt):
        agent.learn(60, out=tmp_path / "cut", eval_env=Interrupts(delayed()), **how)
    resumed = Agent.load(tmp_path / "cut", delayed())
    assert [row["step"] for row in resumed.evaluations] == [25]
    resumed.learn(10, out=tmp_path / "cut", **how)
    small_agent().learn(60, out=tmp_path / "whole", **how)
    assert rows(tmp_path / "cut") == rows(tmp_path / "whole")


def test_checkpoints_come_by_the_clock_too(tmp_path: Path) -> None:
    saved = []
    save = Agent.save

    class Noting(Agent):
        def save(self, folder: Any, *, replay: bool = False) -> None:
            saved.append((self.steps, folder.name))
            save(self, folder, replay=replay)

    agent = small_agent()
    agent.__class__ = Noting
    agent.learn(40, out=tmp_path, checkpoint_minutes=1e-9)
    checkpoints = [steps for steps, name in saved if name == "checkpoint"]
    assert checkpoints == [*range(1, 41), 40]


@pytest.mark.parametrize(
    ("random_steps", "message"),
    [(30, "The policy's actions are NaN"), (5_000, "After 1040 steps a parameter is NaN")],
)
def test_parameters_that_are_not_finite_reach_no_checkpoint(
    random_steps: int, message: str, tmp_path: Path
) -> None:
    agent = small_agent(learning_starts=random_steps).learn(40)
    agent.save(tmp_path / "agent")

    def poison(agent: Agent) -> None:
        if agent.steps == 50:
            agent.learner.leaves[0] = agent.learner.leaves[0].at[0].set(float("nan"))

    with pytest.raises(LearningError, match=message):
        agent.learn(2_000, callback=poison, out=tmp_path / "run")
    assert not (tmp_path / "run" / "checkpoint").exists()
    with pytest.raises(LearningError):
        agent.save(tmp_path / "agent")
    assert Agent.load(tmp_path / "agent").steps == 40


def test_saving_never_deletes_anything_else(tmp_path: Path) -> None:
    (tmp_path / "precious.txt").write_text("precious")
    with pytest.raises(ValueError, match="something else"):
        small_agent().save(tmp_path)
    assert (tmp_path / "precious.txt").exists()


class PowerCut(BaseException):
    """Nobody catches it."""


@pytest.mark.parametrize("after", range(1, 11))
def test_a_checkpoint_counts_only_when_it_is_whole(
    after: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cut off after so many writes, while the next one is being written."""
    agent = small_agent().learn(40)
    agent.save(tmp_path / "checkpoint", replay=True)
    agent.learn(20)
    writes = 0
    sync = os.fsync

    def power_cut(number: int) -> None:
        nonlocal writes
        writes += 1
        if writes == after:
            raise PowerCut
        sync(number)

    monkeypatch.setattr(os, "fsync", power_cut)
    with pytest.raises(PowerCut):
        agent.save(tmp_path / "checkpoint", replay=True)
    monkeypatch.undo()
    resumed = Agent.load(tmp_path, delayed())
    assert resumed.steps == (60 if after == 10 else 40)  # the tenth comes after the manifest
    resumed.learn(60 - resumed.steps).save(tmp_path / "checkpoint", replay=True)
    again = Agent.load(tmp_path, delayed()).learn(20)
    assert_same_weights(again, small_agent().learn(80))


@pytest.mark.filterwarnings("ignore:.*whose reward was never revealed")
def test_after_an_error_in_mid_step_learning_goes_on_with_new_episodes() -> None:
    agent = small_agent(env=Breaks(delayed(overlap=2), at=43))
    with pytest.raises(RuntimeError, match="crashed"):
        agent.learn(100)
    assert agent.steps == 42
    agent.learn(60)
    assert isinstance(agent.loop.experience, OffPolicy)
    for batch in agent.loop.experience.replay.in_order(batch_size=50):
        time, real = batch.window[:, :, 0], batch.window_mask > 0
        assert ((time[1:] - time[:-1])[real[1:] & real[:-1]] == 1).all()


def test_a_run_folder_belongs_to_the_agent_that_wrote_it(tmp_path: Path) -> None:
    quiet: dict[str, Any] = {"eval_every": 10_000, "log_every": 10_000, "eval_episodes": 1}

    def stop(agent: Agent) -> None:
        if agent.steps == 20:
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):  # before anything was logged
        small_agent().learn(40, out=tmp_path / "run", callback=stop, **quiet)
    Agent.load(tmp_path / "run", delayed()).learn(20, out=tmp_path / "run", **quiet)
    stranger = small_agent("td3")
    stranger.log({"mine": 1.0})
    with pytest.raises(ValueError, match="holds another run already"):
        stranger.learn(40, out=tmp_path / "run", **quiet)
    assert Agent.load(tmp_path / "run").steps == 40


def test_an_agent_without_environment_cannot_lose_a_replay(tmp_path: Path) -> None:
    small_agent(num_envs=2).learn(40).save(tmp_path / "agent", replay=True)
    loaded = Agent.load(tmp_path / "agent")
    with pytest.raises(ValueError, match="no environment"):
        loaded.save(tmp_path / "agent", replay=True)
    assert loaded.metrics == {}
    loaded.save(tmp_path / "copy")
    assert json.loads((tmp_path / "copy" / "manifest.json").read_text())["num_envs"] == 2
    assert Agent.load(tmp_path / "agent", delayed()).learn(20).steps == 60


def test_a_resumed_run_logs_the_same_numbers(tmp_path: Path) -> None:
    whole = small_agent("ppo").learn(50)
    small_agent("ppo").learn(40).save(tmp_path, replay=True)
    resumed = Agent.load(tmp_path, delayed()).learn(10)
    for agent in (whole, resumed):
        agent.log({})
    (a,), (b,) = whole.history, resumed.history
    assert {k: v for k, v in a.items() if "time" not in k and "second" not in k} == {
        k: v for k, v in b.items() if "time" not in k and "second" not in k
    }
    assert "value_loss" in b


def test_two_runs_do_not_write_to_one_folder(tmp_path: Path) -> None:
    with locked(tmp_path / "run"), pytest.raises(ValueError, match="Another process is writing to"):
        small_agent().learn(40, out=tmp_path)
    small_agent().learn(40, out=tmp_path)  # the lock is free again


def test_where_the_file_system_has_no_locks_nobody_is_kept_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(descriptor: int, operation: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    with locked(tmp_path / "run"):
        assert small_agent().learn(40, out=tmp_path).steps == 40


class FragileEnv(RandomEnv):
    """Breaks at the 25th step of its life."""

    steps = 0

    def step(self, action: Any) -> Any:
        self.steps += 1
        if self.steps == 25:
            raise RuntimeError("the simulator crashed")
        return super().step(action)


@pytest.mark.filterwarnings("ignore:.*into an interval, whose reward was never revealed")
@pytest.mark.parametrize("num_envs", [1, 2])
def test_a_broken_environment_is_made_anew_where_the_user_wants_it(num_envs: int) -> None:
    gym.register("scripted/Fragile-v0", lambda **_: FragileEnv())
    try:
        env = belated.delay(gym.make("scripted/Fragile-v0"), interval="2:5")
        agent = small_agent(env=env, num_envs=num_envs)
        with pytest.warns(UserWarning, match="failed and is made anew: the simulator crashed"):
            agent.learn(100, on_env_error="rebuild")
        assert agent.steps == 100
        assert agent.env_errors == 4 // num_envs
        agent.log({})
        assert agent.history[-1]["env_errors"] == agent.env_errors
    finally:
        del gym.registry["scripted/Fragile-v0"]


def test_an_environment_that_breaks_again_and_again_stops_the_run() -> None:
    class Hopeless(RandomEnv):
        def step(self, action: Any) -> Any:
            raise RuntimeError("the simulator crashed")

    gym.register("scripted/Hopeless-v0", lambda **_: Hopeless())
    try:
        agent = small_agent(env=belated.delay(gym.make("scripted/Hopeless-v0"), interval="2:5"))
        with pytest.warns(UserWarning, match="made anew"), pytest.raises(RuntimeError):
            agent.learn(100, on_env_error="rebuild")
        assert (agent.steps, agent.env_errors) == (0, 2)
        with pytest.raises(ValueError, match="on_env_error must be one of stop, rebuild"):
            agent.learn(100, on_env_error="ignore")
    finally:
        del gym.registry["scripted/Hopeless-v0"]


def test_a_long_journal_is_read_again(tmp_path: Path) -> None:
    agent = small_agent()
    agent.journal.rows = [{f"column{n}": 0.123456789 for n in range(100)}] * 40_000
    agent.save(tmp_path / "agent")
    assert sum(path.stat().st_size for path in (tmp_path / "agent").iterdir()) > 2**26
    assert len(Agent.load(tmp_path / "agent").history) == 40_000


def test_a_child_that_was_forked_while_learning_is_not_concerned(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with deferred_interrupt() as interrupt:
        monkeypatch.setattr(os, "getpid", lambda: -1)  # as it is in a child
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        assert not interrupt.requested


def test_a_failing_reset_forgets_no_episodes(tmp_path: Path) -> None:
    class Dead(gym.Wrapper[Any, Any, Any, Any]):
        alive = True

        def reset(self, **how: Any) -> Any:
            if not self.alive:
                raise RuntimeError("nobody answers")
            return super().reset(**how)

    env = Dead(Breaks(delayed(), 58))
    agent = small_agent(env=env)
    with pytest.raises(RuntimeError, match="crashed"):
        agent.learn(100)
    assert isinstance(agent.loop.lanes, EnvLanes)
    episodes = agent.loop.lanes._episodes[0]
    assert episodes > 0
    env.alive = False
    with pytest.raises(RuntimeError, match="nobody answers"):
        agent.learn(100, out=tmp_path, eval_env=delayed())
    resumed = Agent.load(tmp_path, delayed())
    assert isinstance(resumed.loop.lanes, EnvLanes)
    assert resumed.loop.lanes._episodes == [episodes + 1]


def test_a_run_that_went_on_elsewhere_is_not_overwritten(tmp_path: Path) -> None:
    small_agent().learn(40, out=tmp_path)
    early = Agent.load(tmp_path, delayed())
    Agent.load(tmp_path, delayed()).learn(10, out=tmp_path)
    with pytest.raises(ValueError, match="written by another process meanwhile"):
        early.learn(10, out=tmp_path)


def test_an_interrupted_evaluation_of_the_users_is_made_up_for_too(tmp_path: Path) -> None:
    class Interrupts(gym.Wrapper[Any, Any, Any, Any]):
        def reset(self, **how: Any) -> Any:
            if agent.steps == 40:
                signal.raise_signal(signal.SIGINT)
            return super().reset(**how)

    agent = small_agent()
    mine = belated.Evaluate(every=40, episodes=1, env=Interrupts(delayed()))
    with pytest.raises(KeyboardInterrupt):
        agent.learn(60, out=tmp_path, callback=mine, log_every=20)
    resumed = Agent.load(tmp_path, delayed())
    resumed.learn(20, out=tmp_path, callback=belated.Evaluate(40, 1, delayed()), log_every=20)
    assert [row["step"] for row in resumed.history] == [20, 40, 60, 60]  # the last at the end
    assert [row["step"] for row in resumed.evaluations] == [40, 60]


def test_an_environment_that_cannot_be_reached_is_no_damaged_file(tmp_path: Path) -> None:
    small_agent().learn(45).save(tmp_path / "agent", replay=True)
    with pytest.raises(RuntimeError, match="crashed"):
        Agent.load(tmp_path / "agent", Breaks(delayed(), 1))


def test_a_file_alone_cannot_ask_for_any_number_of_environments(tmp_path: Path) -> None:
    small_agent().learn(40).save(tmp_path / "agent")
    manifest = tmp_path / "agent" / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"num_envs": 1', '"num_envs": 1025'))
    with pytest.raises(belated.CheckpointError, match="asks for 1025 environments"):
        Agent.load(tmp_path / "agent", delayed())
