"""SAC and TD3 against NumPy in double precision, and the equivalences between critics."""

from __future__ import annotations

import dataclasses
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from batches import random_batch

from belated.backbones import SAC, TD3
from belated.backbones.sac import SACState, _actor_loss
from belated.backbones.temporal_difference import bootstrapped, critic_loss, lowest_next_value
from belated.credit import IRCR, Dense, Revealed
from belated.critics import HC, Markov, Pairwise, Recurrent, Segment, Singleton
from belated.experience.batch import IntervalBatch
from belated.networks import GaussianPolicy

HIDDEN = (8, 8)
KEY = jax.random.key(2)
CRITICS = [
    Markov(),
    Segment(7),
    HC(Singleton((6,)), 0.05),
    HC(Pairwise(1, (6,)), 0.5),
    HC(Pairwise(3, (6,)), 5.0),
    HC(Recurrent(7), 5.0),
]


def float64(tree: Any) -> Any:
    return jax.tree.map(lambda leaf: np.asarray(leaf, np.float64), tree)


def unlike(networks: Any) -> Any:
    """Targets that differ from what they follow, so that mistaking one for the other shows."""
    return jax.tree.map(lambda leaf: 1.5 * leaf + 0.1, networks)


def numpy_mlp(mlp: Any, x: Any) -> Any:
    for layer in mlp.layers[:-1]:
        x = np.maximum(x @ layer.weight + layer.bias, 0)
    return x @ mlp.layers[-1].weight + mlp.layers[-1].bias


def numpy_sample(actor: Any, observation: Any, noise: Any) -> Any:
    mean, log_std = np.split(numpy_mlp(actor.trunk, observation), 2, axis=-1)
    log_std = np.clip(log_std, -20, 2)
    raw = mean + np.exp(log_std) * noise
    log_prob = -0.5 * noise**2 - log_std - 0.5 * np.log(2 * np.pi) - np.log(1 - np.tanh(raw) ** 2)
    return np.tanh(raw), log_prob.sum(-1)


def numpy_q(critic: Any, observation: Any, action: Any) -> Any:
    return numpy_mlp(critic.network, np.concatenate([observation, action], -1))[:, 0]


def test_sacs_losses_equal_a_double_precision_reference() -> None:
    batch, shape = random_batch(5, 0, size=32)
    sac = SAC(hidden=HIDDEN, gamma=0.9, initial_temperature=0.3)
    state = sac.init(2, shape)
    state = state._replace(targets=unlike(state.targets))
    key, noise_key = jax.random.split(state.key)
    noises = jax.random.normal(noise_key, (2, *batch.action.shape))
    next_noise, noise = np.asarray(noises, np.float64)
    after, metrics = jax.jit(sac.update)(state, batch)

    before, b = float64(state._replace(key=jnp.zeros(()))), batch
    action, log_prob = numpy_sample(before.actor, np.float64(b.next_observation), next_noise)
    q = np.minimum(*(numpy_q(t, np.float64(b.next_observation), action) for t in before.targets))
    target = b.reward + 0.9 * (1 - b.terminated) * (q - 0.3 * log_prob)
    values = [numpy_q(c, np.float64(b.observation), np.float64(b.action)) for c in before.critics]
    td_loss = sum(np.mean((value - target) ** 2) for value in values)
    assert metrics["target_mean"] == pytest.approx(target.mean(), rel=1e-5)
    assert metrics["td_loss"] == pytest.approx(td_loss, rel=1e-5)

    updated = float64(after._replace(key=jnp.zeros(())))
    action, log_prob = numpy_sample(before.actor, np.float64(b.observation), noise)
    q = np.minimum(*(numpy_q(c, np.float64(b.observation), action) for c in updated.critics))
    assert metrics["actor_loss"] == pytest.approx(np.mean(0.3 * log_prob - q), rel=1e-4)
    assert metrics["entropy"] == pytest.approx(-log_prob.mean(), rel=1e-5)

    # Adam's first step is the learning rate along the gradient's sign.
    gradient = -(log_prob.mean() - shape.action_size)
    step = float(after.log_alpha - state.log_alpha)
    assert step == pytest.approx(-3e-4 * np.sign(gradient), rel=1e-3)
    old, slow = (x.targets[0].network.layers[0].weight for x in (before, updated))
    new = updated.critics[0].network.layers[0].weight
    np.testing.assert_allclose(slow, old + 0.005 * (new - old), atol=1e-7)
    assert (jax.random.key_data(after.key) == jax.random.key_data(key)).all()


