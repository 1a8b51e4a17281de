"""SAC and TD3 against NumPy in double precision, and the equivalences between critics."""

from __future__ import annotations

import dataclasses
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import references
from batches import random_batch
from references import exact, mlp, quick_jit, squashed_sample, update_of

from belated.backbones import SAC, TD3, CrossQ
from belated.backbones.sac import SACState, _actor_loss
from belated.backbones.temporal_difference import bootstrapped, critic_loss, lowest_next_value
from belated.credit import IRCR, Dense, Revealed
from belated.credit.base import Unlearned
from belated.critics import HC, Markov, Pairwise, Recurrent, Segment, Singleton
from belated.experience.batch import IntervalBatch
from belated.experience.step import ProblemShape
from belated.networks import StochasticPolicy

HIDDEN = (8, 8)
KEY = jax.random.key(2)
PLAIN_SAC = SAC(hidden=HIDDEN, gamma=0.9, initial_temperature=0.3)
PLAIN_TD3 = TD3(hidden=HIDDEN, target_noise=0.0)
CRITICS = [
    Markov(),
    Segment(7),
    HC(Singleton((6,)), 0.05),
    HC(Pairwise(1, (6,)), 0.5),
    HC(Pairwise(3, (6,)), 5.0),
    HC(Recurrent(7), 5.0),
]


def unlike(networks: Any) -> Any:
    """Targets that differ from what they follow, so that mistaking one for the other shows."""
    return jax.tree.map(lambda leaf: 1.5 * leaf + 0.1, networks)


def numpy_q(critic: Any, observation: Any, action: Any) -> Any:
    return references.value(critic, None, observation, action)


def plain_batch(size: int = 32) -> tuple[IntervalBatch, ProblemShape]:
    """A batch for critics that look at no window."""
    batch, shape = random_batch(5, 0, size=size)
    return batch._replace(window=None, window_mask=None), shape


def test_sacs_losses_equal_a_double_precision_reference() -> None:
    batch, shape = plain_batch()
    state = PLAIN_SAC.init(2, shape)
    state = state._replace(targets=unlike(state.targets))
    key, noise_key = jax.random.split(state.key)
    noises = jax.random.normal(noise_key, (2, *batch.action.shape))
    next_noise, noise = np.asarray(noises, np.float64)
    after, metrics = update_of(PLAIN_SAC)(state, batch)

    before, b = exact(state), batch
    action, log_prob = squashed_sample(before.actor, np.float64(b.next_observation), next_noise)
    q = np.minimum(*(numpy_q(t, np.float64(b.next_observation), action) for t in before.targets))
    target = b.reward + 0.9 * (1 - b.terminated) * (q - 0.3 * log_prob)
    values = [numpy_q(c, np.float64(b.observation), np.float64(b.action)) for c in before.critics]
    td_loss = sum(np.mean((value - target) ** 2) for value in values)
    assert metrics["target_mean"] == pytest.approx(target.mean(), rel=1e-5)
    assert metrics["td_loss"] == pytest.approx(td_loss, rel=1e-5)

    updated = exact(after)
    action, log_prob = squashed_sample(before.actor, np.float64(b.observation), noise)
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


@quick_jit
def target_and_value(critic: Any, batch: IntervalBatch, as_step: IntervalBatch) -> tuple[Any, Any]:
    value = critic.value(critic.encode(as_step), as_step.observation, as_step.action)
    return lowest_next_value((critic,), batch, as_step.action), value


@pytest.mark.parametrize("config", CRITICS[1:], ids=str)
def test_intervals_of_one_step_give_plain_sacs_targets(config: Any) -> None:
    """With n = 1 a critic's value is a function of (s, a), so its TD target is SAC's for it."""
    batch, shape = random_batch(1, 0, size=32)
    np.testing.assert_array_equal(batch.reward, batch.interval_reward)
    critic = config.build(np.random.default_rng(2), shape, HIDDEN)
    action = batch.action[::-1]
    # The value that the critic would give (s', a') as a step of its own:
    as_step = batch._replace(observation=batch.next_observation, action=action)
    actual, expected = target_and_value(critic, batch, as_step)
    np.testing.assert_allclose(actual, expected, atol=1e-6)
    if isinstance(config, HC):
        markov = Markov().build(np.random.default_rng(2), shape, HIDDEN)
        markov = dataclasses.replace(markov, network=critic.current)
        plain, _ = target_and_value(markov, batch, as_step)
        np.testing.assert_allclose(actual, plain, atol=1e-6)


