"""What a tracker appends is what the wrappers append."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from discrete import ChoiceEnv
from exported import npz_actions, onnx_actions
from hypothesis import given, settings
from hypothesis import strategies as st
from late_envs import LabEnv
from scripted_envs import RandomEnv, ScriptedEnv
from small_agents import small_agent

import belated
from belated import PhaseTracker
from belated.envs.actions import sample
from belated.envs.rules import allowed_in


class Recorded(gym.Wrapper[Any, Any, Any, Any]):
    """Keeps what the environment inside shows."""

    def reset(self, **kwargs: Any) -> Any:
        observation, info = super().reset(**kwargs)
        self.shown = [(observation, info.get("action_mask"))]
        return observation, info

    def step(self, action: Any) -> Any:
        observation, *outcome, info = super().step(action)
        self.shown.append((observation, info.get("action_mask")))
        return observation, *outcome, info


class InADict(gym.ObservationWrapper[Any, Any, Any]):
    """Observations of several parts."""

    def __init__(self, env: Any) -> None:
        super().__init__(env)
        parts = {"which": gym.spaces.Discrete(3), "numbers": env.observation_space}
        self.observation_space = gym.spaces.Dict(parts)

    def observation(self, observation: Any) -> Any:
        return {"which": int(abs(observation[0])) % 3, "numbers": observation}


def choices(masked: bool = True) -> Any:
    return ChoiceEnv(gym.spaces.MultiDiscrete([3, 2]), masked, (3, 2))


def assert_tracked(tracker: PhaseTracker, env: Any, inner: Recorded, seed: int) -> None:
    """An episode of the wrapped environment, and the tracker on what is inside, are equal."""
    env.action_space.seed(seed)
    observation, _ = env.reset(seed=seed)
    given = tracker.reset(*inner.shown[0])
    ended = False
    while not ended:
        np.testing.assert_array_equal(given, observation)
        assert given.dtype == observation.dtype
        action = sample(env.action_space, allowed_in(env, observation))
        observation, _, terminated, truncated, info = env.step(action)
        ended = terminated or truncated
        own, mask = inner.shown[-1]
        given = tracker.observe(own, info["interval"]["end"], mask)
    np.testing.assert_array_equal(given, observation)


WAYS: list[tuple[Any, Any, dict[str, Any]]] = [
    (RandomEnv, belated.delay, {"interval": 4}),
    (RandomEnv, belated.delay, {"interval": "2:7"}),
    (RandomEnv, belated.delay, {"interval": "2:7", "phase": False}),
    (lambda: InADict(RandomEnv()), belated.delay, {"interval": "2:7"}),
    (choices, belated.delay, {"interval": "2:7", "action_masks": True}),
    (lambda: choices(False), belated.delay, {"interval": "2:7"}),
    (LabEnv, belated.mark, {"max_length": 9, "info_key": "lab_report"}),
    (lambda: InADict(LabEnv()), belated.mark, {"period": 5}),
]


@pytest.mark.parametrize(("make", "wrap", "how"), WAYS)
@settings(max_examples=15)
@given(seed=st.integers(0, 2**31))
def test_a_tracker_appends_what_the_wrappers_do(make: Any, wrap: Any, how: Any, seed: int) -> None:
    inner = Recorded(make())
    env = wrap(inner, **how)
    tracker = PhaseTracker.of(env)
    for episode in range(2):  # one after the other
        assert_tracked(tracker, env, inner, seed + episode)


@pytest.mark.parametrize("make", [RandomEnv, lambda: InADict(RandomEnv()), choices])
def test_a_loaded_agent_knows_enough(make: Any, tmp_path: Path) -> None:
    inner = Recorded(make())
    masks = isinstance(inner.unwrapped, ChoiceEnv)
    env = belated.delay(inner, "2:5", action_masks=masks)
    agent = small_agent("sac", env)
    agent.save(tmp_path / "agent")
    agent = belated.Agent.load(tmp_path / "agent")
    space = inner.observation_space if isinstance(inner.env, InADict) else None
    assert_tracked(PhaseTracker.of(agent, space=space), env, inner, seed=3)


def test_exported_policies_act_on_it_as_the_agent_does(tmp_path: Path) -> None:
    agent = small_agent("sac", belated.delay(RandomEnv(), interval=4))
    tracker = PhaseTracker(max_length=4)
    rows = np.stack([tracker.reset(np.ones(3)), tracker.observe(np.ones(3), False)])
    assert (rows[:, -1] == [0, 0.25]).all()
    for kind, act in (("npz", npz_actions), ("onnx", onnx_actions)):
        agent.export(tmp_path / f"policy.{kind}")
        actions = act(tmp_path / f"policy.{kind}", rows)
        np.testing.assert_allclose(actions, agent.predict(rows)[0], rtol=0, atol=1e-6)
    assert actions[0] != actions[1]


def test_a_reward_that_is_overdue_is_refused_or_waited_for() -> None:
    strict, patient = PhaseTracker(3), PhaseTracker(3, overdue="hold")
    for tracker in (strict, patient):
        tracker.reset([0.0])
        assert [tracker.observe([0.0], False)[-1] for _ in range(2)] == [
            np.float32(1 / 3),
            np.float32(2 / 3),
        ]
    with pytest.raises(ValueError, match=r"for 3 steps.*overdue=\"hold\""):
        strict.observe([0.0], False)
    assert patient.observe([0.0], False)[-1] == np.float32(2 / 3)
    for tracker in (strict, patient):
        tracker.position = 5  # as a restart may leave it
    with pytest.raises(ValueError, match=r"for 6 steps"):
        strict.observe([0.0], False)
    assert patient.observe([0.0], False)[-1] == np.float32(2 / 3)
    assert patient.observe([0.0], True)[-1] == strict.observe([0.0], True)[-1] == 0


def test_what_does_not_fit_is_refused() -> None:
    env = belated.delay(RandomEnv(), interval=4)
    masked = PhaseTracker.of(belated.delay(choices(), 4, action_masks=True))
    with pytest.raises(ValueError, match=r"shape \(4,\), expected \(3,\).*without the phase"):
        PhaseTracker.of(env).reset(env.reset()[0])
    with pytest.raises(ValueError, match="Pass action_mask"):
        masked.reset(np.zeros(3))
    with pytest.raises(ValueError, match="has 2 entries, but there are 5 options"):
        masked.reset(np.zeros(3), [1, 1])
    with pytest.raises(ValueError, match="has no phase"):
        PhaseTracker.of(ScriptedEnv([1.0]))
    with pytest.raises(TypeError, match=r"Expected a belated\.Agent"):
        PhaseTracker.of(3)
    with pytest.raises(ValueError, match=r"observes 3 numbers, but Discrete\(2\) has 2"):
        PhaseTracker.of(small_agent("sac", env), space=gym.spaces.Discrete(2))
    with pytest.raises(ValueError, match="overdue"):
        PhaseTracker(4, overdue="wait")
