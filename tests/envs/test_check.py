"""Every defect that the checker knows is found in an environment that has just that one."""

from __future__ import annotations

import re
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from broken_envs import DEFECTS, NOT_FATAL, Broken, phase
from gymnasium.wrappers import TimeLimit
from scripted_envs import RandomEnv, ScriptedEnv

import belated
from belated import DelayReward, IntervalPhase, IntervalSpec, check_delayed_env
from belated.experience.lanes import episode_seed


@pytest.mark.parametrize(("spoil", "code", "said"), DEFECTS)
def test_a_defect_is_found_and_told(spoil: Any, code: str, said: str) -> None:
    report = check_delayed_env(Broken(spoil), steps=200)
    findings = {finding.code: str(finding) for finding in report.findings}
    assert code in findings
    assert re.search(said, findings[code])
    assert report.ok == (code in NOT_FATAL)


def test_unrevealed_rewards_are_told() -> None:
    env = belated.mark(ScriptedEnv([0, 2.0, 0, 3.0]), max_length=2, when=lambda r, info: r == 2)
    assert [finding.code for finding in check_delayed_env(env, steps=20).findings] == [
        "unrevealed-reward"
    ]


def test_an_interval_longer_than_declared_is_told() -> None:
    env = IntervalPhase(DelayReward(ScriptedEnv([1.0] * 30), 5))
    env.interval_spec = IntervalSpec(4)
    codes = {finding.code for finding in check_delayed_env(env, steps=60).findings}
    assert "too-long" in codes


def test_an_action_space_without_bounds_is_told() -> None:
    inner = ScriptedEnv([1.0] * 30)
    inner.action_space = gym.spaces.Box(-np.inf, np.inf, (1,), np.float64)
    findings = check_delayed_env(belated.delay(inner, interval=5), steps=60).findings
    assert [finding.code for finding in findings] == ["action-space"]

    # What is advised can be copied, and helps.
    (advised,) = re.findall(r"gymnasium\.wrappers.*(?=\.)", findings[0].message)
    bounded = eval(advised, {"gymnasium": gym, "env": inner})
    assert check_delayed_env(belated.delay(bounded, interval=5), steps=60).ok


NORMALIZING = [
    ("NormalizeObservation", r"Agent\(\.\.\., normalize_observations=True\)"),
    ("NormalizeReward", r"TransformReward\(env, lambda reward: reward / 100\)"),
]


@pytest.mark.parametrize(("name", "said"), NORMALIZING)
@pytest.mark.parametrize("outside", [False, True])
def test_statistics_that_each_environment_keeps_for_itself_are_told(
    name: str, said: str, outside: bool
) -> None:
    wrapper = getattr(gym.wrappers, name)
    inner = ScriptedEnv([1.0] * 30)
    env = belated.delay(inner if outside else wrapper(inner), interval=5)
    env = wrapper(env) if outside else env
    findings = {each.code: each for each in check_delayed_env(env, steps=60).findings}
    assert re.search(said, findings["drifting"].message)
    with pytest.raises(ValueError, match=f"{name} .*{said}"):
        random_agent(env)


def test_statistics_that_stand_still_are_fine_and_so_is_a_name() -> None:
    frozen = gym.wrappers.NormalizeObservation(ScriptedEnv([1.0] * 30))
    frozen.update_running_mean = False
    alike = ScriptedEnv([1.0] * 30)
    alike.obs_rms = None  # type: ignore[attr-defined]
    for inner in (frozen, alike):
        findings = check_delayed_env(belated.delay(inner, interval=5), steps=60).findings
        assert "drifting" not in [each.code for each in findings]


@pytest.mark.parametrize(("name", "said"), NORMALIZING)
@pytest.mark.parametrize("kind", ["inside sync", "inside async", "around"])
def test_so_are_they_in_vector_environments(name: str, said: str, kind: str) -> None:
    def make() -> Any:
        inner = ScriptedEnv([1.0] * 30)
        inside = kind.startswith("inside")
        return belated.delay(getattr(gym.wrappers, name)(inner) if inside else inner, interval=5)

    envs: Any
    if kind == "inside async":
        envs = gym.vector.AsyncVectorEnv([make, make], context="forkserver")
    else:
        envs = gym.vector.SyncVectorEnv([make, make])
    if kind == "around":
        envs = getattr(gym.wrappers.vector, name)(envs)
    try:
        with pytest.raises(ValueError, match=said):
            random_agent(envs)
    finally:
        envs.close()


def test_a_simulator_that_takes_only_small_seeds_is_told() -> None:
    class SmallSeeds(ScriptedEnv):
        def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
            np.int32(seed or 0)  # raises OverflowError from 2**31 on
            return super().reset(seed=seed)

    (finding,) = check_delayed_env(
        belated.delay(SmallSeeds([1.0] * 30), interval=5), steps=60
    ).findings
    assert (finding.code, finding.fatal) == ("large-seed", True)
    assert "seed % 2**31" in finding.message
    assert max(episode_seed(0, 0, number) for number in range(100)) > 2**31  # agents use them


