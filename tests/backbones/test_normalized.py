"""Normalised observations: what they change, and what they must not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from exported import npz_actions, onnx_actions
from scripted_envs import RandomEnv
from small_agents import assert_same_weights, delayed, small_agent

import belated
from belated import Agent


class OtherUnits(gym.ObservationWrapper[Any, Any, Any]):
    """The same observations, shifted and scaled."""

    def observation(self, observation: Any) -> Any:
        return 8 * observation + np.array([4.0, -2.0, 0.5])


def agent_of(name: str, env: Any, normalize: bool = True) -> Agent:
    delayed_env = belated.delay(env, interval="2:5", overlap=1)
    return small_agent(name, delayed_env, normalize_observations=normalize)


@pytest.mark.parametrize("name", ["hc-pairwise-1", "td3", "crossq-hc-singleton", "rrd"])
def test_units_of_measurement_do_not_matter(name: str) -> None:
    """An agent learns the same from observations in other units, which else it does not."""
    plain, other = (agent_of(name, env).learn(45) for env in (RandomEnv(), OtherUnits(RandomEnv())))
    rows = np.random.default_rng(0).uniform(0, 1, (50, 4)).astype(np.float32)
    there = rows.copy()
    there[:, :3] = 8 * rows[:, :3] + np.array([4.0, -2.0, 0.5])
    np.testing.assert_allclose(plain.predict(rows)[0], other.predict(there)[0], atol=2e-2)
    raw = [agent_of(name, env, False).learn(45) for env in (RandomEnv(), OtherUnits(RandomEnv()))]
    assert not np.allclose(raw[0].predict(rows)[0], raw[1].predict(there)[0], atol=0.2)


def test_the_moments_are_those_of_what_was_sampled() -> None:
    agent = small_agent("sac", normalize_observations=True)
    seen: list[Any] = []
    update = agent.learner.update

    def noticed(data: Any) -> Any:
        seen.append(data.observation[:, :3])
        return update(data)

    agent.learner.update = noticed  # type: ignore[method-assign]
    agent.learn(60)
    rows = np.concatenate(seen)
    moments = agent.learner.state.actor.moments
    np.testing.assert_allclose(moments.mean, rows.mean(axis=0), rtol=1e-4)
    np.testing.assert_allclose(moments.variance, rows.var(axis=0), rtol=1e-3)
    assert moments.count == len(rows)


@pytest.mark.parametrize("name", ["hc-singleton", "crossq-hc-rnn"])
def test_it_is_saved_exported_and_goes_on(name: str, tmp_path: Path) -> None:
    how: dict[str, Any] = {"normalize_observations": True, "seed": 2}
    whole = small_agent(name, **how).learn(80)
    small_agent(name, **how).learn(47).save(tmp_path / "half", replay=True)
    assert_same_weights(whole, Agent.load(tmp_path / "half", delayed()).learn(33))
    rows = np.random.default_rng(0).normal(size=(30, 4)).astype(np.float32)
    expected = whole.predict(rows)[0]
    learned = whole.spaces.to_env(whole.learner.mode(rows))
    np.testing.assert_allclose(expected, learned, atol=1e-5)
    for kind, run in (("npz", npz_actions), ("onnx", onnx_actions)):
        whole.export(tmp_path / f"policy.{kind}")
        np.testing.assert_allclose(run(tmp_path / f"policy.{kind}", rows), expected, atol=1e-6)
    credit = whole.credit(whole.play())
    assert np.isfinite(credit).all()
