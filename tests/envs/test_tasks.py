from __future__ import annotations

import json
import pickle
import warnings
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.envs.registration import EnvSpec
from gymnasium.utils.env_checker import check_env
from gymnasium.wrappers import TimeLimit
from reward_functions import spread
from scripted_envs import rollout

import belated
from belated import TASKS, DelayReward, IntervalPhase, IntervalSpec
from belated.envs.copies import copies_of
from belated.envs.layers import layers
from belated.envs.tasks import POINT_REACH, TABULAR, Task


def assert_same_episode(first: gym.Env[Any, Any], second: gym.Env[Any, Any]) -> None:
    for a, b in zip(rollout(first, seed=5)[:60], rollout(second, seed=5)[:60], strict=True):
        np.testing.assert_array_equal(a[0], b[0])
        assert a[1:4] == b[1:4]


def test_the_papers_tasks_are_all_there() -> None:
    assert len(TASKS) == 5 * (3 * 3 + 3 * 2)
    assert "belated/HalfCheetah-sum-n20-v0" in TASKS
    assert "belated/HalfCheetah-sum-n15to20-c5-v0" in TASKS
    assert "belated/Reacher-square-n10to20-v0" in TASKS
    assert all(task_id in gym.registry for task_id in (*TASKS, POINT_REACH))


@pytest.mark.parametrize("reward", ["sum-square", "square-sum"])
def test_ids_of_rewards_with_a_hyphen_are_ids_that_gymnasium_takes(reward: str) -> None:
    task = Task("HalfCheetah-v5", reward, "15:20")
    assert task.id == f"belated/HalfCheetah-{reward}-n15to20-v0"
    assert EnvSpec(task.id).name == f"HalfCheetah-{reward}-n15to20"
    assert task.id not in gym.registry


@pytest.mark.parametrize("task_id", TASKS)
def test_a_task_is_its_environment_delayed_as_its_name_says(task_id: str) -> None:
    task = TASKS[task_id]
    env = gym.make(task_id)
    base = gym.spec(task.base)
    stack = [type(layer) for layer in layers(env)]
    assert stack[:3] == [IntervalPhase, DelayReward, TimeLimit]
    assert env.get_wrapper_attr("interval_spec") == IntervalSpec(20, task.overlap)
    assert env.spec is not None
    assert env.spec.max_episode_steps == base.max_episode_steps
    own = belated.delay(gym.make(task.base), task.interval, task.reward, task.overlap)
    env.reset(seed=1)
    own.reset(seed=1)
    for time in range(45):
        action = np.full(env.action_space.shape or (), np.sin(time))
        a, b = env.step(action), own.step(action)
        np.testing.assert_array_equal(a[0], b[0])
        assert a[1] == b[1]
        if a[2] or a[3]:
            break


@pytest.mark.parametrize(
    "task_id",
    ["belated/Reacher-sum-n20-v0", "belated/Hopper-max-n15to20-v0", POINT_REACH],
)
def test_gymnasiums_checker_has_no_more_to_say_than_about_the_bare_environment(
    task_id: str,
) -> None:
    def said(env: gym.Env[Any, Any]) -> set[str]:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            check_env(env, skip_render_check=True)
        return {str(w.message) for w in caught if "different from the unwrapped" not in str(w)}

    base = TASKS[task_id].base if task_id in TASKS else task_id
    assert said(gym.make(task_id)) <= said(gym.make(base).unwrapped)


@pytest.mark.parametrize(
    "env_id", ["belated/Reacher-sum-n15to20-c5-v0", "belated/Hopper-square-n20-v0", POINT_REACH]
)
def test_the_spec_rebuilds_the_stack(env_id: str) -> None:
    env = gym.make(env_id)
    assert env.spec is not None
    from_json = EnvSpec.from_json(env.spec.to_json())
    for spec in (env.spec, from_json):
        rebuilt = gym.make(spec)
        assert [type(layer) for layer in layers(rebuilt)] == [type(layer) for layer in layers(env)]
        assert rebuilt.get_wrapper_attr("interval_spec") == env.get_wrapper_attr("interval_spec")
        assert_same_episode(env, rebuilt)


