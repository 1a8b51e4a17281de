"""What the agent promises."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.wrappers import TimeLimit
from scripted_envs import RandomEnv, ScriptedEnv
from small_agents import (
    REPLAY,
    assert_same_weights,
    delayed,
    small_agent,
    weights,
)

import belated
from belated import Agent, Evaluate, Method, StopWhen
from belated.credit.base import Unlearned
from belated.experience.batch import IntervalBatch
from belated.experience.on_policy import OnPolicy
from belated.methods import PPO, SAC, ReplayTraining, Rudder, find_method
from belated.parts import override
from belated.training.evaluation import Evaluation
from belated.training.horizon import too_short_sighted


class ReplayOnly(Unlearned):
    def reward(self, state: None, batch: IntervalBatch) -> Any:
        return batch.reward


def test_actions_are_clipped_for_the_environment_but_remembered_as_they_were() -> None:
    class Watched(gym.Wrapper[Any, Any, Any, Any]):
        seen: ClassVar[list[float]] = []

        def step(self, action: Any) -> Any:
            self.seen.append(float(action[0]))
            return super().step(action)

    env = belated.delay(Watched(gym.make("Pendulum-v1")), interval=5)
    agent = small_agent("ppo", env, rollout_steps=100).learn(99)
    assert isinstance(agent.loop.experience, OnPolicy)
    actions = agent.loop.experience.rollout.action[:99, 0, 0]
    assert np.abs(actions).max() > 1
    np.testing.assert_allclose(Watched.seen, np.clip(2 * actions, -2, 2), atol=1e-6)


def test_actions_fill_the_environments_bounds() -> None:
    agent = Agent("sac", belated.delay(gym.make("Pendulum-v1"), interval=5), **REPLAY)
    observations = np.random.default_rng(0).normal(size=(500, 4))
    actions, _ = agent.predict(observations, deterministic=False)
    assert np.abs(actions).max() > 1.5
    assert (np.abs(actions) <= 2).all()
    one, state = agent.predict(observations[0])
    assert one.shape == (1,)
    assert state is None


def test_evaluation_tells_dense_and_revealed_returns() -> None:
    env = belated.delay(TimeLimit(ScriptedEnv([1.0] * 9), 100), interval=4, reward="max")
    evaluation = small_agent(env=env).evaluate(episodes=3, env=env)
    assert evaluation.returns.tolist() == [9.0] * 3
    assert evaluation.revealed_returns.tolist() == [30.0] * 3
    assert evaluation.lengths.tolist() == [9] * 3


def test_an_environment_without_dense_rewards_is_evaluated_by_the_revealed_ones() -> None:
    env, second = (belated.mark(ScriptedEnv([0, 0, 5.0, 0, 0, 7.0]), period=3) for _ in range(2))
    agent = small_agent(env=env)
    agent.learn(60, callback=Evaluate(every=30, episodes=1, env=second))
    assert [row["return_mean"] for row in agent.history] == [12.0, 12.0]
    with pytest.raises(ValueError, match="dense_reward"):
        small_agent("oracle", env=env).learn(10)


@pytest.mark.parametrize("name", ["hc-singleton", "hc-pairwise-1", "hc-rnn", "ircr", "td3-rrd"])
def test_credit_has_one_number_for_each_step(name: str) -> None:
    agent = small_agent(name, delayed(overlap=2)).learn(60)
    episode = agent.play(seed=4)
    credit = agent.credit(episode)
    assert credit.shape == (len(episode.steps),)
    assert np.isfinite(credit).all()
    with pytest.raises(ValueError, match="hc-singleton"):
        small_agent("sac").credit(episode)


def test_rudders_credit_is_the_redistributed_reward() -> None:
    agent = small_agent("rudder").learn(60)
    episode = agent.play(seed=4)
    credit = agent.credit(episode)
    assert credit.shape == (len(episode.steps),)
    assert credit.sum() == pytest.approx(episode.revealed_return, rel=1e-4, abs=1e-5)
    assert (credit != [step.reward for step in episode.steps]).any()
    env = belated.mark(ScriptedEnv([0, 0, 5.0, 0, 0]), period=3)
    agent = small_agent("rudder", env)
    credit = agent.credit(agent.play(env=env))
    assert credit[:3].sum() == pytest.approx(5, rel=1e-5)
    assert np.isnan(credit).tolist() == [False] * 3 + [True] * 2


def test_callbacks_log_stop_and_see_the_agent(tmp_path: Path) -> None:
    seen: list[int] = []

    def remember(agent: Agent) -> None:
        seen.append(agent.steps)

    agent = small_agent()
    stop = StopWhen(lambda agent: len(agent.history) == 2)
    agent.learn(1_000, callback=[remember, Evaluate(every=40, episodes=1), stop])
    assert seen == list(range(1, 81))
    assert [row["step"] for row in agent.history] == [40, 80]
    agent.learn(1_000, callback=lambda agent: agent.steps < 90)
    assert agent.steps == 90


@pytest.mark.parametrize("theirs", [False, True])
@pytest.mark.parametrize("told", [(3, 1, 2, 3), (1, 3, 2, 0), (1, 2, 3, 3), (1, 2, 0, 4)])
def test_the_agent_of_the_best_evaluation_is_kept(
    told: tuple[int, ...], theirs: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first of the best, whoever evaluates, also if the run was stopped in between."""
    seen: dict[int, list[Any]] = {}

    def evaluate(agent: Agent, *_: Any, **__: Any) -> Evaluation:
        seen[agent.steps] = weights(agent)
        value = np.array([told[agent.steps // 10 - 1]])
        return Evaluation(-value, value, value, np.array([1]))

    monkeypatch.setattr(Agent, "evaluate", evaluate)
    how: dict[str, Any] = {"out": tmp_path, "log_every": 5, "eval_every": None if theirs else 10}
    mine = [Evaluate(every=10, episodes=1)] if theirs else []
    small_agent(learning_starts=5).learn(23, callback=mine, **how)
    Agent.load(tmp_path, delayed()).learn(17, callback=mine, **how)
    kept = Agent.load(tmp_path / "best")
    assert kept.steps == 10 * (1 + told.index(max(told)))
    for a, b in zip(weights(kept), seen[kept.steps], strict=True):
        np.testing.assert_array_equal(a, b)


def test_only_its_own_agents_are_kept(tmp_path: Path) -> None:
    """A fresh agent replaces what another one left; a folder of other files is refused at once."""
    first = small_agent(learning_starts=5).learn(10, out=tmp_path / "run", eval_every=10)
    again = belated.KeepBest(tmp_path / "run" / "best")
    other = small_agent(learning_starts=5, seed=1).learn(12, callback=again, eval_every=12)
    assert Agent.load(again.folder).steps == other.steps != first.steps
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").touch()
    with pytest.raises(ValueError, match="something else than a saved agent"):
        other.learn(10, callback=belated.KeepBest(tmp_path / "mine"))
    assert other.steps == 12
    other.learn(1, callback=[again, lambda agent: agent.log({"return_mean": 1.0})])


def test_what_an_agent_reached_elsewhere_is_not_what_was_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Evaluated at 9 before it has a folder, then at 2, and at 3 when the run goes on."""
    told = iter([9, 2, 3])

    def evaluate(*_: Any, **__: Any) -> Evaluation:
        value = np.array([next(told)])
        return Evaluation(value, value, value, np.array([1]))

    monkeypatch.setattr(Agent, "evaluate", evaluate)
    agent = small_agent(learning_starts=5).learn(10, eval_every=10)
    agent.learn(10, out=tmp_path, eval_every=10)
    Agent.load(tmp_path, delayed()).learn(10, out=tmp_path)
    assert Agent.load(tmp_path / "best").steps == 30


def test_a_run_folder_holds_progress_and_checkpoint(tmp_path: Path) -> None:
    agent = small_agent()
    how: dict[str, Any] = {"out": tmp_path, "eval_every": 25, "eval_episodes": 2}
    agent.learn(60, tensorboard=True, **how)
    header, *rows = (tmp_path / "progress.csv").read_text().splitlines()
    names = ["revealed_return_mean", "discounted_return_mean", "length_mean"]
    assert header.startswith(",".join(["step,return_mean,return_std", *names]))
    assert [row.split(",")[0] for row in rows] == ["25", "50", "60"]
    assert list((tmp_path / "tensorboard").glob("events*"))
    loaded = Agent.load(tmp_path, delayed())
    assert loaded.steps == 60
    loaded.learn(20, **how)
    rows = (tmp_path / "progress.csv").read_text().splitlines()[1:]
    assert [row.split(",")[0] for row in rows] == ["25", "50", "60", "75", "80"]


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Agent("sax", delayed()), "There are sac, oracle"),
        (lambda: Agent("HC_Singelton", delayed()), "Did you mean hc-singleton?"),
        (lambda: Agent("hc-pairwise-0", delayed()), "no method"),
        (lambda: Agent("sac", delayed(), batchsize=3), "no hyperparameter batchsize"),
        (lambda: Agent("sac", delayed(), batch_size=0), "batch_size must be at least 1"),
        (lambda: Agent("sac", delayed(), seed=-1), "seed must be at least 0"),
        (lambda: Agent("sac", delayed(), num_envs=0), "num_envs must be at least 1"),
        (lambda: Agent("sac", gym.make("Pendulum-v1")), r"belated\.delay"),
        (lambda: Agent("sac", belated.DelayReward(RandomEnv(), 5)), "IntervalPhase"),
        (lambda: Agent("sac", TimeLimit(delayed(), 10)), "A TimeLimit is outside"),
        (lambda: Agent("td3", belated.delay(gym.make("CartPole-v1"), 5)), "cannot be discrete"),
        (lambda: Agent("dqn", delayed()), "must be discrete"),
        (lambda: Agent("sac", delayed(), replay_size=5), "at least"),
        (lambda: SAC(credit=Rudder()), "SAC needs a credit rule for a replay, not Rudder"),  # type: ignore[arg-type]
        (lambda: PPO(credit=ReplayOnly()), "PPO needs a credit rule for rollouts, not "),  # type: ignore[arg-type]
        (lambda: Method(PPO(), ReplayTraining()), "PPO is trained by RolloutTraining, not Replay"),
        (lambda: Agent("ppo", delayed(), learning_starts=5), "no hyperparameter learning_starts"),
        (lambda: small_agent("ppo", minibatches=25), "cannot be split into 25 minibatches"),
        (lambda: small_agent("ppo", batch_size=0), "no hyperparameter batch_size"),
        (lambda: Agent("sac", delayed(), precision="half"), "one of float32, bfloat16, got 'half'"),
        (lambda: Agent("ppo", delayed(), precision="bfloat16"), "no hyperparameter precision"),
        (lambda: small_agent("rudder", lessons=0), "lessons must be at least 1"),
        (lambda: small_agent().learn(-1), "total_timesteps"),
        (lambda: small_agent().learn(1.5), "total_timesteps must be a whole number, got 1.5"),
        (lambda: small_agent().predict(np.zeros(3)), "observation of 4 numbers"),
        (lambda: small_agent(env=belated.delay(RandomEnv(), 5)).evaluate(), "another"),
        (lambda: small_agent(env=belated.delay(RandomEnv(), 5), num_envs=2), "another"),
    ],
)
def test_bad_input_is_refused_with_what_to_do(make: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        make()


def test_an_environment_that_was_touched_between_two_calls_is_told() -> None:
    env = belated.delay(TimeLimit(ScriptedEnv([1.0] * 40), 100), interval=20)
    agent = small_agent(env=env).learn(7)
    env.reset()
    with pytest.raises(ValueError, match="stepped or reset elsewhere"):
        agent.learn(52)


def test_wrappers_that_move_the_phase_are_refused() -> None:
    env = gym.wrappers.FlattenObservation(delayed())
    with pytest.raises(ValueError, match="FlattenObservation changes observations outside"):
        small_agent(env=env)


def test_an_environment_that_cannot_be_made_again_needs_a_second_one(tmp_path: Path) -> None:
    agent = small_agent(env=belated.delay(RandomEnv(), interval="2:5"))
    with pytest.raises(ValueError, match="Cannot make another"):
        agent.learn(60, out=tmp_path)
    assert agent.steps == 0
    agent.learn(60, out=tmp_path, eval_env=belated.delay(RandomEnv(), interval="2:5"))
    assert [row["step"] for row in agent.history] == [60]


def test_anything_can_be_logged(tmp_path: Path) -> None:
    agent = small_agent()
    agent.learn(40, out=tmp_path, callback=lambda agent: agent.log({"mine": np.float32(1)}))
    assert agent.history[0]["mine"] == 1.0
    assert Agent.load(tmp_path).history == agent.history
    with pytest.raises(ValueError, match="another run"):
        small_agent().learn(40, out=tmp_path)


def test_lists_and_large_seeds_are_fine() -> None:
    agent = small_agent(hidden=[8, 8], units=[4], seed=2**40)
    assert agent.method.backbone.hidden == (8, 8)  # type: ignore[attr-defined]


def test_unrevealed_tails_have_no_credit() -> None:
    env = belated.mark(ScriptedEnv([0, 0, 5.0, 0, 0]), period=3)
    credit = small_agent(env=env).credit(small_agent(env=env).play(env=env))
    assert np.isnan(credit).tolist() == [False] * 3 + [True] * 2


class Acting(RandomEnv):
    """Takes actions of any shape."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        super().__init__()
        bounds = np.arange(1.0, 1 + math.prod(shape)).reshape(shape)
        self.action_space = gym.spaces.Box(-bounds, 2 * bounds, shape, np.float64)

    def step(self, action: Any) -> Any:
        assert action in self.action_space
        return super().step(np.ravel(action)[:1])


@pytest.mark.parametrize("shape", [(2, 2), (), (1, 2, 1)], ids=str)
def test_actions_of_any_shape_are_learned_like_flat_ones(
    shape: tuple[int, ...], tmp_path: Path
) -> None:
    size = math.prod(shape)
    agents = [
        small_agent("sac", belated.delay(Acting(each), interval="2:5")).learn(60)
        for each in (shape, (size,))
    ]
    assert_same_weights(*agents)
    row = np.zeros(agents[0].shape.observation_size, np.float32)
    for deterministic in (True, False):
        alone, flat = (agent.predict(row, deterministic=deterministic)[0] for agent in agents)
        batch, _ = agents[0].predict(np.stack([row, row]))
        assert alone.shape == shape
        assert batch.shape == (2, *shape)
        np.testing.assert_array_equal(alone.reshape(-1), flat)
    agents[0].save(tmp_path / "agent", replay=True)
    again = Agent.load(tmp_path / "agent", belated.delay(Acting(shape), interval="2:5"))
    assert_same_weights(again.learn(20), agents[1].learn(20))
    with pytest.raises(ValueError, match="another kind of environment"):
        Agent.load(tmp_path / "agent", belated.delay(Acting((size,)), interval="2:5"))


@pytest.mark.parametrize("length", [100, 101, 10_000])
def test_a_discount_that_does_not_reach_the_rewards_is_warned_of(length: int) -> None:
    for name in ("sac", "td3", "dqn-hc-singleton", "q-rnn", "crossq-hc-singleton", "ppo", "lirpg"):
        warning = too_short_sighted(find_method(name), length)
        assert (warning is not None) == (length > 100)
        if warning is not None:  # and what it says to do is enough
            gamma = float(re.findall(r"Set gamma=(0\.\d+)", warning)[0])
            assert too_short_sighted(override(find_method(name), {"gamma": gamma}), length) is None
    # These pay for steps at once.
    for name in ("rrd", "crossq-hc-rrd", "ircr", "oracle", "dqn-oracle", "rudder", "ppo-oracle"):
        assert too_short_sighted(find_method(name), length) is None


def test_an_agent_warns_of_such_a_discount() -> None:
    env = belated.delay(gym.make("Pendulum-v1"), interval=90, overlap=20)
    with pytest.warns(UserWarning, match="up to 110 steps late"):
        belated.Agent("sac", env, hidden=(8,))
    belated.Agent("sac", env, hidden=(8,), gamma=0.999)