def test_a_missing_phase_is_told() -> None:
    findings = check_delayed_env(DelayReward(ScriptedEnv([1.0] * 30), 5), steps=60).findings
    assert [finding.code for finding in findings] == ["phase"]
    assert "belated.IntervalPhase" in findings[0].message


def test_a_phase_that_is_turned_off_must_read_0() -> None:
    def well_formed() -> Any:
        return belated.delay(ScriptedEnv([1.0] * 30), interval=4, phase=False)

    assert not check_delayed_env(well_formed(), steps=60).findings
    random_agent(well_formed()).learn(60)
    for spoil in (phase(1e-6), phase(0.25)):
        env = Broken(spoil)
        env.interval_spec = IntervalSpec(4, phase=False)  # type: ignore[attr-defined]
        (finding,) = check_delayed_env(env, steps=60).findings
        assert finding.code == "phase"
        assert "its phase is turned off and must read 0" in finding.message
        with pytest.raises(ValueError, match="its phase is turned off and must read 0"):
            random_agent(env).learn(60)


def test_a_vector_whose_environments_disagree_about_the_phase_is_told() -> None:
    def make(told: bool) -> Any:
        return lambda: belated.delay(ScriptedEnv([1.0] * 30), interval=4, phase=told)

    for each_told in ((True, False), (False, True)):
        envs = gym.vector.SyncVectorEnv([make(told) for told in each_told])
        with pytest.raises(ValueError, match="step 1: the observation ends with"):
            random_agent(envs).learn(60)


@pytest.mark.filterwarnings("ignore:.*must wrap outside TimeLimit")
def test_a_time_limit_between_the_intervals_and_the_phase_is_told() -> None:
    env = IntervalPhase(TimeLimit(DelayReward(ScriptedEnv([1.0] * 30), 5), 7))
    (finding,) = check_delayed_env(env, steps=60).findings
    assert "A TimeLimit is outside the intervals" in finding.message


@pytest.mark.filterwarnings("ignore:.*must wrap outside TimeLimit")
def test_an_interval_left_open_by_a_time_limit_outside_is_told() -> None:
    env = TimeLimit(belated.delay(ScriptedEnv([1.0] * 30), interval=5), max_episode_steps=7)
    (finding,) = check_delayed_env(env, steps=60).findings
    assert finding.code == "open-interval"
    assert "A TimeLimit is outside the intervals" in finding.message
    assert finding.count == 1 + 60 // 7


def test_an_environment_without_intervals_is_told() -> None:
    codes = [finding.code for finding in check_delayed_env(ScriptedEnv([1.0]), steps=5).findings]
    assert codes == ["no-interval-spec"]


def test_a_well_formed_environment_has_no_findings() -> None:
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


@pytest.mark.parametrize("spoil", [defect[0] for defect in DEFECTS], ids=lambda s: s.__qualname__)
def test_an_agent_accepts_what_the_check_accepts_and_nothing_else(spoil: Any) -> None:
    accepted = check_delayed_env(Broken(spoil), steps=120).ok
    if accepted:
        assert random_agent(Broken(spoil)).learn(120).steps == 120
    else:
        with pytest.raises((ValueError, RuntimeError)):
            random_agent(Broken(spoil)).learn(120)


def random_agent(env: Any) -> belated.Agent:
    """An agent that never comes to learn."""
    return belated.Agent("sac", env, hidden=(4,), learning_starts=1_000)


@pytest.mark.filterwarnings("ignore:.*must wrap outside TimeLimit")
@pytest.mark.parametrize(
    "make",
    [
        lambda: ScriptedEnv([1.0] * 30),
        lambda: DelayReward(ScriptedEnv([1.0] * 30), 5),
        lambda: TimeLimit(belated.delay(ScriptedEnv([1.0] * 30), interval=5), 7),
        lambda: gym.wrappers.FlattenObservation(belated.delay(RandomEnv(), interval=5)),
        lambda: belated.delay(with_actions(gym.spaces.Discrete(3)), interval=5),
        lambda: belated.delay(with_actions(gym.spaces.Box(-1, 1, (2, 2))), interval=5),
        lambda: belated.mark(ScriptedEnv([0, 2.0, 0, 3.0]), 2, when=lambda r, info: r == 2),
        lambda: belated.delay(RandomEnv(), interval="2:5", overlap=2),
    ],
)
def test_agent_and_check_agree_on_how_environments_are_built(make: Any) -> None:
    accepted = check_delayed_env(make(), steps=60).ok
    if accepted:
        random_agent(make()).learn(60)
    else:
        with pytest.raises(ValueError, match=r"."):
            random_agent(make()).learn(60)


def with_actions(space: Any) -> ScriptedEnv:
    env = ScriptedEnv([1.0] * 30)
    env.action_space = space
    return env


def test_training_stops_at_the_step_that_breaks_a_rule() -> None:
    with pytest.raises(ValueError, match=r"episode 0, step 6: a reward of 2\.5 .* expected 0"):
        random_agent(Broken(DEFECTS[7][0])).learn(60)
    with pytest.raises(ValueError, match=r"step 6: the observation has the shape \(1,\), expected"):
        random_agent(Broken(wrong_shape)).learn(60)


def wrong_shape(result: list[Any], time: int) -> None:
    if time == 5:
        result[0] = result[0][-1:]