@pytest.mark.parametrize(
    "backbone", [PLAIN_SAC, TD3(hidden=HIDDEN, policy_delay=1)], ids=["sac", "td3"]
)
@pytest.mark.parametrize("overlap", [0, 2])
def test_without_history_and_regulariser_hc_is_markov(backbone: Any, overlap: int) -> None:
    batch, shape = random_batch(5, overlap, size=32)
    with_history = dataclasses.replace(backbone, critic=HC(Singleton((6,)), 0.0))
    hc = with_history.init(2, shape)

    def forget(critics: Any) -> Any:  # H = 0
        return tuple(
            dataclasses.replace(c, history=jax.tree.map(np.zeros_like, c.history)) for c in critics
        )

    hc = hc._replace(critics=forget(hc.critics), targets=forget(hc.targets))
    plain = backbone.init(2, shape)

    def as_markov(critics: Any) -> Any:
        template = plain.critics[0]
        return tuple(dataclasses.replace(template, network=c.current) for c in critics)

    plain = plain._replace(
        actor=hc.actor, critics=as_markov(hc.critics), targets=as_markov(hc.targets), key=hc.key
    )
    after_hc, metrics_hc = update_of(with_history)(hc, batch)
    no_window = batch._replace(window=None, window_mask=None)
    after_plain, metrics_plain = update_of(backbone)(plain, no_window)
    for name, value in metrics_plain.items():
        np.testing.assert_allclose(metrics_hc[name], value, rtol=1e-5)
    for x, y in zip(
        jax.tree.leaves((after_hc.actor, as_markov(after_hc.critics))),
        jax.tree.leaves((after_plain.actor, after_plain.critics)),
        strict=True,
    ):
        np.testing.assert_allclose(x, y, atol=1e-6)


@quick_jit
def actor_gradient(state: SACState, batch: IntervalBatch) -> Any:
    _, (encodings, _) = critic_loss(state.critics, batch, jnp.zeros(len(batch.reward)))
    noise = jax.random.normal(KEY, batch.action.shape)
    loss = jax.grad(lambda a: _actor_loss(a, state.critics, encodings, batch, noise, 0.1)[0])  # type: ignore[arg-type]
    return loss(state.actor)


@pytest.mark.parametrize("config", CRITICS[2:], ids=str)
def test_with_one_hc_critic_the_actor_does_not_see_the_history(config: Any) -> None:
    batch, shape = random_batch(5, 0, size=32)
    state = SAC(config, hidden=HIDDEN, num_critics=1).init(2, shape)
    other = np.random.default_rng(0).permutation(batch.window, axis=1)
    a, b = (actor_gradient(state, batch._replace(window=w)) for w in (batch.window, other))
    for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True):
        np.testing.assert_allclose(x, y, atol=1e-7)


def level(critics: Any, batch: IntervalBatch, action: Any) -> Any:
    """Shift the second critic so that each is the lower one for half of a batch."""
    first, second = (c.value(c.encode(batch), batch.observation, action) for c in critics)
    shift = jnp.median(first - second)
    bias = lambda critic: critic.current.layers[-1].bias  # noqa: E731
    return critics[0], eqx.tree_at(bias, critics[1], replace_fn=lambda b: b + shift)


@quick_jit
def choice_of_critics(state: SACState, batch: IntervalBatch) -> tuple[Any, ...]:
    """The state with level critics, the choice by Q and by C alone, and the gradient by Q's."""
    noise = jax.random.normal(KEY, batch.action.shape)
    action, _ = state.actor.outlook(batch.observation, noise)
    critics: Any = level(state.critics, batch, action)
    values = [c.value(c.encode(batch), batch.observation, action) for c in critics]
    chosen = values[0] <= values[1]

    def currents(action: Any) -> list[Any]:
        return [c.current(batch.observation, action) for c in critics]

    def with_chosen(actor: StochasticPolicy) -> Any:
        action, log_prob = actor.outlook(batch.observation, noise)
        first, second = currents(action)
        return jnp.mean(0.1 * log_prob - jnp.where(chosen, first, second))

    first, second = currents(action)
    expected = jax.grad(with_chosen)(state.actor)
    return state._replace(critics=critics), chosen, first <= second, expected


@pytest.mark.parametrize("config", CRITICS[2:], ids=str)
def test_with_two_hc_critics_the_history_only_decides_which_one_counts(config: Any) -> None:
    batch, shape = random_batch(5, 0, size=128)
    state = SAC(config, hidden=HIDDEN).init(2, shape)
    state, chosen, by_current, expected = choice_of_critics(state, batch)
    assert 0 < chosen.sum() < 128
    actual = actor_gradient(state, batch)
    for x, y in zip(jax.tree.leaves(expected), jax.tree.leaves(actual), strict=True):
        np.testing.assert_allclose(x, y, atol=1e-6)
    # Deciding by C alone, which looks the same, is another rule.
    assert (by_current != chosen).any()


def test_the_oracle_learns_from_the_hidden_reward_and_nobody_else_does() -> None:
    batch, _ = random_batch(5, 0, size=32)
    np.testing.assert_array_equal(Dense().reward(None, batch), batch.dense_reward)
    np.testing.assert_array_equal(Revealed().reward(None, batch), batch.reward)


