"""With the phase turned off, nothing that reaches a learner depends on it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from episodes import random_episode, shape_of
from gymnasium.vector import AutoresetMode
from gymnasium.wrappers import TransformObservation
from hypothesis import given
from hypothesis import strategies as st
from scripted_envs import RandomEnv
from small_agents import delayed, small_agent, vector_of

import belated
from belated import Agent, IntervalSpec
from belated.credit.rudder import intervals_of
from belated.critics.windows import next_history
from belated.experience.batch import OPTIONAL, IntervalBatch
from belated.experience.off_policy import OffPolicy
from belated.experience.replay import replay_of
from belated.experience.rollout import Rollout, rollout_of
from belated.experience.spaces import Spaces
from belated.experience.step import ProblemShape, Step

METHODS = ["hc-singleton", "hc-pairwise-1", "hc-rnn", "q-rnn", "rrd", "rudder"]
ON, OFF = True, False


def unvarying(phase: bool, overlap: int = 2) -> Any:
    """An environment that always shows the same, whatever happens in it."""
    env = TransformObservation(RandomEnv(), lambda shown: np.full_like(shown, 0.5), None)
    return belated.delay(env, interval="2:5", overlap=overlap, phase=phase)


def data_for(method: str, env: Any) -> tuple[list[Any], ProblemShape]:
    """What reaches the learner, instead of being learned from."""
    agent = small_agent(method, env)
    seen: list[Any] = []
    agent.learner.update = lambda data: seen.append(data) or {}  # type: ignore[method-assign, func-returns-value]
    agent.learn(90)
    assert seen
    return seen, agent.shape


def observations_in(data: Any, shape: ProblemShape) -> dict[str, Any]:
    """The observations (N, D) that networks come to see, by where they are."""
    if isinstance(data, Rollout):
        real = data.mask > 0
        found = {"observation": data.observation[real], "next": data.next_observation[real]}
        inputs = np.asarray(intervals_of(data, shape).inputs)
        return found | {"rudder": shape.split(inputs[real])[0]}
    assert isinstance(data, IntervalBatch)
    found = {"observation": data.observation, "next": data.next_observation}
    if data.window is not None:
        found["window"] = shape.split(data.window[data.window_mask > 0])[0]
        steps, mask = map(np.asarray, next_history(data, shape))
        found["next history"] = shape.split(steps[mask > 0])[0]
    if data.window_end is not None:
        found["window end"] = data.window_end
    return found


@pytest.mark.parametrize("method", METHODS)
def test_steps_that_differ_in_their_phase_alone_look_the_same(method: str) -> None:
    for phase in (OFF, ON):
        seen, shape = data_for(method, unvarying(phase))
        views = [observations_in(data, shape) for data in seen]
        for name in views[0]:
            different = np.unique(np.concatenate([view[name] for view in views]), axis=0)
            phases = np.zeros(1) if phase is OFF else phases_in(name, shape)
            assert different[:, :-1].tolist() == [[0.5] * shape.state_size] * len(phases), name
            np.testing.assert_allclose(different[:, -1], phases, err_msg=name)


def phases_in(name: str, shape: ProblemShape) -> Any:
    """The phases that are told, of all positions; in histories, overlaps have phases too."""
    first = -shape.overlap if name in ("window", "next history") else 0
    last = 1 if name == "window end" else shape.max_length - (name == "next history")
    return np.arange(first, last) / shape.max_length


def phase_weights(leaf: Any, shape: ProblemShape) -> list[int]:
    """Which rows of a weight matrix would read a phase; networks' own layers have none."""
    observed, step = shape.observation_size, shape.step_size
    rows = {
        observed: [observed - 1],  # actors, values
        step: [observed - 1],  # critics, histories
        2 * step: [observed - 1, step + observed - 1],  # pairs
        step + observed - 1: [observed - 1],  # RUDDER
    }
    return rows.get(leaf.shape[0], []) if leaf.ndim == 2 else []


def trained(method: str, phase: bool, phase_weight: float | None) -> tuple[Agent, list[Any]]:
    """An agent after some updates, and its weights except those that would read a phase."""
    agent = small_agent(method, delayed(overlap=2, phase=phase), hidden=(7, 7))
    leaves = [np.array(leaf) for leaf in agent.learner.leaves]
    rows = [phase_weights(leaf, agent.shape) for leaf in leaves]
    assert sum(map(bool, rows)) >= 2  # a policy's, and a critic's or a value's
    if phase_weight is not None:
        for leaf, places in zip(leaves, rows, strict=True):
            if places:
                leaf[places] = phase_weight
        agent.learner.leaves = leaves  # type: ignore[assignment]
    agent.learn(60)
    after = zip(map(np.asarray, agent.learner.leaves), rows, strict=True)
    return agent, [np.delete(leaf, places, 0) for leaf, places in after if leaf.ndim == 2]


