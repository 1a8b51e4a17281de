from __future__ import annotations

from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scripted_envs import ScriptedEnv, rollout
from small_agents import assert_same_weights, small_agent

import belated
from belated import DelayReward, IntervalPhase, IntervalSpec


@given(st.integers(1, 50), st.integers(1, 12), st.integers(0, 12), st.integers(0, 2**31))
def test_phase_counts_the_steps_since_the_last_interval_end(
    episode: int, low: int, spread: int, seed: int
) -> None:
    env = belated.delay(ScriptedEnv([1.0] * episode), interval=(low, low + spread))
    steps = rollout(env, seed=seed)
    since_start = 0
    for observation, *rest in steps:
        if len(rest) > 1:
            since_start = 0 if rest[-1]["interval"]["end"] else since_start + 1
        assert observation.dtype == np.float32
        assert observation in env.observation_space
        assert observation[-1] == np.float32(since_start / (low + spread)) < 1


def test_the_rest_of_the_observation_is_untouched() -> None:
    plain = rollout(ScriptedEnv([1.0] * 10))
    phased = rollout(belated.delay(ScriptedEnv([1.0] * 10), interval=4))
    for a, b in zip(plain, phased, strict=True):
        np.testing.assert_array_equal(a[0].astype(np.float32), b[0][:-1])


@given(st.integers(1, 50), st.integers(1, 12), st.integers(0, 12), st.integers(0, 2**31))
def test_turned_off_it_always_reads_0_and_nothing_else_changes(
    episode: int, low: int, spread: int, seed: int
) -> None:
    on, off = (
        belated.delay(ScriptedEnv([1.0] * episode), interval=(low, low + spread), phase=phase)
        for phase in (True, False)
    )
    assert off.observation_space == on.observation_space
    for a, b in zip(rollout(on, seed=seed), rollout(off, seed=seed), strict=True):
        assert b[0][-1] == 0
        np.testing.assert_array_equal(a[0][:-1], b[0][:-1])
        assert a[1:] == b[1:]


@pytest.mark.parametrize("phase", [True, False])
def test_the_outermost_declaration_says_whether_the_phase_is_told(phase: bool) -> None:
    inner = ScriptedEnv([1.0] * 5)
    for env in (
        belated.delay(inner, 4, overlap=2, phase=phase),
        belated.mark(inner, period=4, overlap=2, phase=phase),
        IntervalPhase(DelayReward(inner, 4, overlap=2), phase=phase),
    ):
        assert env.get_wrapper_attr("interval_spec") == IntervalSpec(4, 2, phase)
        assert [step[0][-1] for step in rollout(env)] == [
            phase * position / 4 for position in (0, 1, 2, 3, 0, 0)
        ]


def test_the_phase_is_on_or_off() -> None:
    with pytest.raises(ValueError, match="phase must be True or False, got 'no'"):
        belated.delay(ScriptedEnv([1.0]), 4, phase="no")  # type: ignore[arg-type]


def test_bounds_beyond_float32_become_infinite() -> None:
    inner = ScriptedEnv([1.0])
    inner.observation_space = gym.spaces.Box(-1e300, 1e300, (3,), np.float64)
    space = belated.delay(inner, interval=2).observation_space
    assert isinstance(space, gym.spaces.Box)
    assert space.low.tolist() == [-np.inf] * 3 + [0]
    assert space.high.tolist() == [np.inf] * 3 + [1]


BOX = gym.spaces.Box(-1, 1, (2, 3), np.float64)
SPACES: list[gym.Space[Any]] = [
    BOX,
    gym.spaces.Box(0, 255, (4,), np.uint8),
    gym.spaces.Box(-2, 2, (), np.float32),
    gym.spaces.Discrete(4, start=-1),
    gym.spaces.MultiDiscrete([2, 3]),
    gym.spaces.MultiBinary(5),
    gym.spaces.Tuple((gym.spaces.Discrete(2), BOX)),
    gym.spaces.Dict({"place": BOX, "gear": gym.spaces.Discrete(3), "more": gym.spaces.Dict(
        {"lamps": gym.spaces.MultiBinary(2)})}),
]  # fmt: skip


class Observing(ScriptedEnv):
    """Shows anything that is in a space."""

    def __init__(self, space: gym.Space[Any]) -> None:
        super().__init__([1.0] * 9)
        self.observation_space = space

    def reset(self, **how: Any) -> Any:
        _, info = super().reset(**how)
        self.observation_space.seed(how.get("seed"))
        return self.observation_space.sample(), info

    def step(self, action: Any) -> Any:
        return self.observation_space.sample(), *super().step(action)[1:]


@pytest.mark.parametrize("space", SPACES, ids=str)
@pytest.mark.parametrize("how", ["delay", "mark"])
def test_observations_are_flattened_as_gymnasium_does_it(space: Any, how: str) -> None:
    wrap = partial(belated.delay, interval=4) if how == "delay" else partial(belated.mark, period=4)
    flat = rollout(wrap(gym.wrappers.FlattenObservation(Observing(space))), seed=3)
    own = wrap(Observing(space))
    for expected, found in zip(flat, rollout(own, seed=3), strict=True):
        np.testing.assert_array_equal(expected[0], found[0], strict=True)
        assert found[0] in own.observation_space
    assert how == "mark" or belated.check_delayed_env(wrap(Observing(space)), steps=40).ok


@pytest.mark.parametrize(
    ("space", "said"),
    [
        (gym.spaces.Box(0, 255, (8, 8, 3), np.uint8), "Observations hold a picture"),
        (gym.spaces.Dict({"x": gym.spaces.Box(0, 255, (8, 8), np.uint8)}), "hold a picture"),
        (gym.spaces.Sequence(gym.spaces.Discrete(3)), "no fixed size"),
    ],
)
def test_other_observations_are_refused_with_what_to_do(space: Any, said: str) -> None:
    inner = ScriptedEnv([1.0])
    inner.observation_space = space
    with pytest.raises(ValueError, match=said):
        belated.delay(inner, interval=3)


def test_a_dict_is_learned_from_as_from_its_flattened_version() -> None:
    """(Actions of the scripted environment are a flat Box.)"""
    whole = belated.delay(Observing(SPACES[-1]), interval=4)
    flat = belated.delay(gym.wrappers.FlattenObservation(Observing(SPACES[-1])), interval=4)
    agents = [small_agent("hc-singleton", env).learn(60) for env in (whole, flat)]
    assert_same_weights(*agents)
    again = belated.delay(Observing(SPACES[-1]), interval=4)
    action, _ = agents[0].predict(again.reset(seed=1)[0])
    assert action in again.action_space


def test_an_environment_without_intervals_has_no_phase() -> None:
    with pytest.raises(ValueError, match=r"belated\.delay"):
        IntervalPhase(ScriptedEnv([1.0]))
