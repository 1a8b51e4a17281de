"""The gradient-variance experiment disturbs nothing, and measures what it says."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import numpy as np
import optax
import pytest
import references
from batches import random_batch
from references import exact, mlp, quick_jit, update_of
from small_agents import assert_same_weights, delayed, small_agent, weights

from belated import Agent
from belated.backbones import SAC
from belated.backbones.sac import SACState
from belated.critics import HC, Markov, Segment, Singleton
from belated.experience.batch import IntervalBatch
from belated.experience.step import ProblemShape
from belated.experiments.gradient_variance import (
    PROBE,
    ProbeState,
    VarianceProbe,
    final_layer_gradients,
    noise_and_signal,
)
from belated.kernels.memory import compiler_options
from belated.methods import find_method
from belated.parts import from_json, override, to_json
from belated.training import learner

SMALL = VarianceProbe(
    critic=HC(Singleton((6,)), 0.05),
    hc=HC(Singleton((6,)), 0.05),
    rnn=Segment(7),
    hidden=(8, 8),
)
SIZES: dict[str, Any] = {"critic.units": [6], "hc.units": [6], "rnn.units": 7}
NAMES = ("hc", "rnn")
RATE = 0.1


class DescentProbe(VarianceProbe):
    """Gradient descent in Adam's place, so that a parameter's change is its gradient."""

    _optimizer = property(lambda self: optax.sgd(RATE))


def small_probe(**changes: Any) -> Agent:
    return small_agent(PROBE, **SIZES | changes)


def learned_states(size: int = 16, overlap: int = 2) -> tuple[ProbeState, Any, ProblemShape]:
    """A state whose targets lag behind, a batch that it has not seen, and their shape."""
    (seen, shape), (batch, _) = (random_batch(5, overlap, size, seed=s) for s in (3, 4))
    state = SMALL.init(2, shape)
    for _ in range(3):
        state, _ = update_of(SMALL)(state, seen)
    return state, batch, shape


def assert_equal_trees(first: Any, second: Any) -> None:
    for a, b in zip(jax.tree.leaves(first), jax.tree.leaves(second), strict=True):
        np.testing.assert_array_equal(a, b)


def what_sac_has(state: Any) -> Any:
    """SAC's part of a state, with its key as plain words."""
    part = SACState._make(getattr(state, name) for name in SACState._fields)
    is_key = jax.numpy.issubdtype(part.key.dtype, jax.dtypes.prng_key)
    return part._replace(key=jax.random.key_data(part.key)) if is_key else part


def test_what_is_trained_is_bit_equal_to_plain_sac(monkeypatch: pytest.MonkeyPatch) -> None:
    # As agents are compiled when it matters. With the tests' quick options, the same operations
    # of a longer program are rounded otherwise now and then.
    monkeypatch.setattr(learner, "compiler_options", compiler_options)
    how: dict[str, Any] = {"seed": 3, "gamma": 0.98}  # which no other test has compiled
    probe = small_probe(env=delayed(overlap=2), **how)
    plain = small_agent("hc-singleton", delayed(overlap=2), units=[6], **how)
    assert_equal_trees(what_sac_has(probe.learner.state), plain.learner.state)
    for agent in (probe, plain):
        agent.learn(100)
    assert_equal_trees(what_sac_has(probe.learner.state), plain.learner.state)
    assert all(float(probe.metrics[name]) == float(plain.metrics[name]) for name in plain.metrics)
    assert probe.metrics.keys() - plain.metrics.keys() == {
        f"{what}_{name}"
        for what in ("gradient_variance", "gradient_norm", "td_loss")
        for name in NAMES
    }


@pytest.mark.parametrize("part", ["critic", "target"])
@pytest.mark.parametrize("name", NAMES)
def test_nothing_of_the_extra_critics_reaches_sac(name: str, part: str) -> None:
    state, batch, _ = learned_states()
    listener = getattr(state, name)
    noisy = jax.tree.map(lambda x: 10 * x + 1, getattr(listener, part))
    disturbed = state._replace(**{name: listener._replace(**{part: noisy})})
    (a, told), (b, told_others) = (update_of(SMALL)(s, batch) for s in (state, disturbed))
    assert told[f"td_loss_{name}"] != told_others[f"td_loss_{name}"]
    assert_equal_trees(what_sac_has(a), what_sac_has(b))
    (other,) = set(NAMES) - {name}
    assert_equal_trees(getattr(a, other), getattr(b, other))


def parameters(layer: Any) -> tuple[Any, Any]:
    return layer.weight, layer.bias