@pytest.mark.parametrize(
    ("reward", "overlap"),
    [("weighted:1.0,0.5,0.25,0.0,1.0", 2), ("reward_functions:spread", 0), (spread, 0)],
)
def test_the_spec_of_an_environment_of_ones_own_records_every_argument(
    reward: Any, overlap: int
) -> None:
    env = belated.delay(gym.make("Pendulum-v1"), "2=0.5,3=0.5", reward, overlap)
    assert env.spec is not None
    assert_same_episode(env, gym.make(env.spec))
    if isinstance(reward, str):
        wrappers = json.loads(env.spec.to_json())["additional_wrappers"]
        arguments = {"interval": "2=0.5,3=0.5", "reward": reward, "overlap": overlap}
        assert wrappers[-2]["kwargs"] == arguments


def test_the_spec_of_a_marked_environment_rebuilds_it() -> None:
    env = belated.mark(gym.make("Pendulum-v1"), period=7, overlap=2)
    assert env.spec is not None
    assert_same_episode(env, gym.make(EnvSpec.from_json(env.spec.to_json())))


@pytest.mark.parametrize("env_id", ["belated/HalfCheetah-sum-n20-v0", POINT_REACH])
def test_tasks_survive_pickling(env_id: str) -> None:
    env = gym.make(env_id)
    assert_same_episode(env, pickle.loads(pickle.dumps(env)))


def test_make_delays_any_environment() -> None:
    env = belated.make("Pendulum-v1", interval=10, reward="max")
    assert env.get_wrapper_attr("interval_spec") == IntervalSpec(10)
    assert sum(step[1] != 0 for step in rollout(env)[1:]) <= 20


@pytest.mark.parametrize("task_id", [*list(TASKS)[::12], POINT_REACH, *TABULAR])
def test_make_turns_the_phase_of_any_task_off(task_id: str) -> None:
    on, off = belated.make(task_id), belated.make(task_id, phase=False)
    told = on.get_wrapper_attr("interval_spec")
    assert off.get_wrapper_attr("interval_spec") == IntervalSpec(
        told.max_length, told.overlap, False
    )
    assert [type(layer) for layer in layers(off)] == [type(layer) for layer in layers(on)]
    on.reset(seed=1)
    off.reset(seed=1)
    on.action_space.seed(1)
    for _ in range(25):
        action = on.action_space.sample()
        a, b = on.step(action), off.step(action)
        assert b[0][-1] == 0
        np.testing.assert_array_equal(a[0][:-1], b[0][:-1])
        assert a[1:4] == b[1:4]
        if a[2] or a[3]:
            break


def test_make_delays_any_environment_without_a_phase() -> None:
    env = belated.make("Pendulum-v1", interval=20, phase=False)
    assert env.get_wrapper_attr("interval_spec") == IntervalSpec(20, phase=False)
    assert not any(step[0][-1] for step in rollout(env))


@pytest.mark.parametrize(
    "env",
    [
        belated.make("belated/Reacher-sum-n15to20-c5-v0", phase=False),
        belated.make(POINT_REACH, phase=False),
        belated.make("Pendulum-v1", interval=7, phase=False),
        belated.mark(gym.make("Pendulum-v1"), period=7, phase=False),
    ],
    ids=str,
)
def test_the_spec_remembers_that_there_is_no_phase(env: gym.Env[Any, Any]) -> None:
    assert env.spec is not None
    vector = gym.make_vec(env.spec, num_envs=2, vectorization_mode="sync")
    rebuilt = [gym.make(env.spec), gym.make(EnvSpec.from_json(env.spec.to_json()))]
    for copy in (*rebuilt, *vector.envs, *copies_of(env, 2)):  # type: ignore[attr-defined]
        assert copy.get_wrapper_attr("interval_spec").phase is False
        assert_same_episode(env, copy)


