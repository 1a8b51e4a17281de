from __future__ import annotations

import itertools
import math
import pickle
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.wrappers import TimeLimit
from hypothesis import given
from hypothesis import strategies as st
from reward_functions import masked_mean_action
from scripted_envs import RandomEnv, ScriptedEnv, rollout

import belated
from belated import DelayReward, IntervalSpec

dense_rewards = st.lists(st.floats(-100, 100), min_size=1, max_size=60)
intervals = st.one_of(
    st.integers(1, 25),
    st.tuples(st.integers(1, 12), st.integers(0, 12)).map(lambda p: (p[0], p[0] + p[1])),
    st.just("1=0.5,2=0.25,7=0.25"),
)
seeds = st.integers(0, 2**31)


def flags(steps: list[tuple[Any, ...]]) -> list[Any]:
    return [info["interval"] for *_, info in steps[1:]]


def ends(steps: list[tuple[Any, ...]]) -> list[int]:
    """The times right after each interval's last step: t_{i+1}."""
    return [time for time, flag in enumerate(flags(steps), start=1) if flag["end"]]


@given(dense_rewards, intervals, seeds, st.booleans())
def test_revealed_sums_add_up_to_the_dense_rewards(
    rewards: list[float], interval: Any, seed: int, terminates: bool
) -> None:
    steps = rollout(DelayReward(ScriptedEnv(rewards, terminates), interval), seed=seed)
    assert [info["dense_reward"] for *_, info in steps[1:]] == rewards
    assert sum(step[1] for step in steps[1:]) == pytest.approx(sum(rewards), abs=1e-9)


@given(dense_rewards, intervals, seeds)
def test_intervals_cover_every_step_and_end_exactly_once(
    rewards: list[float], interval: Any, seed: int
) -> None:
    env = DelayReward(ScriptedEnv(rewards), interval)
    steps = rollout(env, seed=seed)
    assert "interval" not in steps[0][1]
    expected_step = expected_index = 0
    for (_, reward, terminated, _, _), flag in zip(steps[1:], flags(steps), strict=True):
        assert (flag["step"], flag["index"]) == (expected_step, expected_index)
        assert flag["revealed"] == flag["end"]
        if flag["end"]:
            assert flag["length"] == expected_step + 1 <= env.interval_spec.max_length
            expected_step, expected_index = 0, expected_index + 1
        else:
            assert flag["length"] == -1
            assert reward == 0.0
            assert not terminated
            expected_step += 1
    assert flags(steps)[-1]["end"]


@given(dense_rewards, seeds, st.sampled_from(["sum", "weighted:1"]))
def test_intervals_of_length_one_change_nothing(
    rewards: list[float], seed: int, reward: str
) -> None:
    plain = rollout(ScriptedEnv(rewards), seed=seed)
    delayed = rollout(DelayReward(ScriptedEnv(rewards), 1, reward), seed=seed)
    assert [step[1] for step in plain[1:]] == [step[1] for step in delayed[1:]]


@given(dense_rewards, intervals, seeds, st.integers(0, 15))
def test_an_overlap_loses_the_last_c_dense_rewards_and_no_others(
    rewards: list[float], interval: Any, seed: int, overlap: int
) -> None:
    steps = rollout(DelayReward(ScriptedEnv(rewards), interval, overlap=overlap), seed=seed)
    kept = rewards[: max(0, len(rewards) - overlap)]
    assert sum(step[1] for step in steps[1:]) == pytest.approx(sum(kept), abs=1e-9)


@given(dense_rewards, intervals, seeds, st.integers(0, 15))
def test_each_overlapping_sum_is_the_papers(
    rewards: list[float], interval: Any, seed: int, overlap: int
) -> None:
    steps = rollout(DelayReward(ScriptedEnv(rewards), interval, overlap=overlap), seed=seed)
    boundaries = [0, *ends(steps)]
    for start, end in itertools.pairwise(boundaries):
        expected = sum(rewards[max(0, start - overlap) : max(0, end - overlap)])
        assert steps[end][1] == pytest.approx(expected, abs=1e-9)


