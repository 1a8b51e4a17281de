"""Gymnasium's vector environments."""

from __future__ import annotations

from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode
from gymnasium.wrappers import TimeLimit
from small_agents import (
    assert_same_weights,
    small_agent,
    vector_of,
    weights,
)

import belated
from belated import Agent
from belated.experience.off_policy import OffPolicy


@pytest.mark.filterwarnings("ignore:os.fork")  # Gymnasium's workers use no JAX
@pytest.mark.parametrize("vectorization", ["sync", "async"])
@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_vector_environments_work_in_every_autoreset_mode(
    mode: AutoresetMode, vectorization: str
) -> None:
    envs = vector_of(3, mode, vectorization, overlap=1)
    agent = small_agent("hc-singleton", envs).learn(150)
    assert 150 <= agent.steps < 153
    assert isinstance(agent.loop.experience, OffPolicy)
    lanes = agent.loop.experience.replay._rings
    for lane in lanes:
        assert lane.written > 30
    envs.close()


@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_rollouts_work_in_every_autoreset_mode(mode: AutoresetMode, tmp_path: Path) -> None:
    first, second = (vector_of(3, mode) for _ in range(2))
    agent = small_agent("ppo", first).learn(150)
    assert np.isfinite(float(agent.metrics["value_loss"]))
    agent.save(tmp_path / "agent", replay=True)
    loaded = Agent.load(tmp_path / "agent", second).learn(60)
    assert loaded.steps > agent.steps
    assert all(np.isfinite(leaf).all() for leaf in weights(loaded))


def test_a_vector_environment_with_autoreset_disabled_learns_as_a_list_does() -> None:
    envs = vector_of(2, AutoresetMode.DISABLED)
    assert_same_weights(small_agent(env=envs).learn(100), small_agent(num_envs=2).learn(100))


def test_vector_environments_whose_episodes_end_together_work() -> None:
    envs = gym.make_vec(
        "Pendulum-v1",
        num_envs=2,
        vectorization_mode="sync",
        vector_kwargs={"autoreset_mode": AutoresetMode.SAME_STEP},
        wrappers=[lambda env: belated.delay(TimeLimit(env, 12), interval=5)],  # type: ignore[list-item, return-value]
    )
    assert small_agent("sac", envs).learn(60).steps == 60