def plain_gradients(critic: Any, actor: Any, batch: IntervalBatch, shape: ProblemShape) -> Any:
    """The gradients of Q(τ ∘ (s, π(s))) by the weights and biases of π's mean, step by step."""
    before, _, _ = zip(*references.histories(batch, shape), strict=True)
    critic, actor = exact(critic), exact(actor)
    final, size = actor.trunk.layers[-1], shape.action_size
    mean = eqx.tree_at(parameters, final, (final.weight[:, :size], final.bias[:size]))
    found = []
    for row in range(len(batch.reward)):
        observation = np.float64(batch.observation[row : row + 1])
        digest = references.digests(critic, before[row : row + 1])

        def value(layer: Any, observation: Any = observation, digest: Any = digest) -> Any:
            trunk = eqx.tree_at(lambda trunk: trunk.layers[-1], actor.trunk, layer)
            action = np.tanh(mlp(trunk, observation))
            return references.value(critic, digest, observation, action)[..., 0]

        slope = references.gradient(value, mean)
        found.append(np.append(slope.weight.ravel(), slope.bias))
    return np.array(found)  # (B, number of parameters)


@pytest.mark.parametrize("overlap", [0, 2])
@pytest.mark.parametrize("name", NAMES)
def test_gradients_and_their_variance_are_those_of_single_steps(name: str, overlap: int) -> None:
    state, batch, shape = learned_states(size=8, overlap=overlap)
    critic = getattr(state, name).critic
    expected = plain_gradients(critic, state.actor, batch, shape)

    encoding = quick_jit(lambda: critic.encode(batch))()
    layer = final_layer_gradients(state.actor, critic, encoding, batch.observation)
    size = shape.action_size
    actual = np.concatenate([layer.weight[..., :size].reshape(8, -1), layer.bias[:, :size]], axis=1)
    np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-6)
    for leaf in (layer.weight, layer.bias):
        assert not leaf[..., size:].any()  # standard deviations play no part

    _, metrics = update_of(SMALL)(state, batch)
    mean = expected.mean(axis=0)
    variance = ((expected - mean) ** 2).sum() / (len(expected) - 1)
    assert metrics[f"gradient_variance_{name}"] == pytest.approx(variance, rel=1e-5)
    assert metrics[f"gradient_norm_{name}"] == pytest.approx((mean**2).sum(), rel=1e-5)


def with_other_histories(batch: IntervalBatch, shape: ProblemShape) -> IntervalBatch:
    """The same steps after other histories."""
    rng = np.random.default_rng(0)
    places = np.arange(len(batch.window))[:, None] < shape.overlap + batch.position
    noise = rng.normal(size=batch.window.shape).astype(np.float32)
    return batch._replace(window=np.where(places[:, :, None], noise, batch.window))


def test_the_history_counts_for_the_gradient_of_rnn_and_not_for_that_of_hc() -> None:
    """∇_a Q is ∇_a C(s, a) under the HC-decomposition (Eq. 7)."""
    state, batch, shape = learned_states()
    others = with_other_histories(batch, shape)
    (_, before), (_, after) = (update_of(SMALL)(state, b) for b in (batch, others))
    assert before["td_loss_hc"] != after["td_loss_hc"]  # H did notice
    for what in ("gradient_variance", "gradient_norm"):
        assert before[f"{what}_hc"] == after[f"{what}_hc"]
        assert before[f"{what}_rnn"] != pytest.approx(float(after[f"{what}_rnn"]), rel=1e-3)


def test_identical_steps_have_no_variance() -> None:
    state, batch, _ = learned_states()
    same = jax.tree.map(lambda x: np.repeat(x[:1], 16, axis=0), batch)._replace(
        window=np.repeat(batch.window[:, :1], 16, axis=1),
        window_mask=np.repeat(batch.window_mask[:, :1], 16, axis=1),
        reward_bounds=batch.reward_bounds,
        mean_reward_bounds=batch.mean_reward_bounds,
    )
    _, metrics = update_of(SMALL)(state, same)
    for name in NAMES:
        norm = float(metrics[f"gradient_norm_{name}"])
        assert norm > 0
        assert float(metrics[f"gradient_variance_{name}"]) < 1e-10 * norm


def test_the_ratio_does_not_depend_on_the_scale_of_values() -> None:
    gradients = np.random.default_rng(0).normal(size=(9, 3, 2)) + 1
    one, ten = (noise_and_signal({"weight": x * gradients}) for x in (1, 10))
    assert ten["gradient_variance"] == pytest.approx(100 * float(one["gradient_variance"]))
    assert ten["gradient_norm"] == pytest.approx(100 * float(one["gradient_norm"]))