def test_make_says_what_to_do_if_there_is_no_phase_to_turn_off() -> None:
    gym.register("scripted/NoPhase-v0", entry_point="belated.envs.point_reach:PointReachEnv")
    with pytest.raises(ValueError, match=r"wrap it: belated\.IntervalPhase\(env, phase=False\)"):
        belated.make("scripted/NoPhase-v0", phase=False)
    env = IntervalPhase(belated.make("scripted/NoPhase-v0"), phase=False)
    assert belated.check_delayed_env(env, steps=100).ok


def test_make_leaves_a_delayed_environment_as_it_is() -> None:
    env = belated.make("belated/Hopper-sum-n20-v0")
    assert [type(layer) for layer in layers(env)][:2] == [IntervalPhase, DelayReward]


@pytest.mark.parametrize(
    ("env_id", "arguments", "said"),
    [
        ("Pendulum-v1", {}, "Give interval=20"),
        ("Pendulum-v1", {"reward": "sum"}, "Give interval=20"),
        ("belated/Hopper-sum-n20-v0", {"interval": 5}, "leave out interval"),
        ("belated/Hoper-sum-n20-v0", {}, "Similar ones: belated/Hopper-sum-n20-v0"),
        ("Pendulun-v1", {"interval": 5}, "Similar ones: Pendulum-v1"),
        ("no_such_module:Env-v0", {"interval": 5}, f"no module 'no_such_module' in {Path.cwd()}"),
        ("no_such_module:Env-v0", {"interval": 5}, "PYTHONPATH=FOLDER"),
        ("late_envs:Lap-v0", {"period": 5}, "late_envs was imported, but registers no Lap-v0"),
        ("late_envs:Lab-v0", {"period": 5, "interval": 5}, "interval is for a reward at every"),
        ("late_envs:Lab-v0", {"max_length": 5, "reward": "sum"}, "max_length for one that is late"),
        ("late_envs:Lab-v0", {}, "say when it is revealed: period=20"),
        ("belated/PointReach-v0", {"period": 20, "overlap": 1}, "leave out period, overlap"),
    ],
)
def test_make_says_what_is_missing(env_id: str, arguments: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        belated.make(env_id, **arguments)


def test_what_a_module_lacks_is_not_blamed_on_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "lacking.py").write_text("import nowhere_to_be_found")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ValueError, match=r"'lacking:Env-v0': No module named 'nowhere_to_be_f"):
        belated.make("lacking:Env-v0")


def test_make_marks_a_late_environment_as_mark_does() -> None:
    """Whatever the arguments are, and with the masks that it tells of."""
    ways: list[dict[str, Any]] = [
        {"period": 5},
        {"period": "5", "overlap": 2},
        {"info_key": "lab_report", "max_length": 6, "phase": False},
        {"when": "late_envs:reported", "max_length": 6},
        {"period": "episode", "max_length": 30},
    ]
    for how in ways:
        made = belated.make("late_envs:Lab-v0", **how)
        marked = belated.mark(gym.make("late_envs:Lab-v0"), **how)
        for a, b in zip(rollout(made), rollout(marked), strict=True):
            np.testing.assert_array_equal(a[0], b[0])
            assert a[1:] == b[1:]
    masked = belated.make("late_envs:MaskedLab-v0", period=5)
    assert masked.get_wrapper_attr("interval_spec").action_masks


def test_registering_twice_is_harmless() -> None:
    before = dict(gym.registry)
    belated.envs.register_tasks()
    assert dict(gym.registry) == before


def test_a_late_environment_with_a_time_limit_inside_can_be_made_again() -> None:
    def make_plant(**settings: Any) -> gym.Env[Any, Any]:
        plant = gym.wrappers.TimeLimit(gym.make("Pendulum-v1").unwrapped, 30)
        return belated.mark(plant, period=5)

    gym.register("MarkedInside-v0", entry_point=make_plant)
    try:
        agent = belated.Agent("sac", belated.make("MarkedInside-v0"), hidden=(8,))
        assert agent.evaluate(1).lengths.tolist() == [30]
    finally:
        del gym.registry["MarkedInside-v0"]
