"""Every method on every kind of action and observation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from discrete import ChoiceEnv
from exported import npz_actions, onnx_actions
from gymnasium.spaces import Discrete, MultiBinary, MultiDiscrete
from gymnasium.vector import SyncVectorEnv
from gymnasium.wrappers.vector import RecordEpisodeStatistics
from scripted_envs import RandomEnv, ScriptedEnv
from small_agents import assert_same_weights, small_agent, weights

import belated
from belated import Agent
from belated.envs.actions import options_of
from belated.methods import METHODS

SPACES: dict[str, gym.Space[Any]] = {
    "discrete": Discrete(3, start=2),
    "multi-discrete": MultiDiscrete(np.array([[2], [3]]), np.int32, start=np.array([[1], [0]])),
    "multi-binary": MultiBinary((2, 1)),
}
FOR_DISCRETE = [name for name in METHODS if not name.startswith("td3")] + ["dqn-hc-pairwise-2"]
SELECTED = ["q-rnn", "hc-singleton", "crossq-hc-singleton", "dqn-hc-singleton", "rrd", "lirpg"]


def choice_env(kind: str, masked: bool = False, overlap: int = 0) -> gym.Env[Any, Any]:
    space = SPACES[kind]
    env = ChoiceEnv(space, masked, options_of(space))
    return belated.delay(env, interval="2:5", overlap=overlap, action_masks=masked)


@pytest.mark.parametrize(
    ("name", "kind", "masked"),
    [(name, "discrete", False) for name in FOR_DISCRETE]
    + [(name, "discrete", True) for name in ("hc-singleton", "crossq", "dqn", "ppo")]
    + [(name, "multi-discrete", True) for name in SELECTED]
    + [(name, "multi-binary", False) for name in ("sac", "dqn", "ppo")],
)
def test_contract(name: str, kind: str, masked: bool, tmp_path: Path) -> None:
    """It learns with finite losses, is reproducible, takes what is allowed, saves and loads."""
    overlap = 2 if kind == "multi-discrete" else 0
    agents = [small_agent(name, choice_env(kind, masked, overlap), seed=3) for _ in range(2)]
    agent = agents[0].learn(60)
    assert agent.metrics
    assert all(np.isfinite(float(value)) for value in agent.metrics.values())
    assert all(np.isfinite(leaf).all() for leaf in weights(agent))
    assert agent.learner.traces == 1
    assert_same_weights(agent, agents[1].learn(60))

    env, space = choice_env(kind, masked, overlap), SPACES[kind]
    agent.evaluate(2, env=env)  # (it refuses what it does not allow)
    agent.save(tmp_path / "agent")
    loaded = Agent.load(tmp_path / "agent")
    observations = np.stack([env.reset(seed=seed)[0] for seed in range(20)])
    for deterministic in (True, False):
        a, _ = agent.predict(observations, deterministic=deterministic)
        b, _ = loaded.predict(observations, deterministic=deterministic)
        np.testing.assert_array_equal(a, b)
        assert a.shape == (20, *space.shape)  # type: ignore[misc]
        assert space.contains(agent.predict(observations[0], deterministic=deterministic)[0])
    said = agent.spaces.to_env(agent.learner.mode(observations))
    np.testing.assert_array_equal(agent.predict(observations)[0], said)


@pytest.mark.parametrize("kind", list(SPACES))
@pytest.mark.parametrize("name", ["hc-singleton", "dqn", "crossq", "ppo"])
def test_exported_policies_take_the_same_actions(name: str, kind: str, tmp_path: Path) -> None:
    agent = small_agent(name, choice_env(kind, masked=True)).learn(60)
    env = choice_env(kind, masked=True)
    rows = np.stack([env.reset(seed=seed)[0] for seed in range(200)])
    expected = agent.predict(rows)[0].reshape(200, -1)
    assert len(np.unique(expected, axis=0)) > 1
    for kind_of_file, run in (("npz", npz_actions), ("onnx", onnx_actions)):
        path = tmp_path / f"policy.{kind_of_file}"
        agent.export(path)
        np.testing.assert_array_equal(run(path, rows), expected)


@pytest.mark.parametrize("name", ["dqn-hc-singleton", "sac", "ppo"])
def test_runs_go_on_exactly(name: str, tmp_path: Path) -> None:
    whole = small_agent(name, choice_env("multi-discrete", True), seed=1).learn(90)
    half = small_agent(name, choice_env("multi-discrete", True), seed=1).learn(47)
    half.save(tmp_path, replay=True)
    resumed = Agent.load(tmp_path, choice_env("multi-discrete", True)).learn(43)
    assert_same_weights(whole, resumed)


def test_environments_side_by_side(tmp_path: Path) -> None:
    """They are brought back to where they were, although each takes only what it allows."""

    def side_by_side() -> Any:
        return SyncVectorEnv([lambda: choice_env("discrete", True) for _ in range(3)])

    whole = small_agent("dqn", side_by_side()).learn(120)
    assert np.isfinite(float(whole.metrics["td_loss"]))
    small_agent("dqn", side_by_side()).learn(60).save(tmp_path, replay=True)
    assert_same_weights(whole, Agent.load(tmp_path, side_by_side()).learn(60))


class Dressed(gym.ObservationWrapper[Any, Any, Any]):
    """The same observations as a dictionary."""

    def __init__(self, env: Any) -> None:
        super().__init__(env)
        low, high = env.observation_space.low, env.observation_space.high
        parts = {"a": slice(0, 1), "b": slice(1, 3)}
        self.parts = parts
        self.observation_space = gym.spaces.Dict(
            {
                name: gym.spaces.Box(low[part], high[part], dtype=np.float64)
                for name, part in parts.items()
            }
        )

    def observation(self, observation: Any) -> Any:
        return {name: observation[part] for name, part in self.parts.items()}


@pytest.mark.parametrize("name", ["sac", "hc-singleton"])
def test_a_dictionary_is_learned_from_as_the_vector_it_holds(name: str) -> None:
    flat = small_agent(name, belated.delay(RandomEnv(), interval=3)).learn(60)
    dressed = small_agent(name, belated.delay(Dressed(RandomEnv()), interval=3)).learn(60)
    assert_same_weights(flat, dressed)


class Timed(gym.Wrapper[Any, Any, Any, Any]):
    """Says how long each step takes."""

    def __init__(self, env: Any, duration: float) -> None:
        super().__init__(env)
        self.duration = duration

    def step(self, action: Any) -> Any:
        *outcome, info = super().step(action)
        return *outcome, info | {"duration": self.duration}


@pytest.mark.parametrize("name", ["hc-singleton", "ppo", "lirpg"])
def test_durations_are_discounts(name: str) -> None:
    """One unit a step changes nothing; two are one with γ²."""

    def trained(env: Any, gamma: float) -> Agent:
        return small_agent(name, belated.delay(env, interval=3), gamma=gamma).learn(60)

    plain = trained(RandomEnv(), 0.9)
    assert_same_weights(plain, trained(Timed(RandomEnv(), 1.0), 0.9))
    twice = trained(Timed(RandomEnv(), 2.0), 0.9)
    pairs = zip(weights(twice), weights(trained(RandomEnv(), 0.9**2)), strict=True)
    for a, b in pairs:
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-5)
    assert any((a != b).any() for a, b in zip(weights(plain), weights(twice), strict=True))


@pytest.mark.parametrize("name", ["sac", "ircr-original", "ppo"])
def test_durations_are_saved(name: str, tmp_path: Path) -> None:
    def env() -> Any:
        return belated.delay(Timed(RandomEnv(), 2.5), interval=3)

    whole = small_agent(name, env()).learn(80)
    small_agent(name, env()).learn(47).save(tmp_path, replay=True)
    assert_same_weights(whole, Agent.load(tmp_path, env()).learn(33))


def test_evaluations_discount_what_was_revealed_by_the_time_before_it() -> None:
    late = belated.mark(Timed(ScriptedEnv([0, 0, 5.0, 0, 0, 7.0]), 2.0), period=3)
    outcome = small_agent("sac", late, gamma=0.9).evaluate(2, env=late)
    expected = 5 * 0.9**4 + 7 * 0.9**10
    np.testing.assert_allclose(outcome.discounted_returns, expected)
    np.testing.assert_allclose(outcome.revealed_returns, 12.0)


def test_a_negative_duration_is_refused() -> None:
    env = belated.delay(Timed(RandomEnv(), -1.0), interval=3)
    with pytest.raises(ValueError, match=r'step 1: info\["duration"\] is -1.0'):
        small_agent("sac", env).learn(5)


class Forbidding(ChoiceEnv):
    """Allows nothing from the fourth step on."""

    def _info(self) -> dict[str, Any]:
        info = super()._info()
        if self.time == 4:
            info["action_mask"] = np.zeros_like(info["action_mask"])
        return info


def test_a_mask_that_allows_nothing_names_the_step() -> None:
    def forbidding() -> gym.Env[Any, Any]:
        env = Forbidding(Discrete(3), True, (3,))
        return belated.delay(env, interval=3, action_masks=True)

    with pytest.raises(ValueError, match=r"episode \d+, step 4: .*allows no action at all"):
        small_agent("sac", forbidding()).learn(100)
    report = belated.check_delayed_env(forbidding(), steps=100)
    assert "action-mask" in {finding.code for finding in report.findings}


def test_masks_must_fit() -> None:
    with pytest.raises(ValueError, match="Only discrete actions can be masked"):
        belated.delay(RandomEnv(), interval=3, action_masks=True)
    env = belated.delay(ChoiceEnv(Discrete(3), False, (3,)), interval=3, action_masks=True)
    with pytest.raises(ValueError, match=r'info\["action_mask"\] is missing'):
        env.reset()
    env = belated.delay(ChoiceEnv(Discrete(4), True, (3,)), interval=3, action_masks=True)
    with pytest.raises(ValueError, match="has 3 entries, but there are 4"):
        env.reset()


def test_a_mask_may_be_missing_after_the_end_alone() -> None:
    """A truncated episode's last state has a value, so its actions matter."""

    class Cut(gym.Wrapper[Any, Any, Any, Any]):
        def step(self, action: Any) -> Any:
            observation, reward, terminated, truncated, info = super().step(action)
            info = {} if terminated or truncated else info
            return observation, reward, terminated and ends, truncated or not ends, info

    for ends in (True, False):
        env = ChoiceEnv(Discrete(3), True, (3,))
        delayed_env = belated.delay(Cut(env), interval=3, action_masks=True)
        delayed_env.reset(seed=0)
        env.rewards, env.terminates = [1.0], True
        action = np.flatnonzero(env.allowed)[0]
        if ends:
            assert delayed_env.step(action)[0][3:6].all()
        else:
            with pytest.raises(ValueError, match="does not terminate"):
                delayed_env.step(action)