@given(dense_rewards, intervals, seeds, st.integers(0, 8))
def test_a_function_of_the_window_sees_the_right_steps(
    rewards: list[float], interval: Any, seed: int, overlap: int
) -> None:
    windows: list[Any] = []

    def record(observations: Any, actions: Any, rewards: Any, mask: Any) -> float:
        windows.append((observations, actions, rewards, mask))
        return 1.0

    inner = rollout(ScriptedEnv(rewards), seed=seed)
    steps = rollout(DelayReward(ScriptedEnv(rewards), interval, record, overlap), seed=seed)
    boundaries = [0, *ends(steps)]
    assert len(windows) == len(boundaries) - 1
    for (start, end), window in zip(itertools.pairwise(boundaries), windows, strict=True):
        times = np.arange(start - overlap, end)
        observations, actions, dense, mask = window
        np.testing.assert_array_equal(mask, times >= 0)
        for row, time in enumerate(times):
            if time < 0:
                assert not observations[row].any()
                assert not actions[row].any()
                assert dense[row] == 0
            else:
                np.testing.assert_array_equal(observations[row], inner[time][0])
                assert actions[row] == inner[time + 1][0][2]
                assert dense[row] == rewards[time]


@given(intervals, seeds)
def test_the_seed_fixes_the_lengths_and_the_next_episodes(interval: Any, seed: int) -> None:
    def lengths() -> list[Any]:
        env = DelayReward(ScriptedEnv([0.0] * 60), interval)
        return [flags(rollout(env, seed=s)) for s in (seed, None, None)]

    assert lengths() == lengths()


def test_another_seed_gives_other_lengths() -> None:
    env = DelayReward(ScriptedEnv([0.0] * 200), "1:20")
    assert flags(rollout(env, seed=1)) != flags(rollout(env, seed=2))


def test_without_a_seed_lengths_differ_from_one_environment_to_the_next() -> None:
    def lengths() -> list[Any]:
        return flags(rollout(DelayReward(ScriptedEnv([0.0] * 200), "1:20"), seed=None))

    assert lengths() != lengths()


def test_lengths_follow_their_distribution() -> None:
    env = DelayReward(ScriptedEnv([0.0] * 20_000), "3:5")
    counts = np.bincount([flag["length"] for flag in flags(rollout(env)) if flag["end"]])
    assert counts[3:6] / counts.sum() == pytest.approx(1 / 3, abs=0.03)


@given(intervals, seeds, st.integers(0, 5))
def test_wrapping_leaves_the_inner_trajectory_bit_equal(
    interval: Any, seed: int, overlap: int
) -> None:
    plain_env, delayed_env = RandomEnv(), DelayReward(RandomEnv(), interval, overlap=overlap)
    for episode_seed in (seed, None):
        plain = rollout(plain_env, seed=episode_seed)
        delayed = rollout(delayed_env, seed=episode_seed)
        assert len(plain) == len(delayed)
        for inner, outer in zip(plain[1:], delayed[1:], strict=True):
            np.testing.assert_array_equal(inner[0], outer[0])
            assert inner[1] == outer[4]["dense_reward"]
            assert inner[2:4] == outer[2:4]


def test_mujoco_trajectory_is_bit_equal() -> None:
    plain = gym.make("HalfCheetah-v5")
    delayed = DelayReward(gym.make("HalfCheetah-v5"), "15:20", overlap=5)
    np.testing.assert_array_equal(plain.reset(seed=3)[0], delayed.reset(seed=3)[0])
    for time in range(100):
        action = np.full(6, math.sin(time))
        a, b = plain.step(action), delayed.step(action)
        np.testing.assert_array_equal(a[0], b[0])
        assert a[1] == b[4]["dense_reward"]


