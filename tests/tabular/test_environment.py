"""Tabular problems as environments."""

import gymnasium as gym
import numpy as np
import pytest

import belated
from belated.envs.tasks import TABULAR
from belated.tabular import TabularEnv, random_problem
from belated.tabular.environment import EXAMPLES


def test_every_example_is_registered() -> None:
    assert set(TABULAR.values()) == set(EXAMPLES)


@pytest.mark.parametrize("env_id", TABULAR)
def test_the_registered_ones_are_well_formed(env_id: str) -> None:
    report = belated.check_delayed_env(gym.make(env_id), steps=200)
    assert report.ok, str(report)


@pytest.mark.parametrize("overlap", [0, 2])
def test_random_lengths_and_truncation_are_well_formed(overlap: int) -> None:
    problem = random_problem(np.random.default_rng(3), overlap=overlap, max_length=3)
    env = TabularEnv(problem, max_steps=10)
    report = belated.check_delayed_env(belated.IntervalPhase(env), steps=300)
    assert report.ok, str(report)


def test_actions_are_bins() -> None:
    env = TabularEnv("XOR")
    env.reset(seed=0)
    assert env.action_index(np.array([0.9])) == 0  # A₀ and A₁ have one action
    env.state = 2
    assert [env.action_index(np.array([x])) for x in (-1, -0.01, 0, 1)] == [0, 0, 1, 1]
    with pytest.raises(ValueError, match="must be in"):
        env.action_index(np.array([1.5]))


def test_an_unknown_example_lists_what_there_is() -> None:
    with pytest.raises(ValueError, match="FixedPointBias"):
        TabularEnv("XAND")