class Dead(gym.Wrapper[Any, Any, Any, Any]):
    """Allows nothing in terminal states."""

    def step(self, action: Any) -> Any:
        *outcome, terminated, truncated, info = super().step(action)
        if terminated:
            info["action_mask"] = np.zeros_like(info["action_mask"])
        return *outcome, terminated, truncated, info


def test_terminal_states_may_allow_nothing() -> None:
    def env() -> Any:
        inner = Dead(ChoiceEnv(Discrete(3), True, (3,)))
        return belated.delay(inner, interval=3, action_masks=True)

    envs = RecordEpisodeStatistics(SyncVectorEnv([env, env]))
    assert np.isfinite(float(small_agent("dqn", envs).learn(90).metrics["td_loss"]))
    assert belated.check_delayed_env(env(), steps=100).ok


def test_durations_of_environments_side_by_side() -> None:
    def timed(duration: float) -> Any:
        return lambda: belated.delay(Timed(RandomEnv(), duration), interval=3)

    agent = small_agent("sac", SyncVectorEnv([timed(1), timed(2.5)])).learn(40)
    experience: Any = agent.loop.experience
    assert [set(ring.duration[:5]) for ring in experience.replay.rings] == [{1.0}, {2.5}]


@pytest.mark.parametrize("name", ["dqn-hc-singleton", "crossq"])
def test_masks_are_not_normalised(name: str) -> None:
    env = choice_env("discrete", masked=True)
    agent = small_agent(name, env, normalize_observations=True).learn(60)
    agent.evaluate(2, env=choice_env("discrete", masked=True))
    assert agent.learner.state.actor.moments.mean.shape == (3,)


def test_environments_that_look_actions_up() -> None:
    agent = small_agent("dqn", belated.make("FrozenLake-v1", interval=5)).learn(60)
    agent.evaluate(2)


@pytest.mark.parametrize("kind", list(SPACES))
def test_masked_environments_can_be_checked(kind: str) -> None:
    report = belated.check_delayed_env(choice_env(kind, masked=True), steps=300)
    assert report.ok, report
    assert report.intervals > 20


def test_masks_that_nobody_asked_for_are_noticed() -> None:
    env = belated.delay(gym.make("Taxi-v4"), interval=5)
    with pytest.warns(UserWarning, match="action_masks=True"):
        env.reset(seed=0)
    made = belated.make("Taxi-v4", interval=5)
    assert made.get_wrapper_attr("interval_spec").action_masks
    assert made.observation_space.shape == (500 + 6 + 1,)
    assert belated.check_delayed_env(made, steps=200).ok
    plain = belated.make("CartPole-v1", interval=5)
    assert not plain.get_wrapper_attr("interval_spec").action_masks