def test_bootstrapping_stops_on_termination_only() -> None:
    batch, _ = random_batch(5, 0, size=64, episodes=30)
    ones = jnp.ones(64)
    target = bootstrapped(batch.reward, batch, 0.5, ones)
    np.testing.assert_allclose(target - batch.reward, 0.5 * (1 - batch.terminated), atol=1e-6)
    assert 0 < batch.terminated.sum() < 64


@pytest.mark.parametrize("config", CRITICS[1:], ids=str)
def test_intervals_of_one_step_give_plain_sacs_targets(config: Any) -> None:
    """With n = 1 a critic's value is a function of (s, a), so its TD target is SAC's for it."""
    batch, shape = random_batch(1, 0, size=32)
    np.testing.assert_array_equal(batch.reward, batch.interval_reward)
    critic = config.build(np.random.default_rng(2), shape, HIDDEN)
    action = jnp.asarray(batch.action[::-1])
    # The value that the critic would give (s', a') as a step of its own:
    as_step = batch._replace(observation=batch.next_observation, action=action)
    expected = critic.value(critic.encode(as_step), batch.next_observation, action)
    actual = lowest_next_value((critic,), batch, action)
    np.testing.assert_allclose(actual, expected, atol=1e-6)
    if isinstance(config, HC):
        markov = Markov().build(np.random.default_rng(2), shape, HIDDEN)
        markov = dataclasses.replace(markov, network=critic.current)
        plain = lowest_next_value((markov,), batch, action)
        np.testing.assert_allclose(actual, plain, atol=1e-6)


@pytest.mark.parametrize(
    "backbone", [SAC(hidden=HIDDEN), TD3(hidden=HIDDEN, policy_delay=1)], ids=["sac", "td3"]
)
@pytest.mark.parametrize("overlap", [0, 2])
def test_without_history_and_regulariser_hc_is_markov(backbone: Any, overlap: int) -> None:
    batch, shape = random_batch(5, overlap, size=32)
    with_history = dataclasses.replace(backbone, critic=HC(Singleton((6,)), 0.0))
    hc = with_history.init(2, shape)

    def forget(critics: Any) -> Any:  # H = 0
        return tuple(
            dataclasses.replace(c, history=jax.tree.map(jnp.zeros_like, c.history)) for c in critics
        )

    hc = hc._replace(critics=forget(hc.critics), targets=forget(hc.targets))
    plain = backbone.init(2, shape)

    def as_markov(critics: Any) -> Any:
        template = plain.critics[0]
        return tuple(dataclasses.replace(template, network=c.current) for c in critics)

    plain = plain._replace(
        actor=hc.actor, critics=as_markov(hc.critics), targets=as_markov(hc.targets), key=hc.key
    )
    after_hc, metrics_hc = jax.jit(with_history.update)(hc, batch)
    after_plain, metrics_plain = jax.jit(backbone.update)(plain, batch)
    for name, value in metrics_plain.items():
        np.testing.assert_allclose(metrics_hc[name], value, rtol=1e-5)
    for x, y in zip(
        jax.tree.leaves((after_hc.actor, as_markov(after_hc.critics))),
        jax.tree.leaves((after_plain.actor, after_plain.critics)),
        strict=True,
    ):
        np.testing.assert_allclose(x, y, atol=1e-6)


