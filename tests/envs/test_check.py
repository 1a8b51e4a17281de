"""Every defect that the checker knows is found in an environment that has just that one."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.wrappers import TimeLimit
from scripted_envs import RandomEnv, ScriptedEnv

import belated
from belated import DelayReward, IntervalPhase, IntervalSpec, check_delayed_env


class Broken(gym.Wrapper[Any, Any, Any, Any]):
    """Spoils the results of a well-formed environment."""

    def __init__(self, spoil: Callable[[list[Any], int], Any]) -> None:
        super().__init__(belated.delay(ScriptedEnv([1.0] * 30), interval=4))
        self.spoil = spoil
        self.time = 0

    def reset(self, **kwargs: Any) -> tuple[Any, dict[str, Any]]:
        self.time = 0
        return super().reset(**kwargs)

    def step(self, action: Any) -> Any:
        result = list(super().step(action))
        self.spoil(result, self.time)
        self.time += 1
        return tuple(result)


def assign(index: int, value: Any) -> Callable[[list[Any], int], None]:
    def spoil(result: list[Any], time: int) -> None:
        if time == 5:
            result[index] = value

    return spoil


def flag(key: str, value: Any) -> Callable[[list[Any], int], None]:
    def spoil(result: list[Any], time: int) -> None:
        if time == 5:
            result[4]["interval"][key] = value

    return spoil


def no_flag(result: list[Any], time: int) -> None:
    del result[4]["interval"]


def half_a_flag(result: list[Any], time: int) -> None:
    del result[4]["interval"]["revealed"]


def never_revealed(result: list[Any], time: int) -> None:
    result[1] = 0.0
    result[4]["interval"]["revealed"] = False


def nan_observation(result: list[Any], time: int) -> None:
    result[0][1] = math.nan


def outside_the_space(result: list[Any], time: int) -> None:
    result[0][1] = 1e6


def phase(value: float) -> Callable[[list[Any], int], None]:
    def spoil(result: list[Any], time: int) -> None:
        result[0][-1] = value

    return spoil


def unreproducible(result: list[Any], time: int) -> None:
    result[0][1] = np.random.default_rng().random()


def raises(result: list[Any], time: int) -> None:
    raise RuntimeError("the simulator crashed")


@pytest.mark.parametrize(
    ("spoil", "code", "said"),
    [
        (no_flag, "no-interval-flag", r"step 1: info\[\"interval\"\] is missing"),
        (half_a_flag, "interval-flag", "lacks revealed"),
        (flag("step", 0), "interval-flag", r"step 6: .*\"step\"\] is 0; .* should be 1"),
        (flag("index", 7), "interval-flag", "should be 1"),
        (flag("length", 2), "interval-flag", "should be -1"),
        (flag("revealed", True), "interval-flag", "the interval goes on"),
        (never_revealed, "never-revealed", "None of the .* intervals"),
        (assign(1, 2.5), "early-reward", "step 6: a reward of 2.5 inside an interval"),
        (assign(1, math.inf), "not-finite", "the reward is inf"),
        (assign(1, None), "reward-type", "the reward is None"),
        (nan_observation, "not-finite", "NaN"),
        (outside_the_space, "observation-space", "is not in Box"),
        (phase(1.5), "phase", r"ends with 1.5, out of the range \[0, 1\)"),
        (phase(0.9), "phase", "ends with 0.9; the phase is 0.25"),
        (unreproducible, "seed", "another observation"),
        (raises, "error", "RuntimeError: the simulator crashed"),
    ],
)
def test_a_defect_is_found_and_told(spoil: Any, code: str, said: str) -> None:
    report = check_delayed_env(Broken(spoil), steps=200)
    problems = {problem.code: str(problem) for problem in report.problems}
    assert code in problems
    assert re.search(said, problems[code])
    assert not report.ok


def test_unrevealed_rewards_are_told() -> None:
    env = belated.mark(ScriptedEnv([0, 2.0, 0, 3.0]), max_length=2, when=lambda r, info: r == 2)
    assert [problem.code for problem in check_delayed_env(env, steps=20).problems] == [
        "unrevealed-reward"
    ]


def test_an_interval_longer_than_declared_is_told() -> None:
    env = IntervalPhase(DelayReward(ScriptedEnv([1.0] * 30), 5))
    env.env.interval_spec = IntervalSpec(4)  # type: ignore[attr-defined]
    codes = {problem.code for problem in check_delayed_env(env, steps=60).problems}
    assert "too-long" in codes


@pytest.mark.parametrize(
    "space", [gym.spaces.Discrete(3), gym.spaces.Box(-np.inf, np.inf, (1,), np.float64)]
)
def test_an_action_space_without_bounds_is_told(space: Any) -> None:
    inner = ScriptedEnv([1.0] * 30)
    inner.action_space = space
    problems = check_delayed_env(belated.delay(inner, interval=5), steps=60).problems
    assert [problem.code for problem in problems] == ["action-space"]


def test_a_missing_phase_is_told() -> None:
    problems = check_delayed_env(DelayReward(ScriptedEnv([1.0] * 30), 5), steps=60).problems
    assert [problem.code for problem in problems] == ["phase"]
    assert "belated.IntervalPhase" in problems[0].message


@pytest.mark.filterwarnings("ignore:.*must wrap outside TimeLimit")
def test_an_interval_left_open_by_a_time_limit_outside_is_told() -> None:
    env = TimeLimit(belated.delay(ScriptedEnv([1.0] * 30), interval=5), max_episode_steps=7)
    (problem,) = check_delayed_env(env, steps=60).problems
    assert problem.code == "open-interval"
    assert "A TimeLimit is outside the intervals" in problem.message
    assert problem.count == 60 // 7


def test_an_environment_without_intervals_is_told() -> None:
    codes = [problem.code for problem in check_delayed_env(ScriptedEnv([1.0]), steps=5).problems]
    assert codes == ["no-interval-spec", "no-interval-flag"]


def test_a_well_formed_environment_has_no_problems() -> None:
    report = check_delayed_env(belated.delay(RandomEnv(), interval="2:5", overlap=2), steps=300)
    assert report.ok, str(report)
    assert report.steps == 300
    assert report.episodes > 5
    assert report.intervals > 60


@pytest.mark.parametrize(
    "env_id",
    [
        "belated/Ant-sum-n10to20-c10-v0",
        "belated/HalfCheetah-square-n20-v0",
        "belated/Hopper-max-n15to20-v0",
        "belated/Reacher-sum-n20-v0",
        "belated/Walker2d-sum-n15to20-c5-v0",
        "belated/PointReach-v0",
    ],
)
def test_the_papers_tasks_are_well_formed(env_id: str) -> None:
    report = check_delayed_env(gym.make(env_id), steps=600)
    assert report.ok, str(report)


def test_a_vector_environment_is_refused() -> None:
    envs = gym.make_vec("belated/PointReach-v0", num_envs=2)
    with pytest.raises(TypeError, match="one environment of a vector environment"):
        check_delayed_env(envs)  # type: ignore[arg-type]
