"""An exported policy is the agent's."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from exported import ROOT, npz_actions, onnx_actions
from small_agents import delayed, small_agent

import belated
from belated import Agent
from belated.backbones import SAC
from belated.training.learner import Learner

METHODS = ["hc-singleton", "td3", "crossq-hc-singleton", "ppo", "lirpg"]


def observations(agent: Agent) -> Any:
    rng = np.random.default_rng(0)
    shape = (1_000, agent.shape.observation_size)
    return (3 * rng.standard_normal(shape)).astype(np.float32)


@pytest.fixture(scope="module", params=METHODS)
def agent(request: pytest.FixtureRequest) -> Agent:
    env = belated.make("Pendulum-v1", interval="2:5")
    return small_agent(request.param, env).learn(120)  # actions from −2 to 2


@pytest.mark.parametrize("kind", ["onnx", "npz"])
def test_an_exported_policy_predicts_what_the_agent_does(
    agent: Agent, kind: str, tmp_path: Path
) -> None:
    path = tmp_path / "some" / f"policy.{kind}"
    agent.export(path)
    rows = observations(agent)
    actions = {"onnx": onnx_actions, "npz": npz_actions}[kind](path, rows)
    expected, _ = agent.predict(rows)
    assert np.ptp(expected) > 0.01
    assert actions.dtype == np.float32
    np.testing.assert_allclose(actions, expected, rtol=0, atol=1e-6)


def test_predictions_are_the_network_s(agent: Agent) -> None:
    """NumPy computes them, in float64; learning uses JAX, in float32."""
    rows = observations(agent)
    learned = agent.spaces.to_env(agent.learner.mode(rows))
    np.testing.assert_allclose(agent.predict(rows)[0], learned, rtol=0, atol=1e-5)


def test_one_observation_is_predicted_as_a_batch_of_them(agent: Agent) -> None:
    rows = observations(agent)[:50]
    together, _ = agent.predict(rows)
    alone = np.stack([agent.predict(row)[0] for row in rows])
    np.testing.assert_allclose(alone, together, rtol=0, atol=1e-6)
    assert alone.dtype == together.dtype == np.float32
    assert agent.predict(rows[:1])[0].shape == (1, *together.shape[1:])


def test_predictions_follow_what_is_learned() -> None:
    agent = small_agent("sac").learn(40)
    observation = observations(agent)[0]
    before, _ = agent.predict(observation)
    agent.learn(40)
    after, _ = agent.predict(observation)
    assert (before != after).any()
    batch, _ = agent.predict(np.stack([observation, observation]))
    np.testing.assert_allclose(after, batch[0], atol=1e-6)


def test_the_loader_needs_nothing_but_numpy(tmp_path: Path) -> None:
    small_agent("sac", delayed()).export(tmp_path / "policy.npz")
    code = (
        "import sys, runpy; sys.argv = ['run_policy.py', sys.argv[1]]; "
        f"runpy.run_path({str(ROOT / 'examples' / 'run_policy.py')!r}, run_name='__main__'); "
        "assert not {'jax', 'belated', 'gymnasium'} & {*sys.modules}"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "policy.npz")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("[")
    assert (tmp_path / "policy.npz").stat().st_size < 10_000


def test_other_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"to \*.onnx or \*.npz, not to policy.pt"):
        small_agent("sac").export(tmp_path / "policy.pt")


def test_a_backbone_with_a_mode_of_its_own_is_asked_for_it(tmp_path: Path) -> None:
    class Cautious(SAC):
        def mode(self, actor: Any, observation: Any) -> Any:
            return 0.1 * actor.mode(observation)

    agent = small_agent(SAC()).learn(40)
    row = observations(agent)[0]
    usual, _ = agent.predict(row)
    object.__setattr__(agent.method, "backbone", Cautious())
    agent._plain_of = None
    agent.learner = Learner(Cautious(hidden=(8, 8)), agent.shape, 0)
    alone, _ = agent.predict(row)
    together, _ = agent.predict(np.stack([row, row]))
    np.testing.assert_allclose(alone, together[0], atol=1e-6)
    with pytest.raises(ValueError, match="a `mode` of its own"):
        agent.export(tmp_path / "policy.npz")
    assert usual.shape == alone.shape