def actor_gradient(state: SACState, batch: IntervalBatch, window: Any) -> Any:
    batch = batch._replace(window=window)
    _, (encodings, _) = critic_loss(state.critics, batch, jnp.zeros(len(batch.reward)))
    noise = jax.random.normal(KEY, batch.action.shape)
    loss = jax.grad(lambda a: _actor_loss(a, state.critics, encodings, batch, noise, 0.1)[0])  # type: ignore[arg-type]
    return loss(state.actor)


@pytest.mark.parametrize("config", CRITICS[2:], ids=str)
def test_with_one_hc_critic_the_actor_does_not_see_the_history(config: Any) -> None:
    batch, shape = random_batch(5, 0, size=32)
    state = SAC(config, hidden=HIDDEN, num_critics=1).init(2, shape)
    other = np.random.default_rng(0).permutation(batch.window, axis=1)
    a = actor_gradient(state, batch, batch.window)
    b = actor_gradient(state, batch, other)
    for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True):
        np.testing.assert_allclose(x, y, atol=1e-7)


def level(critics: Any, batch: IntervalBatch, action: Any) -> Any:
    """Shift the second critic so that each is the lower one for half of a batch."""
    first, second = (c.value(c.encode(batch), batch.observation, action) for c in critics)
    shift = jnp.median(first - second)
    bias = lambda critic: critic.current.layers[-1].bias  # noqa: E731
    return critics[0], eqx.tree_at(bias, critics[1], replace_fn=lambda b: b + shift)


@pytest.mark.parametrize("config", CRITICS[2:], ids=str)
def test_with_two_hc_critics_the_history_only_decides_which_one_counts(config: Any) -> None:
    batch, shape = random_batch(5, 0, size=128)
    state = SAC(config, hidden=HIDDEN).init(2, shape)
    noise = jax.random.normal(KEY, batch.action.shape)
    action, _ = state.actor.sample(batch.observation, noise)
    state = state._replace(critics=level(state.critics, batch, action))
    _, (encodings, _) = critic_loss(state.critics, batch, jnp.zeros(128))
    values = [
        c.value(e, batch.observation, action) for c, e in zip(state.critics, encodings, strict=True)
    ]
    chosen = values[0] <= values[1]
    assert 0 < chosen.sum() < 128

    def with_chosen(actor: GaussianPolicy) -> Any:
        action, log_prob = actor.sample(batch.observation, noise)
        x = jnp.concatenate([batch.observation, action], axis=1)
        first, second = (c.current(x)[:, 0] for c in state.critics)  # type: ignore[attr-defined]
        return jnp.mean(0.1 * log_prob - jnp.where(chosen, first, second))

    expected = jax.grad(with_chosen)(state.actor)
    actual = actor_gradient(state, batch, batch.window)
    for x, y in zip(jax.tree.leaves(expected), jax.tree.leaves(actual), strict=True):
        np.testing.assert_allclose(x, y, atol=1e-6)
    # Deciding by C alone, which looks the same, is another rule.
    x = jnp.concatenate([batch.observation, action], axis=1)
    by_current = state.critics[0].current(x) <= state.critics[1].current(x)  # type: ignore[attr-defined]
    assert (by_current[:, 0] != chosen).any()


def test_the_oracle_learns_from_the_hidden_reward_and_nobody_else_does() -> None:
    batch, _ = random_batch(5, 0, size=32)
    np.testing.assert_array_equal(Dense().reward(None, batch), batch.dense_reward)
    np.testing.assert_array_equal(Revealed().reward(None, batch), batch.reward)