@pytest.mark.parametrize("method", METHODS)
def test_what_networks_would_make_of_a_phase_changes_nothing(method: str) -> None:
    """Every path from an observation into a network, by what comes out at the end."""
    (first, weights), (second, others) = (trained(method, OFF, value) for value in (None, 3.0))
    for a, b in zip(weights, others, strict=True):
        np.testing.assert_array_equal(a, b)
    assert first.metrics
    assert {name: float(value) for name, value in first.metrics.items()} == second.metrics


def test_with_a_phase_it_changes_what_is_learned() -> None:
    (_, weights), (_, others) = (trained("hc-pairwise-1", ON, value) for value in (None, 3.0))
    assert any((a != b).any() for a, b in zip(weights, others, strict=True))


def without_phase(step: Step) -> Step:
    erase = np.array([1, 1, 1, 0], np.float32)
    return step._replace(
        observation=step.observation * erase, next_observation=step.next_observation * erase
    )


@given(st.integers(1, 6), st.integers(0, 4), st.integers(0, 10_000))
def test_turning_it_off_empties_the_place_of_the_phase_and_changes_nothing_else(
    max_length: int, overlap: int, seed: int
) -> None:
    shape = shape_of(max_length, overlap)
    off = shape._replace(phase=False)
    steps = random_episode(np.random.default_rng(seed), max_length)
    silent = [without_phase(step) for step in steps]
    with_phase, without = (
        next(replay_of(episode, each, OPTIONAL).in_order(200))
        for episode, each in ((steps, shape), (silent, off))
    )
    assert_same_but_for_the_phase(with_phase, without, shape)
    assert_same_but_for_the_phase(rollout_of(steps, shape), rollout_of(silent, off), shape)


def assert_same_but_for_the_phase(first: Any, second: Any, shape: ProblemShape) -> None:
    for name, a, b in zip(first._fields, first, second, strict=True):
        if name in ("observation", "next_observation", "window", "window_end"):
            assert not b[..., shape.phase_place].any(), name
            a = a.copy()
            a[..., shape.phase_place] = 0
        np.testing.assert_array_equal(a, b, err_msg=name)


def test_copies_and_evaluations_have_no_phase_either() -> None:
    agent = small_agent(env=delayed(phase=False), num_envs=3).learn(90)
    envs = agent.loop.lanes.envs  # type: ignore[attr-defined]
    for env in (*envs, agent.evaluation_env()):
        assert env.get_wrapper_attr("interval_spec") == IntervalSpec(5, phase=False)
    assert isinstance(agent.loop.experience, OffPolicy)
    for batch in agent.loop.experience.replay.in_order(100):
        assert not batch.observation[:, -1].any()
    assert not any(step.next_observation[-1] for step in agent.play(seed=1).steps)
    assert np.isfinite(agent.credit(agent.play(seed=1))).all()


@pytest.mark.parametrize("mode", list(AutoresetMode))
@pytest.mark.parametrize("method", ["hc-singleton", "ppo"])
def test_vector_environments_keep_it_off(method: str, mode: AutoresetMode) -> None:
    envs = vector_of(3, mode, overlap=1, phase=False)
    assert Spaces.of(envs).shape.phase is False
    seen, shape = data_for(method, envs)
    for data in seen:
        for name, observations in observations_in(data, shape).items():
            assert not observations[:, shape.phase_place].any(), name
    envs.close()


def test_a_saved_agent_remembers_that_it_has_no_phase(tmp_path: Path) -> None:
    whole = small_agent(env=delayed(phase=False)).learn(80)
    small_agent(env=delayed(phase=False)).learn(47).save(tmp_path / "off", replay=True)
    small_agent().save(tmp_path / "on")
    resumed = Agent.load(tmp_path / "off", delayed(phase=False)).learn(33)
    for a, b in zip(whole.learner.leaves, resumed.learner.leaves, strict=True):
        np.testing.assert_array_equal(a, b)
    for name, phase in (("off", ON), ("on", OFF)):
        with pytest.raises(ValueError, match=r"another kind of environment.*phase=False"):
            Agent.load(tmp_path / name, delayed(phase=phase))


def test_an_agent_that_was_saved_before_there_was_a_choice_has_the_phase(tmp_path: Path) -> None:
    small_agent().save(tmp_path / "old")
    manifest = tmp_path / "old" / "manifest.json"
    document = json.loads(manifest.read_text())
    del document["spaces"]["shape"]["phase"]
    manifest.write_text(json.dumps(document))
    assert Agent.load(tmp_path / "old", delayed()).shape.phase is True
    with pytest.raises(ValueError, match="another kind of environment"):
        Agent.load(tmp_path / "old", delayed(phase=False))


def test_an_agent_without_phase_refuses_to_be_told_one() -> None:
    agent = small_agent(env=delayed(phase=False))
    agent.predict([0.1, 0.2, 0.3, 0.0])
    for observation in ([0.1, 0.2, 0.3, 0.4], np.full((2, 4), 0.5)):
        with pytest.raises(ValueError, match="with the phase turned off"):
            agent.predict(observation)
