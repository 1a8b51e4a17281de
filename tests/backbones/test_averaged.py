"""An averaged policy: what it is an average of, who uses it, and what it must not change."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from discrete import ChoiceEnv
from exported import npz_actions, onnx_actions
from gymnasium.spaces import Discrete
from small_agents import assert_same_weights, delayed, small_agent, weights

import belated
from belated import Agent
from belated.envs.actions import options_of
from belated.methods import METHODS, CrossQ, Method


def env_for(name: str) -> Any:
    if not name.startswith("dqn"):
        return delayed()
    space = Discrete(3)
    return belated.delay(ChoiceEnv(space, False, options_of(space)), interval="2:5")


def agent_of(name: str, **changes: Any) -> Agent:
    return small_agent(name, env_for(name), **changes)


@pytest.mark.parametrize("name", ["sac", "td3-hc-pairwise-1", "crossq-hc-singleton", "dqn"])
def test_learning_does_not_know_of_it(name: str) -> None:
    """But for rounding, where the compiler joins operations in another way: a hundredth at most
    of the way that the weights went."""
    start = weights(agent_of(name, policy_average=0))
    plain, averaged = (agent_of(name, policy_average=over).learn(60) for over in (0, 10))
    inner = jax.tree.leaves(averaged.learner.state.inner)
    for old, a, b in zip(start, weights(plain), inner, strict=True):
        way, gap = (np.linalg.norm(np.subtract(a, each, dtype=np.float64)) for each in (old, b))
        assert gap <= 0.01 * way


@pytest.mark.parametrize("name", ["sac", "crossq", "dqn"])
def test_it_is_the_mean_and_later_an_exponential_average(name: str) -> None:
    """The same as a loop in double precision; whole numbers are not averaged."""
    agent = agent_of(name, policy_average=8)
    policies: list[Any] = []
    update = agent.learner.update

    def noticed(data: Any) -> Any:
        metrics = update(data)
        actor = jax.tree.leaves(agent.learner.state.actor.actor)
        policies.append([np.asarray(leaf, np.float64) for leaf in actor])
        return metrics

    agent.learner.update = noticed  # type: ignore[method-assign]
    agent.learn(60)
    assert len(policies) > 20
    expected = policies[0]
    for number, policy in enumerate(policies[1:], 2):
        rate = 1 / min(number, 8)
        expected = [old + rate * (new - old) for old, new in zip(expected, policy, strict=True)]
        if number == 5:
            for value, seen in zip(expected, zip(*policies[:5], strict=True), strict=True):
                np.testing.assert_allclose(value, np.mean(seen, axis=0))
    now = jax.tree.leaves(agent.learner.state.actor.average)
    for leaf, value, last in zip(now, expected, policies[-1], strict=True):
        whole = np.issubdtype(leaf.dtype, np.integer)
        np.testing.assert_allclose(leaf, last if whole else value, rtol=1e-4, atol=1e-6)


def test_only_exploration_takes_the_last_policy(tmp_path: Path) -> None:
    plain = small_agent("crossq-hc-singleton", policy_average=0).learn(60)
    averaged = small_agent("crossq-hc-singleton", policy_average=30).learn(60)
    rows = np.random.default_rng(0).normal(size=(30, 4)).astype(np.float32)
    noise = np.random.default_rng(1).normal(size=(30, 1)).astype(np.float32)
    there, here = (agent.learner.act(rows, noise) for agent in (plain, averaged))
    np.testing.assert_allclose(here, there, atol=1e-3)

    expected = averaged.predict(rows)[0]
    assert np.abs(expected - plain.predict(rows)[0]).max() > 1e-2
    mode = averaged.learner.state.actor.average.mode(rows)
    np.testing.assert_allclose(expected, averaged.spaces.to_env(np.asarray(mode)), atol=1e-5)
    for kind, run in (("npz", npz_actions), ("onnx", onnx_actions)):
        averaged.export(tmp_path / f"policy.{kind}")
        np.testing.assert_allclose(run(tmp_path / f"policy.{kind}", rows), expected, atol=1e-6)
    played = averaged.play()
    seen = np.stack([step.observation for step in played.steps])
    taken = np.stack([step.action for step in played.steps])
    np.testing.assert_allclose(taken, averaged.predict(seen)[0], atol=1e-5)
    told, expected = (agent.credit(played) for agent in (averaged, plain))
    np.testing.assert_allclose(told, expected, atol=1e-3)  # (the critic is the same)


@pytest.mark.parametrize("normalize", [False, True])
def test_it_is_saved_and_goes_on(normalize: bool, tmp_path: Path) -> None:
    how: dict[str, Any] = {"normalize_observations": normalize, "policy_average": 20, "seed": 2}
    whole = small_agent("crossq-hc-singleton", **how).learn(80)
    small_agent("crossq-hc-singleton", **how).learn(47).save(tmp_path, replay=True)
    assert_same_weights(whole, Agent.load(tmp_path, delayed()).learn(33))


def test_before_the_first_update_it_is_the_policy_there_is() -> None:
    plain, averaged = small_agent("sac"), small_agent("sac", policy_average=10)
    rows = np.random.default_rng(0).normal(size=(5, 4)).astype(np.float32)
    np.testing.assert_array_equal(plain.predict(rows)[0], averaged.predict(rows)[0])


def test_crossq_is_averaged_whoever_composes_it() -> None:
    assert Method(CrossQ()) == METHODS["crossq"]
    assert METHODS["crossq"].training.policy_average == 1_000
    assert METHODS["sac"].training.policy_average == 0


def test_it_is_for_methods_with_a_replay() -> None:
    with pytest.raises(ValueError, match="policy_average"):
        small_agent("ppo", policy_average=10)
    with pytest.raises(ValueError, match="policy_average must be at least 0"):
        small_agent("sac", policy_average=-1)