def test_td3_smooths_its_target_and_delays_its_actor() -> None:
    batch, shape = random_batch(5, 0, size=32)
    td3 = TD3(hidden=HIDDEN, target_noise=0.0)
    update = jax.jit(td3.update)
    state = td3.init(2, shape)
    state = state._replace(targets=unlike(state.targets), target_actor=unlike(state.target_actor))
    first, metrics = update(state, batch)
    before = float64(state._replace(key=jnp.zeros(())))
    observation = np.float64(batch.next_observation)
    action = np.tanh(numpy_mlp(before.target_actor.trunk, observation))
    q = np.minimum(*(numpy_q(t, observation, action) for t in before.targets))
    target = batch.reward + 0.99 * (1 - batch.terminated) * q
    assert metrics["target_mean"] == pytest.approx(target.mean(), rel=1e-5)

    def weights(part: Any) -> Any:
        return jax.tree.leaves(part)[0]

    for part in ("actor", "target_actor", "targets"):
        assert (weights(getattr(first, part)) == weights(getattr(state, part))).all()
    assert (weights(first.critics) != weights(state.critics)).any()
    second, _ = update(first, batch)
    for part in ("actor", "target_actor", "targets"):
        assert (weights(getattr(second, part)) != weights(getattr(first, part))).any()
    moved = weights(first.targets) + 0.005 * (weights(second.critics) - weights(first.targets))
    np.testing.assert_allclose(weights(second.targets), moved, atol=1e-7)


def test_td3s_noise_is_clipped() -> None:
    batch, shape = random_batch(5, 0, size=512)
    noisy = TD3(hidden=HIDDEN, target_noise=100.0, target_noise_clip=0.01)
    still = TD3(hidden=HIDDEN, target_noise=0.0)
    state = noisy.init(2, shape)
    a, b = (jax.jit(each.update)(state, batch)[1]["target_mean"] for each in (noisy, still))
    assert 0 < abs(float(a - b)) < 0.01


def test_large_errors_count_linearly_in_the_smooth_loss() -> None:
    batch, shape = random_batch(5, 0, size=32)
    critics = SAC(hidden=HIDDEN).init(2, shape).critics
    target = jnp.linspace(-5, 5, 32)
    _, (_, metrics) = critic_loss(critics, batch, target, smooth_l1=True)
    values = [numpy_q(c, batch.observation, batch.action) for c in map(float64, critics)]
    errors = np.abs(np.array(values) - np.asarray(target))
    expected = np.where(errors < 1, errors**2 / 2, errors - 0.5).mean(axis=1).sum()
    assert metrics["td_loss"] == pytest.approx(expected, rel=1e-5)


def test_clipped_gradients_and_the_temperatures_own_rate() -> None:
    batch, shape = random_batch(5, 0, size=32)
    batch = batch._replace(reward=100 * batch.reward)

    def update(**how: Any) -> tuple[SACState, SACState]:
        sac = SAC(hidden=HIDDEN, **how)
        state = sac.init(2, shape)
        return state, jax.jit(sac.update)(state, batch)[0]

    def first_moment(optimizer: Any) -> float:  # a tenth of the gradient, after one step
        moments = [leaf for leaf in jax.tree.leaves(optimizer) if leaf.ndim == 1]
        return float(jnp.linalg.norm(moments[0]))

    _, free = update()
    _, clipped = update(max_gradient_norm=1.0)
    assert first_moment(free.critic_optimizer) > 1
    assert first_moment(clipped.critic_optimizer) == pytest.approx(0.1, rel=1e-4)
    before, after = update(temperature_learning_rate=0.01)
    assert abs(float(after.log_alpha - before.log_alpha)) == pytest.approx(0.01, rel=1e-3)


@pytest.mark.parametrize("kind", [SAC, TD3])
def test_the_target_sees_the_reward_of_what_the_rule_has_just_learned(kind: Any) -> None:
    batch, shape = random_batch(5, 0, size=32)
    backbone = kind(credit=IRCR(), hidden=HIDDEN, gamma=0.0)
    state = backbone.init(2, shape)
    after, metrics = jax.jit(backbone.update)(state, batch)
    assert not IRCR().reward(state.credit, batch).any()
    fresh = IRCR().reward(after.credit, batch)
    assert fresh.any()
    assert metrics["target_mean"] == pytest.approx(float(fresh.mean()), rel=1e-5)