@pytest.mark.parametrize("overlap", [0, 2])
def test_the_extra_critics_learn_as_in_ddpg(overlap: int) -> None:
    """One step down mean (Q − y)², y = R + γ(1 − terminated)·Q̂(next history, π(s'))."""
    batch, shape = random_batch(4, overlap, size=8, seed=1, reveal_tails=False)
    settings = {f.name: getattr(SMALL, f.name) for f in dataclasses.fields(SMALL)}
    probe = DescentProbe(**settings)
    state = probe.init(2, shape)
    lag = jax.tree.map(lambda x: 1.5 * x + 0.1, [state.hc.target, state.rnn.target])
    state = state._replace(
        hc=state.hc._replace(target=lag[0]), rnn=state.rnn._replace(target=lag[1])
    )
    after, metrics = quick_jit(probe.update)(state, batch)

    before, following, whole = zip(*references.histories(batch, shape), strict=True)
    b: Any = jax.tree.map(np.float64, batch)
    actor = exact(state.actor)
    next_action = np.tanh(np.split(mlp(actor.trunk, b.next_observation), 2, axis=-1)[0])
    for name in NAMES:
        old, new = exact(getattr(state, name)), exact(getattr(after, name))
        digest = references.digests(old.target, following)
        next_value = references.value(old.target, digest, b.next_observation, next_action)
        y = b.reward + probe.gamma * (1 - b.terminated) * next_value

        def td_loss(critic: Any, y: Any = y) -> Any:
            digest = references.digests(critic, before)
            value = references.value(critic, digest, b.observation, b.action)
            return np.mean((value - y) ** 2, -1)

        def loss(critic: Any, td_loss: Any = td_loss) -> Any:
            if not hasattr(critic, "regularizer"):
                return td_loss(critic)
            seen = b.revealed > 0
            sums = references.digests(critic, whole)[..., seen]
            error = np.mean((sums - b.interval_reward[seen]) ** 2, -1)
            return td_loss(critic) + critic.regularizer * error

        assert metrics[f"td_loss_{name}"] == pytest.approx(float(td_loss(old.critic)), rel=1e-5)
        slopes = references.gradient(loss, old.critic)
        descended = jax.tree.map(lambda w, s: w - RATE * s, old.critic, slopes)
        moved = jax.tree.map(lambda s, f: s + probe.tau * (f - s), old.target, descended)
        for actual, expected in ((new.critic, descended), (new.target, moved)):
            for x, z in zip(jax.tree.leaves(actual), jax.tree.leaves(expected), strict=True):
                np.testing.assert_allclose(x, z, rtol=1e-5, atol=1e-6)


def test_targets_follow_slowly_from_equal_parameters_and_optimisers_remember() -> None:
    batch, shape = random_batch(5, 0)
    state = SMALL.init(2, shape)
    after, _ = update_of(SMALL)(state, batch)
    for name in NAMES:
        old, new = getattr(state, name), getattr(after, name)
        assert_equal_trees(old.critic, old.target)
        first, fast, slow = (jax.tree.leaves(x)[0] for x in (old.critic, new.critic, new.target))
        np.testing.assert_allclose(slow, first + 0.005 * (fast - first), atol=1e-7)
        assert (slow != first).any()
        assert (slow != fast).any()
        count, *moments = jax.tree.leaves(new.optimizer)
        assert count == 1
        assert all(moment.any() for moment in moments)


@pytest.mark.parametrize("at", [20, 47])
def test_a_resumed_run_is_bit_equal_to_one_that_never_stopped(at: int, tmp_path: Path) -> None:
    whole = small_probe(seed=5).learn(80)
    small_probe(seed=5).learn(at).save(tmp_path / "agent", replay=True)
    resumed = Agent.load(tmp_path / "agent", delayed())
    assert resumed.method == whole.method
    resumed.learn(80 - at)
    assert_same_weights(whole, resumed)
    assert {k: float(v) for k, v in whole.metrics.items()} == {
        k: float(v) for k, v in resumed.metrics.items()
    }


def test_the_probe_learns_in_several_lanes_and_several_updates_at_once() -> None:
    agent = small_probe(num_envs=2, updates_per_dispatch=2).learn(60)
    assert all(np.isfinite(float(value)) for value in agent.metrics.values())
    assert all(np.isfinite(leaf).all() for leaf in weights(agent))
    assert np.isfinite(agent.credit(agent.play())).any()  # of SAC's own critics


def test_the_default_is_the_papers_and_settings_have_one_meaning() -> None:
    probe: Any = PROBE.backbone
    assert probe.critic == probe.hc == HC(Singleton((64, 64)), regularizer=0.05)
    assert probe.rnn == Segment(128)
    assert dataclasses.replace(PROBE, backbone=SAC(critic=probe.critic)) == find_method(
        "hc-singleton"
    )
    assert from_json(to_json(PROBE)) == PROBE
    changed: Any = override(PROBE, {"hidden": [16], "gamma": 0.9, **SIZES}).backbone
    assert changed == dataclasses.replace(SMALL, hidden=(16,), gamma=0.9)
    with pytest.raises(ValueError, match=r"critic\.regularizer or backbone\.hc\.regularizer"):
        override(PROBE, {"regularizer": 0})


def test_the_window_is_there_whatever_trains_the_policy() -> None:
    method = override(PROBE, {"critic": Markov(), "hc.units": [6], "rnn.units": 7})
    assert "window" in method.backbone.needs
    metrics = small_agent(method).learn(40).metrics
    assert np.isfinite(float(metrics["gradient_variance_rnn"]))


def test_bad_parts_and_batches_of_one_are_refused() -> None:
    with pytest.raises(ValueError, match="HC recipe"):
        VarianceProbe(hc=Segment(7))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="Segment recipe"):
        VarianceProbe(rnn=Markov())  # type: ignore[arg-type]
    batch, shape = random_batch(5, 0, size=1)
    with pytest.raises(ValueError, match="batch_size"):
        SMALL.update(SMALL.init(0, shape), batch)
