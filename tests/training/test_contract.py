"""What every method must be able to do."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import gymnasium as gym
import jax
import numpy as np
import pytest
from gymnasium.wrappers import TimeLimit
from scripted_envs import ScriptedEnv
from small_agents import (
    assert_same_weights,
    delayed,
    small_agent,
    weights,
)

import belated
from belated import Agent
from belated.experience.off_policy import OffPolicy
from belated.methods import METHODS, find_method
from belated.parts import from_json, to_json

NAMES = [name for name in METHODS if not name.startswith("dqn")]  # (see test_spaces.py)
NAMES += ["hc-pairwise-2", "crossq-hc-pairwise-2"]
WITH_OVERLAP = ("q-", "hc-", "rrd", "rudder", "sac", "crossq-hc-s")


class Spoiled(gym.Wrapper[Any, Any, Any, Any]):
    """Tells another dense reward."""

    def step(self, action: Any) -> Any:
        *result, info = super().step(action)
        return *result, info | {"dense_reward": info["dense_reward"] + 1}


@pytest.mark.parametrize(
    ("name", "overlap"),
    [(name, 0) for name in NAMES]
    # The overlap is the critic's and the credit rule's business, not the backbone's.
    + [(name, 2) for name in NAMES if name.startswith(WITH_OVERLAP)],
)
def test_contract(name: str, overlap: int, tmp_path: Path) -> None:
    """What every method promises.

    It learns with finite losses, is traced once, is reproducible, saves and loads, and sees no
    dense reward unless it is an oracle.
    """
    agents = [small_agent(name, delayed(overlap=overlap), seed=3).learn(60) for _ in range(2)]
    agent = agents[0]
    metrics = {metric: float(value) for metric, value in agent.metrics.items()}
    assert metrics
    assert all(np.isfinite(value) for value in metrics.values())
    assert all(np.isfinite(leaf).all() for leaf in weights(agent))
    assert agent.learner.traces == 1
    assert_same_weights(*agents)
    spoiled = small_agent(name, Spoiled(delayed(overlap=overlap)), seed=3).learn(60)
    pairs = zip(weights(agent), weights(spoiled), strict=True)
    assert all(np.array_equal(a, b) for a, b in pairs) == ("oracle" not in name)

    agent.save(tmp_path / "agent")
    loaded = Agent.load(tmp_path / "agent")
    assert loaded.method == agent.method
    observations = np.random.default_rng(0).normal(size=(5, 4)).astype(np.float32)
    for deterministic in (True, False):
        a, _ = agent.predict(observations, deterministic=deterministic)
        b, _ = loaded.predict(observations, deterministic=deterministic)
        np.testing.assert_array_equal(a, b)
        assert (np.abs(a) <= 1).all()


@pytest.mark.parametrize("lanes", [1, 3])
def test_every_step_after_the_random_ones_brings_an_update(lanes: int) -> None:
    agent = small_agent("td3", num_envs=lanes).learn(60)
    assert agent.steps == 60
    assert agent.learner.state.updates == 30


def test_another_seed_gives_another_agent() -> None:
    first, second = (small_agent(seed=seed).learn(60) for seed in (1, 2))
    assert any((a != b).any() for a, b in zip(weights(first), weights(second), strict=True))


def test_rounded_products_are_asked_for_and_remembered(tmp_path: Path) -> None:
    exact = small_agent("sac").learn(40)
    rounded = small_agent("sac", precision="bfloat16").learn(40)
    rounded.save(tmp_path / "agent")
    assert Agent.load(tmp_path / "agent").method.training.precision == "bfloat16"
    pairs = [(a, b) for a, b in zip(weights(exact), weights(rounded), strict=True)]
    assert any((a != b).any() for a, b in pairs)
    assert all(a.dtype == b.dtype == np.float32 for a, b in pairs if a.dtype.kind == "f")


@pytest.mark.parametrize("name", ["sac", "hc-pairwise-1", "td3-q-rnn", "crossq-hc-singleton"])
def test_updates_in_one_go_equal_single_ones(name: str) -> None:
    agent, scanned = small_agent(name).learn(60), small_agent(name).learn(60)
    assert isinstance(agent.loop.experience, OffPolicy)
    batches = [agent.loop.experience.sample() for _ in range(4)]
    for batch in batches:
        agent.learner.update(batch)
    scanned.learner.update_many(batches)
    for a, b in zip(weights(agent), weights(scanned), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def test_methods_are_what_the_papers_table_says() -> None:
    assert find_method("hc-pairwise-1").backbone.critic.regularizer == 0.5  # type: ignore[attr-defined]
    assert find_method("hc-singleton").backbone.critic.regularizer == 0.05  # type: ignore[attr-defined]
    shared: Any = find_method("sac")
    assert (shared.backbone.hidden, shared.training.batch_size) == ((256, 256), 128)
    assert {"td3", "td3-oracle", "td3-hc-rnn", "td3-q-rnn"} <= set(METHODS)
    for method in METHODS.values():
        document = json.loads(json.dumps(to_json(method)))
        assert from_json(document) == method


def test_whole_episode_intervals_work() -> None:
    env = belated.mark(
        TimeLimit(ScriptedEnv([0.0] * 299 + [1.0]), 300), max_length=300, period="episode"
    )
    agent = small_agent("hc-singleton", env, learning_starts=300, replay_size=2_000, gamma=0.999)
    agent.learn(605)
    assert np.isfinite(float(agent.metrics["td_loss"]))
    assert isinstance(agent.metrics["td_loss"], jax.Array)


def test_whole_episode_intervals_work_for_rudder() -> None:
    env = belated.mark(
        TimeLimit(ScriptedEnv([0.0] * 59 + [1.0]), 60), max_length=60, period="episode"
    )
    agent = small_agent("rudder", env, rollout_steps=100).learn(125)
    assert np.isfinite(float(agent.metrics["rudder_error"]))