def test_td3_smooths_its_target_and_delays_its_actor() -> None:
    batch, shape = plain_batch()
    update = update_of(PLAIN_TD3)
    state = PLAIN_TD3.init(2, shape)
    state = state._replace(targets=unlike(state.targets), target_actor=unlike(state.target_actor))
    first, metrics = update(state, batch)
    before = exact(state)
    observation = np.float64(batch.next_observation)
    action = np.tanh(mlp(before.target_actor.trunk, observation))
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
    batch, shape = plain_batch()
    noisy = TD3(hidden=HIDDEN, target_noise=100.0, target_noise_clip=0.01)
    state = noisy.init(2, shape)
    a, b = (update_of(each)(state, batch)[1]["target_mean"] for each in (noisy, PLAIN_TD3))
    assert 0 < abs(float(a - b)) < 0.01
    normal = jax.random.normal(jax.random.split(state.key)[1], batch.action.shape)
    noise = np.clip(100 * np.asarray(normal, np.float64), -0.01, 0.01)
    before, observation = exact(state), np.float64(batch.next_observation)
    action = np.clip(np.tanh(mlp(before.target_actor.trunk, observation)) + noise, -1, 1)
    q = np.minimum(*(numpy_q(t, observation, action) for t in before.targets))
    target = batch.reward + 0.99 * (1 - batch.terminated) * q
    assert a == pytest.approx(target.mean(), rel=1e-5)


def test_large_errors_count_linearly_in_the_smooth_loss() -> None:
    batch, shape = plain_batch()
    critics = PLAIN_SAC.init(2, shape).critics
    target = np.linspace(-5, 5, 32, dtype=np.float32)
    loss = quick_jit(critic_loss, static_argnums=3)
    _, (_, metrics) = loss(critics, batch, target, True)
    values = [numpy_q(c, batch.observation, batch.action) for c in map(exact, critics)]
    errors = np.abs(np.array(values) - target)
    expected = np.where(errors < 1, errors**2 / 2, errors - 0.5).mean(axis=1).sum()
    assert metrics["td_loss"] == pytest.approx(expected, rel=1e-5)


def test_clipped_gradients_and_the_temperatures_own_rate() -> None:
    batch, shape = plain_batch()
    batch = batch._replace(reward=100 * batch.reward)

    def first_moment(optimizer: Any) -> float:  # a tenth of the gradient, after one step
        moments = [leaf for leaf in jax.tree.leaves(optimizer) if leaf.ndim == 1]
        return float(np.linalg.norm(moments[0]))

    changed = dataclasses.replace(PLAIN_SAC, max_gradient_norm=1.0, temperature_learning_rate=0.01)
    before = [sac.init(2, shape) for sac in (PLAIN_SAC, changed)]
    free, clipped = (
        update_of(sac)(state, batch)[0]
        for sac, state in zip((PLAIN_SAC, changed), before, strict=True)
    )
    assert first_moment(free.critic_optimizer) > 1
    assert first_moment(clipped.critic_optimizer) == pytest.approx(0.1, rel=1e-4)
    steps = [
        abs(float(new.log_alpha) - float(old.log_alpha))
        for old, new in zip(before, (free, clipped), strict=True)
    ]
    assert steps == pytest.approx([3e-4, 0.01], rel=1e-3)


@pytest.mark.parametrize("kind", [SAC, TD3])
def test_the_target_sees_the_reward_of_what_the_rule_has_just_learned(kind: Any) -> None:
    batch, shape = plain_batch()
    backbone = kind(credit=IRCR(), hidden=HIDDEN, gamma=0.0)
    state = backbone.init(2, shape)
    after, metrics = update_of(backbone)(state, batch)
    assert not IRCR().reward(state.credit, batch).any()
    fresh = IRCR().reward(after.credit, batch)
    assert fresh.any()
    assert metrics["target_mean"] == pytest.approx(float(fresh.mean()), rel=1e-5)


class Listening(Unlearned):
    """A rule that remembers which key it was given."""

    def init(self, rng: np.random.Generator, shape: ProblemShape) -> Any:
        return jax.random.key_data(jax.random.key(0))

    def update(self, state: Any, batch: IntervalBatch, key: jax.Array) -> Any:
        return jax.random.key_data(key), {}

    def reward(self, state: Any, batch: IntervalBatch) -> Any:
        return batch.reward


@pytest.mark.parametrize("kind", [SAC, TD3, CrossQ])
def test_a_rule_gets_a_key_of_its_own_for_every_update(kind: Any) -> None:
    batch, shape = plain_batch()
    backbone = kind(credit=Listening(), hidden=HIDDEN)
    state = backbone.init(2, shape)
    keys = [jax.random.key_data(state.key)]
    for _ in range(3):
        state, _ = update_of(backbone)(state, batch)
        keys += [state.credit, jax.random.key_data(state.key)]
    assert len({tuple(np.asarray(key).tolist()) for key in keys}) == len(keys)
