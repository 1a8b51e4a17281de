"""Gymnasium's vector environments."""

from __future__ import annotations

import multiprocessing
import time
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode
from gymnasium.wrappers import TimeLimit
from scripted_envs import RandomEnv
from small_agents import (
    assert_same_weights,
    delayed,
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
    assert_whole(agent)
    envs.close()


def assert_whole(agent: Agent) -> None:
    """Steps and windows are in order: `RandomEnv` shows the time first, and then chance."""
    assert isinstance(agent.loop.experience, OffPolicy)
    replay = agent.loop.experience.replay
    assert all(ring.written > 30 for ring in replay.rings)
    for batch in replay.in_order(batch_size=50):
        np.testing.assert_array_equal(batch.next_observation[:, 0], batch.observation[:, 0] + 1)
        time, real = batch.window[:, :, 0], batch.window_mask > 0
        later = time[1:] - time[:-1]
        assert (later[real[1:] & real[:-1]] == 1).all()


@pytest.mark.filterwarnings("ignore:os.fork")
@pytest.mark.parametrize("name", ["hc-singleton", "ppo"])
@pytest.mark.parametrize(
    ("mode", "vectorization"),
    [*((mode, "sync") for mode in AutoresetMode), (AutoresetMode.NEXT_STEP, "async")],
)
def test_a_vector_learns_and_goes_on_exactly_as_a_list_does(
    name: str, mode: AutoresetMode, vectorization: str, tmp_path: Path
) -> None:
    envs = [vector_of(3, mode, vectorization, overlap=2) for _ in range(2)]
    agent = small_agent(name, envs[0]).learn(72)
    agent.save(tmp_path / "agent", replay=True)
    resumed = Agent.load(tmp_path / "agent", envs[1]).learn(60)
    listed = small_agent(name, delayed(overlap=2), num_envs=3).learn(132)
    assert_same_weights(agent.learn(60), listed)
    assert_same_weights(resumed, listed)
    for each in envs:
        each.close()


class Foreign(gym.vector.VectorEnv[Any, Any, Any]):
    """A vector environment that is none of Gymnasium's own."""

    def __init__(self, envs: Any) -> None:
        self._envs = envs
        for name in (
            "num_envs", "metadata", "observation_space", "action_space",
            "single_observation_space", "single_action_space",
        ):  # fmt: skip
            setattr(self, name, getattr(envs, name))
        self.reset, self.step, self.get_attr = envs.reset, envs.step, envs.get_attr  # type: ignore[method-assign]


@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_a_vector_that_cannot_be_brought_back_starts_new_episodes(
    mode: AutoresetMode, tmp_path: Path
) -> None:
    first, second = (Foreign(vector_of(3, mode, overlap=2)) for _ in range(2))
    agent = small_agent("hc-singleton", first).learn(150)
    assert_whole(agent)
    agent.save(tmp_path / "agent", replay=True)
    before = agent.loop.lanes.state()["lanes.episodes"]
    loaded = Agent.load(tmp_path / "agent", second)
    np.testing.assert_array_equal(loaded.loop.lanes._episodes, before + 1)  # type: ignore[attr-defined]
    assert_whole(loaded.learn(70))


@pytest.mark.filterwarnings("ignore:os.fork")
def test_vectors_whose_lanes_cannot_be_reset_one_by_one_reset_themselves() -> None:
    def make() -> Any:
        return delayed()

    envs = gym.vector.AsyncVectorEnv([make] * 3, shared_memory=False)
    assert_whole(small_agent(env=envs).learn(150))
    envs.close()
    counting = gym.wrappers.vector.RecordEpisodeStatistics(vector_of(3, AutoresetMode.NEXT_STEP))
    agent = small_agent(env=counting).learn(150)
    assert_whole(agent)
    finished = sum(agent.loop.lanes.state()["lanes.episodes"])
    assert 0 < len(counting.length_queue) <= finished


@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_rollouts_work_in_every_autoreset_mode(mode: AutoresetMode, tmp_path: Path) -> None:
    first, second = (vector_of(3, mode) for _ in range(2))
    agent = small_agent("ppo", first).learn(150)
    assert np.isfinite(float(agent.metrics["value_loss"]))
    agent.save(tmp_path / "agent", replay=True)
    loaded = Agent.load(tmp_path / "agent", second).learn(60)
    assert loaded.steps > agent.steps
    assert all(np.isfinite(leaf).all() for leaf in weights(loaded))


def test_vector_environments_whose_episodes_end_together_work() -> None:
    envs = gym.make_vec(
        "Pendulum-v1",
        num_envs=2,
        vectorization_mode="sync",
        vector_kwargs={"autoreset_mode": AutoresetMode.SAME_STEP},
        wrappers=[lambda env: belated.delay(TimeLimit(env, 12), interval=5)],  # type: ignore[list-item, return-value]
    )
    assert small_agent("sac", envs).learn(60).steps == 60


class HangingEnv(RandomEnv):
    """Hangs at its 20th step, or at a reset after so many."""

    steps = 0

    def __init__(self, reset_after: int = 1_000) -> None:
        super().__init__()
        self.reset_after = reset_after

    def reset(self, **how: Any) -> Any:
        if self.steps >= self.reset_after:
            time.sleep(60)
        return super().reset(**how)

    def step(self, action: Any) -> Any:
        self.steps += 1
        if self.steps == 20:
            time.sleep(60)
        return super().step(action)


@pytest.mark.filterwarnings("ignore:os.fork")
def test_an_environment_that_hangs_is_told_and_nothing_is_lost(tmp_path: Path) -> None:
    def make() -> Any:
        return belated.delay(HangingEnv(), interval="2:5")

    envs = gym.vector.AsyncVectorEnv([make, make])
    agent = small_agent(env=envs)
    with pytest.raises(multiprocessing.TimeoutError) as caught:
        agent.learn(100, out=tmp_path, eval_env=delayed(), step_timeout=1.0)
    assert caught.value.__notes__[-1] == "This was step 39 of the run."
    assert "make new ones" in caught.value.__notes__[0]
    assert Agent.load(tmp_path, vector_of(2, AutoresetMode.NEXT_STEP)).steps == 38
    with pytest.raises(ValueError, match=r"step_timeout needs a gymnasium.vector.AsyncVectorEnv"):
        small_agent().learn(10, step_timeout=1.0)


@pytest.mark.filterwarnings("ignore:os.fork")
def test_a_reset_that_hangs_is_told_too(tmp_path: Path) -> None:
    def make() -> Any:
        return belated.delay(HangingEnv(reset_after=1), interval="2:5")

    agent = small_agent(env=gym.vector.AsyncVectorEnv([make, make]))
    with pytest.raises(multiprocessing.TimeoutError):
        agent.learn(38, out=tmp_path, eval_env=delayed(), step_timeout=1.0)
    resumed = Agent.load(tmp_path, vector_of(2, AutoresetMode.NEXT_STEP))
    assert 0 < resumed.steps < 38
    assert resumed.steps == agent.steps
