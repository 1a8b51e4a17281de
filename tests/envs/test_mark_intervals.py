from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reward_functions import reward_is_large
from scripted_envs import ScriptedEnv, rollout

import belated
from belated import IntervalSpec, MarkIntervals


class LateEnv(ScriptedEnv):
    """Tells in ``info["sample"]`` whether a reward came; None in the script means it did not."""

    def __init__(self, script: list[float | None]) -> None:
        super().__init__([reward or 0.0 for reward in script])
        self.script = script

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        came = self.script[self.time] is not None
        observation, reward, terminated, truncated, info = super().step(action)
        return observation, reward, terminated, truncated, {**info, "sample": came}


def marks(env: MarkIntervals) -> list[tuple[bool, bool, int]]:
    flags = [info["interval"] for *_, info in rollout(env)[1:]]
    return [(flag["end"], flag["revealed"], flag["length"]) for flag in flags]


scripts = st.lists(st.one_of(st.none(), st.sampled_from([0.0, 1.0, -2.0])), min_size=1, max_size=40)


@given(scripts)
def test_intervals_end_where_a_reward_came_and_rewards_pass_unchanged(
    script: list[float | None],
) -> None:
    env = MarkIntervals(LateEnv(script), max_length=len(script), info_key="sample")
    steps = rollout(env)[1:]
    assert [step[1] for step in steps] == [reward or 0.0 for reward in script]
    start = 0
    for time, (*_, info) in enumerate(steps):
        last, came = time == len(script) - 1, script[time] is not None
        flag = info["interval"]
        assert (flag["end"], flag["revealed"]) == (came or last, came)
        assert flag["step"] == time - start
        if flag["end"]:
            assert flag["length"] == time + 1 - start
            start = time + 1


def test_a_revealed_zero_is_a_revealed_reward_and_a_lost_tail_is_not() -> None:
    env = MarkIntervals(LateEnv([None, 0.0, None, 3.0, None]), max_length=3, info_key="sample")
    assert marks(env) == [
        (False, False, -1),
        (True, True, 2),
        (False, False, -1),
        (True, True, 2),
        (True, False, 1),
    ]


@pytest.mark.parametrize("when", [reward_is_large, "reward_functions:reward_is_large"])
def test_a_predicate_recognises_revealed_rewards(when: Any) -> None:
    env = MarkIntervals(ScriptedEnv([0, 9, 0, 0]), max_length=3, when=when)
    assert marks(env) == [
        (False, False, -1),
        (True, True, 2),
        (False, False, -1),
        (True, False, 2),
    ]


@pytest.mark.parametrize(("last_reward", "revealed"), [(0.0, False), (4.0, True)])
def test_a_fixed_period(last_reward: float, revealed: bool) -> None:
    env = MarkIntervals(ScriptedEnv([0, 0, 0, 0, last_reward]), period=2)
    assert env.interval_spec == IntervalSpec(max_length=2)
    assert marks(env) == [
        (False, False, -1),
        (True, True, 2),
        (False, False, -1),
        (True, True, 2),
        (True, revealed, 1),
    ]


def test_a_reward_that_comes_with_the_episode() -> None:
    env = MarkIntervals(ScriptedEnv([0, 0, 0.0]), period="episode", max_length=10)
    assert marks(env) == [(False, False, -1), (False, False, -1), (True, True, 3)]


def test_an_interval_longer_than_declared_is_told_at_its_step() -> None:
    env = MarkIntervals(LateEnv([None] * 5), max_length=3, info_key="sampel")
    env.reset()
    env.step(np.zeros(1))
    env.step(np.zeros(1))
    with pytest.raises(ValueError, match=r"for 3 steps.*'sampel'; this step's info holds sample"):
        env.step(np.zeros(1))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"max_length": 5}, "exactly one way"),
        ({"max_length": 5, "info_key": "x", "period": 2}, "exactly one way"),
        ({"info_key": "x"}, "max_length is missing"),
        ({"period": "episode"}, "max_length is missing"),
        ({"period": 0}, "period must be at least 1"),
        ({"period": "weekly", "max_length": 5}, "period must be a whole number"),
        ({"period": 5, "max_length": 4}, "longer than max_length"),
        ({"info_key": "x", "max_length": 0}, "at least 1"),
        ({"info_key": "x", "max_length": 5, "overlap": -1}, "at least 0"),
        ({"when": "math:nothing", "max_length": 5}, "Cannot import the predicate"),
    ],
)
def test_bad_arguments_are_refused_at_construction(arguments: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        MarkIntervals(ScriptedEnv([1.0]), **arguments)


def test_a_period_may_be_text() -> None:
    assert marks(MarkIntervals(ScriptedEnv([1.0] * 5), period="4"))[3] == (True, True, 4)


def test_mark_appends_the_phase_and_declares_the_intervals() -> None:
    env = belated.mark(ScriptedEnv([1.0] * 5), period=4, overlap=2)
    assert env.get_wrapper_attr("interval_spec") == IntervalSpec(4, overlap=2)
    assert [step[0][-1] for step in rollout(env)] == [0, 0.25, 0.5, 0.75, 0, 0]


def test_it_survives_pickling() -> None:
    env = pickle.loads(pickle.dumps(MarkIntervals(ScriptedEnv([1.0] * 5), period=4)))
    assert marks(env)[3] == (True, True, 4)
