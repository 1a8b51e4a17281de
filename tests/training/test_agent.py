"""What every method must be able to do, and what the agent promises."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any, ClassVar

import gymnasium as gym
import jax
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode
from gymnasium.wrappers import TimeLimit
from scripted_envs import RandomEnv, ScriptedEnv

import belated
from belated import Agent, Evaluate, Method, StopWhen
from belated.credit.base import Fixed
from belated.methods import METHODS, PPO, SAC, Rudder, find_method
from belated.replay import IntervalBatch
from belated.training.off_policy import OffPolicy
from belated.training.on_policy import OnPolicy

SMALL: dict[str, Any] = {
    "hidden": (8, 8), "batch_size": 8, "learning_starts": 30, "replay_size": 500,
}  # fmt: skip
ON_POLICY: dict[str, Any] = {
    "hidden": (8, 8), "rollout_steps": 24, "epochs": 2, "minibatches": 4, "learning_starts": 0,
}  # fmt: skip
NAMES = [*METHODS, "hc-pairwise-2"]

if "scripted/Random-v0" not in gym.registry:
    gym.register("scripted/Random-v0", entry_point="scripted_envs:RandomEnv")


class ReplayOnly(Fixed):
    def reward(self, state: None, batch: IntervalBatch) -> Any:
        return batch.reward


def delayed(interval: Any = "2:5", **how: Any) -> gym.Env[Any, Any]:
    return belated.delay(gym.make("scripted/Random-v0"), interval=interval, **how)


def small_agent(method: str | Method = "hc-singleton", env: Any = None, **changes: Any) -> Agent:
    found = find_method(method) if isinstance(method, str) else method
    small = ON_POLICY if found.backbone.on_policy else SMALL
    return Agent(found, delayed() if env is None else env, **small | changes)


def weights(agent: Agent) -> list[Any]:
    return [np.asarray(leaf) for leaf in agent.learner.leaves]


def assert_same_weights(first: Agent, second: Agent) -> None:
    for a, b in zip(weights(first), weights(second), strict=True):
        np.testing.assert_array_equal(a, b)


class Spoiled(gym.Wrapper[Any, Any, Any, Any]):
    """Tells another dense reward."""

    def step(self, action: Any) -> Any:
        *result, info = super().step(action)
        return *result, info | {"dense_reward": info["dense_reward"] + 1}


@pytest.mark.parametrize(
    ("name", "overlap"),
    [(name, 0) for name in NAMES]
    # The overlap is the critic's and the credit rule's business, not the backbone's.
    + [(name, 2) for name in NAMES if name.startswith(("q-", "hc-", "rrd", "rudder", "sac"))],
)
def test_contract(name: str, overlap: int, tmp_path: Path) -> None:
    """What every method promises.

    It learns with finite losses, is traced once, is reproducible, saves and loads, and sees no
    dense reward unless it is an oracle.
    """
    agents = [small_agent(name, delayed(overlap=overlap), seed=3).learn(60) for _ in range(2)]
    agent = agents[0]
    metrics = {metric: float(value) for metric, value in agent._metrics.items()}
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


def test_another_seed_gives_another_agent() -> None:
    first, second = (small_agent(seed=seed).learn(60) for seed in (1, 2))
    assert any((a != b).any() for a, b in zip(weights(first), weights(second), strict=True))


def test_rounded_products_are_asked_for_and_remembered(tmp_path: Path) -> None:
    exact = small_agent("sac").learn(40)
    rounded = small_agent("sac", precision="bfloat16").learn(40)
    rounded.save(tmp_path / "agent")
    assert Agent.load(tmp_path / "agent").method.precision == "bfloat16"
    pairs = [(a, b) for a, b in zip(weights(exact), weights(rounded), strict=True)]
    assert any((a != b).any() for a, b in pairs)
    assert all(a.dtype == b.dtype == np.float32 for a, b in pairs if a.dtype.kind == "f")


@pytest.mark.parametrize("name", ["sac", "hc-pairwise-1", "td3-q-rnn"])
def test_updates_in_one_go_equal_single_ones(name: str) -> None:
    agent, scanned = small_agent(name).learn(60), small_agent(name).learn(60)
    assert isinstance(agent._experience, OffPolicy)
    batches = [agent._experience.sample() for _ in range(4)]
    for batch in batches:
        agent.learner.update(batch)
    scanned.learner.update_many(batches)
    for a, b in zip(weights(agent), weights(scanned), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def test_learning_in_two_parts_is_learning_in_one() -> None:
    whole = small_agent().learn(90)
    parts = small_agent().learn(37).learn(53)
    assert parts.steps == 90
    assert_same_weights(whole, parts)


@pytest.mark.parametrize(
    "name", ["hc-rnn", "td3", "rrd", "ircr-original", "ppo", "rudder", "lirpg"]
)
@pytest.mark.parametrize("at", [20, 47, 61])
def test_a_resumed_run_is_bit_equal_to_one_that_never_stopped(
    name: str, at: int, tmp_path: Path
) -> None:
    whole = small_agent(name, seed=5).learn(100)
    small_agent(name, seed=5).learn(at).save(tmp_path / "agent", replay=True)
    resumed = Agent.load(tmp_path / "agent", delayed())
    assert resumed.steps == at
    resumed.learn(100 - at)
    assert_same_weights(whole, resumed)


@pytest.mark.parametrize("name", ["hc-singleton", "ppo", "rudder"])
def test_a_resumed_run_with_several_environments_is_bit_equal_too(
    name: str, tmp_path: Path
) -> None:
    whole = small_agent(name, seed=5, num_envs=3).learn(120)
    small_agent(name, seed=5, num_envs=3).learn(60).save(tmp_path / "agent", replay=True)
    assert_same_weights(whole, Agent.load(tmp_path / "agent", delayed()).learn(60))


def test_an_environment_that_does_not_repeat_itself_is_told_on_resume(tmp_path: Path) -> None:
    small_agent(seed=5).learn(60).save(tmp_path / "agent", replay=True)
    with pytest.raises(RuntimeError, match=r"another observation|elsewhere"):
        Agent.load(tmp_path / "agent", belated.delay(ScriptedEnv([1.0] * 40), interval="2:5"))


@pytest.mark.filterwarnings("ignore:os.fork")  # Gymnasium's workers use no JAX
@pytest.mark.parametrize("vectorization", ["sync", "async"])
@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_vector_environments_work_in_every_autoreset_mode(
    mode: AutoresetMode, vectorization: str
) -> None:
    envs = gym.make_vec(
        "scripted/Random-v0",
        num_envs=3,
        vectorization_mode=vectorization,
        vector_kwargs={"autoreset_mode": mode},
        wrappers=[lambda env: belated.delay(env, interval="2:5", overlap=1)],  # type: ignore[list-item, return-value]
    )
    agent = small_agent("hc-singleton", envs).learn(150)
    assert 150 <= agent.steps < 153
    assert isinstance(agent._experience, OffPolicy)
    lanes = agent._experience.replay._lanes
    for lane in lanes:
        assert lane.written > 30
    envs.close()


@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_rollouts_work_in_every_autoreset_mode(mode: AutoresetMode, tmp_path: Path) -> None:
    first, second = (
        gym.make_vec(
            "scripted/Random-v0",
            num_envs=3,
            vectorization_mode="sync",
            vector_kwargs={"autoreset_mode": mode},
            wrappers=[lambda env: belated.delay(env, interval="2:5")],  # type: ignore[list-item, return-value]
        )
        for _ in range(2)
    )
    agent = small_agent("ppo", first).learn(150)
    assert np.isfinite(float(agent._metrics["value_loss"]))
    agent.save(tmp_path / "agent", replay=True)
    loaded = Agent.load(tmp_path / "agent", second).learn(60)
    assert loaded.steps > agent.steps
    assert all(np.isfinite(leaf).all() for leaf in weights(loaded))


def test_actions_are_clipped_for_the_environment_but_remembered_as_they_were() -> None:
    class Watched(gym.Wrapper[Any, Any, Any, Any]):
        seen: ClassVar[list[float]] = []

        def step(self, action: Any) -> Any:
            self.seen.append(float(action[0]))
            return super().step(action)

    env = belated.delay(Watched(gym.make("Pendulum-v1")), interval=5)
    agent = small_agent("ppo", env, rollout_steps=100).learn(99)
    assert isinstance(agent._experience, OnPolicy)
    actions = agent._experience.rollout.action[:99, 0, 0]
    assert np.abs(actions).max() > 1
    np.testing.assert_allclose(Watched.seen, np.clip(2 * actions, -2, 2), atol=1e-6)


def test_a_vector_environment_with_autoreset_disabled_learns_as_a_list_does() -> None:
    envs = gym.make_vec(
        "scripted/Random-v0",
        num_envs=2,
        vectorization_mode="sync",
        vector_kwargs={"autoreset_mode": AutoresetMode.DISABLED},
        wrappers=[lambda env: belated.delay(env, interval="2:5")],  # type: ignore[list-item, return-value]
    )
    assert_same_weights(small_agent(env=envs).learn(100), small_agent(num_envs=2).learn(100))


def test_actions_fill_the_environments_bounds() -> None:
    agent = Agent("sac", belated.delay(gym.make("Pendulum-v1"), interval=5), **SMALL)
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


def test_a_run_folder_holds_progress_and_checkpoint(tmp_path: Path) -> None:
    agent = small_agent()
    how: dict[str, Any] = {"out": tmp_path, "eval_every": 25, "eval_episodes": 2}
    agent.learn(60, tensorboard=True, **how)
    header, *rows = (tmp_path / "progress.csv").read_text().splitlines()
    assert header.startswith("step,return_mean,return_std,revealed_return_mean,length_mean,")
    assert [row.split(",")[0] for row in rows] == ["25", "50", "60"]
    assert list((tmp_path / "tensorboard").glob("events*"))
    loaded = Agent.load(tmp_path, delayed())
    assert loaded.steps == 60
    loaded.learn(20, **how)
    rows = (tmp_path / "progress.csv").read_text().splitlines()[1:]
    assert [row.split(",")[0] for row in rows] == ["25", "50", "60", "75", "80"]


def test_ctrl_c_stops_between_two_steps_and_loses_nothing(tmp_path: Path) -> None:
    agent = small_agent()

    def interrupt(agent: Agent) -> None:
        if agent.steps == 45:
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        agent.learn(1_000, callback=interrupt, out=tmp_path)
    resumed = Agent.load(tmp_path, delayed()).learn(15)
    assert_same_weights(resumed, small_agent().learn(60))


def test_loading_runs_no_code(tmp_path: Path) -> None:
    small_agent().learn(40).save(tmp_path / "agent", replay=True)
    files = {file.suffix for file in (tmp_path / "agent").rglob("*") if file.is_file()}
    assert files == {".json", ".safetensors", ".npy"}
    manifest = tmp_path / "agent" / "manifest.json"
    document = json.loads(manifest.read_text())
    document["method"]["critic"]["type"] = "os.system"
    manifest.write_text(json.dumps(document))
    with pytest.raises(ValueError, match=r"os\.system"):
        Agent.load(tmp_path / "agent")


def test_saving_again_replaces_the_old_agent_whole(tmp_path: Path) -> None:
    agent = small_agent().learn(40)
    agent.save(tmp_path / "agent", replay=True)
    agent.learn(40).save(tmp_path / "agent")
    assert not (tmp_path / "agent" / "replay").exists()
    assert Agent.load(tmp_path / "agent").steps == 80
    assert [path.name for path in tmp_path.iterdir()] == ["agent"]


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Agent("sax", delayed()), "There are sac, oracle"),
        (lambda: Agent("hc-pairwise-0", delayed()), "no method"),
        (lambda: Agent("sac", delayed(), batchsize=3), "no hyperparameter batchsize"),
        (lambda: Agent("sac", delayed(), batch_size=0), "batch_size must be at least 1"),
        (lambda: Agent("sac", delayed(), seed=-1), "seed must be at least 0"),
        (lambda: Agent("sac", delayed(), num_envs=0), "num_envs must be at least 1"),
        (lambda: Agent("sac", gym.make("Pendulum-v1")), r"belated\.delay"),
        (lambda: Agent("sac", belated.DelayReward(RandomEnv(), 5)), "IntervalPhase"),
        (lambda: Agent("sac", TimeLimit(delayed(), 10)), "A TimeLimit is outside"),
        (lambda: Agent("sac", belated.delay(gym.make("CartPole-v1"), 5)), "Box with finite"),
        (lambda: Agent("sac", delayed(), replay_size=5), "at least"),
        (lambda: Method(SAC(), credit=Rudder()), "SAC learns from a replay, for which Rudder"),
        (lambda: Method(PPO(), credit=ReplayOnly()), "PPO learns from rollouts, for which Replay"),
        (lambda: Method(PPO()), "set learning_starts=0"),
        (lambda: small_agent("ppo", minibatches=25), "cannot be split into 25 minibatches"),
        (lambda: small_agent("ppo", batch_size=0), "batch_size must be at least 1"),
        (lambda: Agent("sac", delayed(), precision="half"), "there are float32 and bfloat16"),
        (lambda: Agent("ppo", delayed(), precision="bfloat16"), "PPO learns in float32 only"),
        (lambda: small_agent("rudder", lessons=0), "lessons must be at least 1"),
        (lambda: small_agent().learn(0), "total_timesteps"),
        (lambda: small_agent().predict(np.zeros(3)), "observation of 4 numbers"),
        (lambda: small_agent(env=belated.delay(RandomEnv(), 5)).evaluate(), "another"),
        (lambda: small_agent(env=belated.delay(RandomEnv(), 5), num_envs=2), "another"),
    ],
)
def test_bad_input_is_refused_with_what_to_do(make: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        make()


def test_an_agent_without_environment_can_only_predict(tmp_path: Path) -> None:
    small_agent().save(tmp_path / "agent")
    loaded = Agent.load(tmp_path / "agent")
    with pytest.raises(ValueError, match="no environment"):
        loaded.learn(10)
    with pytest.raises(ValueError, match="Pass an environment"):
        loaded.evaluate()
    with pytest.raises(ValueError, match="another kind of environment"):
        Agent.load(tmp_path / "agent", delayed(interval=9))
    with pytest.raises(FileNotFoundError, match="no saved agent"):
        Agent.load(tmp_path / "nothing")


def test_methods_are_what_the_papers_table_says() -> None:
    assert find_method("hc-pairwise-1").critic.regularizer == 0.5  # type: ignore[attr-defined]
    assert find_method("hc-singleton").critic.regularizer == 0.05  # type: ignore[attr-defined]
    shared = find_method("sac")
    assert (shared.hidden, shared.batch_size) == ((256, 256), 128)
    assert {"td3", "td3-oracle", "td3-hc-rnn", "td3-q-rnn"} <= set(METHODS)
    for method in METHODS.values():
        document = json.loads(json.dumps(belated.methods.to_json(method)))
        assert belated.methods.from_json(document) == method


def test_whole_episode_intervals_work() -> None:
    env = belated.mark(
        TimeLimit(ScriptedEnv([0.0] * 299 + [1.0]), 300), max_length=300, period="episode"
    )
    agent = small_agent("hc-singleton", env, learning_starts=300, replay_size=2_000)
    agent.learn(605)
    assert np.isfinite(float(agent._metrics["td_loss"]))
    assert isinstance(agent._metrics["td_loss"], jax.Array)


def test_whole_episode_intervals_work_for_rudder() -> None:
    env = belated.mark(
        TimeLimit(ScriptedEnv([0.0] * 59 + [1.0]), 60), max_length=60, period="episode"
    )
    agent = small_agent("rudder", env, rollout_steps=100).learn(125)
    assert np.isfinite(float(agent._metrics["rudder_error"]))


def test_vector_environments_whose_episodes_end_together_work() -> None:
    envs = gym.make_vec(
        "Pendulum-v1",
        num_envs=2,
        vectorization_mode="sync",
        vector_kwargs={"autoreset_mode": AutoresetMode.SAME_STEP},
        wrappers=[lambda env: belated.delay(TimeLimit(env, 12), interval=5)],  # type: ignore[list-item, return-value]
    )
    assert small_agent("sac", envs).learn(60).steps == 60


def test_an_environment_that_was_touched_between_two_calls_is_told() -> None:
    env = belated.delay(TimeLimit(ScriptedEnv([1.0] * 40), 100), interval=20)
    agent = small_agent(env=env).learn(7)
    env.reset()
    with pytest.raises(RuntimeError, match="stepped or reset elsewhere"):
        agent.learn(52)


def test_an_error_in_mid_step_leaves_the_last_whole_checkpoint(tmp_path: Path) -> None:
    class Breaks(gym.Wrapper[Any, Any, Any, Any]):
        broken = False

        def step(self, action: Any) -> Any:
            if self.broken:
                raise RuntimeError("the simulator crashed")
            return super().step(action)

    env = Breaks(delayed())

    def break_it(agent: Agent) -> None:
        env.broken = agent.steps == 55

    agent = small_agent(env=env)
    how: dict[str, Any] = {"out": tmp_path, "checkpoint_every": 40, "eval_env": delayed()}
    with pytest.raises(RuntimeError, match="crashed"):
        agent.learn(100, callback=break_it, **how)
    assert Agent.load(tmp_path, delayed()).steps == 40


def test_saving_never_deletes_anything_else(tmp_path: Path) -> None:
    (tmp_path / "precious.txt").write_text("precious")
    with pytest.raises(ValueError, match="something else"):
        small_agent().save(tmp_path)
    assert (tmp_path / "precious.txt").exists()


def test_a_checkpoint_cut_off_while_it_was_replaced_is_still_found(tmp_path: Path) -> None:
    small_agent().learn(40).save(tmp_path / "checkpoint")
    (tmp_path / "checkpoint").rename(tmp_path / ".checkpoint.old")
    assert Agent.load(tmp_path).steps == 40


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
    assert agent.method.hidden == (8, 8)


def test_unrevealed_tails_have_no_credit() -> None:
    env = belated.mark(ScriptedEnv([0, 0, 5.0, 0, 0]), period=3)
    credit = small_agent(env=env).credit(small_agent(env=env).play(env=env))
    assert np.isnan(credit).tolist() == [False] * 3 + [True] * 2