def test_a_wrapper_in_mid_interval_survives_pickling() -> None:
    env = DelayReward(ScriptedEnv([1.0] * 12), 5, masked_mean_action, overlap=2)
    env.reset(seed=0)
    for _ in range(3):
        env.step(np.array([0.5]))
    copy = pickle.loads(pickle.dumps(env))
    for _ in range(9):
        a, b = env.step(np.array([0.5])), copy.step(np.array([0.5]))
        np.testing.assert_array_equal(a[0], b[0])
        assert a[1:] == b[1:]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"interval": 0}, "at least 1"),
        ({"interval": "5=0.5,6=0.4"}, "sum to 0.9"),
        ({"interval": 5, "overlap": -1}, "overlap must be at least 0"),
        ({"interval": 5, "overlap": 1.5}, "overlap must be a whole number"),
        ({"interval": 5, "reward": "average"}, "no interval reward 'average'"),
        ({"interval": 5, "reward": "weighted:1,1,1"}, "need 5"),
        ({"interval": 5, "reward": "max", "overlap": 1}, "not defined for overlapping"),
    ],
)
def test_bad_arguments_are_refused_at_construction(arguments: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        DelayReward(ScriptedEnv([1.0]), **arguments)


def test_a_reward_function_that_returns_nan_is_refused_at_its_step() -> None:
    env = DelayReward(ScriptedEnv([1.0] * 5), 2, lambda observations, actions, rewards: math.nan)
    env.reset(seed=0)
    env.step(np.zeros(1))
    with pytest.raises(ValueError, match="returned nan for an interval of 2 steps"):
        env.step(np.zeros(1))


@pytest.mark.parametrize("reward", ["sum", "max"])
def test_a_dense_reward_that_is_not_finite_is_refused_at_its_step(reward: str) -> None:
    env = DelayReward(ScriptedEnv([1.0, math.nan, 2.0]), 3, reward)
    env.reset(seed=0)
    env.step(np.zeros(1))
    with pytest.raises(ValueError, match="returned a reward of nan"):
        env.step(np.zeros(1))


def test_a_function_needs_array_observations() -> None:
    inner = ScriptedEnv([1.0])
    inner.observation_space = gym.spaces.Dict({"x": gym.spaces.Box(0, 1)})  # type: ignore[assignment]
    with pytest.raises(ValueError, match="FlattenObservation"):
        DelayReward(inner, 5, masked_mean_action)


def test_an_environment_is_delayed_once() -> None:
    with pytest.raises(ValueError, match="already declares an interval_spec"):
        DelayReward(DelayReward(ScriptedEnv([1.0]), 5), 5)


def test_stepping_before_reset_is_refused() -> None:
    with pytest.raises(gym.error.ResetNeeded):
        DelayReward(ScriptedEnv([1.0]), 5).step(np.zeros(1))


def test_a_time_limit_outside_is_told_when_an_interval_is_lost() -> None:
    env = TimeLimit(DelayReward(ScriptedEnv([1.0] * 50), 5), max_episode_steps=7)
    rollout(env)
    with pytest.warns(UserWarning, match="must wrap outside TimeLimit"):
        env.reset()


def test_a_dropped_time_limit_is_told_at_construction() -> None:
    with pytest.warns(UserWarning, match="must wrap outside TimeLimit"):
        DelayReward(gym.make("Pendulum-v1").unwrapped, 5)


def test_a_time_limit_inside_closes_the_last_interval() -> None:
    env = DelayReward(TimeLimit(ScriptedEnv([1.0] * 50), max_episode_steps=7), 5)
    steps = rollout(env)
    assert [step[1] for step in steps[1:]] == [0, 0, 0, 0, 5, 0, 2]
    assert steps[-1][3]
    env.reset()  # no warning: nothing was lost


def test_delay_declares_its_intervals() -> None:
    env = belated.delay(ScriptedEnv([1.0]), interval="15:20", reward="sum", overlap=5)
    assert env.get_wrapper_attr("interval_spec") == IntervalSpec(max_length=20, overlap=5)
