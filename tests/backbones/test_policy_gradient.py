"""PPO's parts against NumPy in double precision."""

from __future__ import annotations

import dataclasses
from functools import partial
from typing import Any

import jax
import numpy as np
import pytest
from episodes import ACTION, OBSERVATION, shape_of
from references import exact, mlp, quick_jit, update_of
from rollouts import random_rollout

from belated.backbones import PPO
from belated.backbones.policy_gradient import (
    ClippedAdam,
    clipped_loss,
    discounted_so_far,
    generalized_advantages,
    minibatch_orders,
    standardize,
)
from belated.backbones.ppo import Networks, PPOState, Samples, acted
from belated.credit import Dense, Revealed
from belated.experience.rollout import Rollout
from belated.networks import Moments

SHAPE = shape_of(5, 0)
PPO_SMALL = PPO(hidden=(8, 8), epochs=2, minibatches=4, rollout_steps=30)
update = update_of(PPO_SMALL)
advantages_of = quick_jit(generalized_advantages)


def numpy_advantages(
    reward: Any, value: Any, next_value: Any, rollout: Rollout, gamma: float, lam: float
) -> Any:
    """Each step adds up what follows it in its own episode, in a loop over pairs of steps."""
    advantage = np.zeros(reward.shape)
    for lane in range(reward.shape[1]):
        for time in range(int(rollout.mask[:, lane].sum())):
            weight = 1.0
            for later in range(time, int(rollout.mask[:, lane].sum())):
                stays = 0.0 if rollout.terminated[later, lane] else 1.0
                decay = gamma ** rollout.duration[later, lane]
                following = decay * stays * next_value[later, lane]
                delta = reward[later, lane] + following - value[later, lane]
                advantage[time, lane] += weight * delta
                if rollout.episode_end[later, lane]:
                    break
                weight *= decay * lam
    return advantage


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("lanes", [1, 3])
def test_advantages_equal_the_sum_over_later_steps(seed: int, lanes: int) -> None:
    rollout = random_rollout(seed, lanes, steps=40)
    rng = np.random.default_rng(seed)
    value, next_value = rng.normal(size=(2, *rollout.mask.shape))  # in padding too
    reward = np.where(rollout.mask > 0, rng.normal(size=rollout.mask.shape), 1e3)
    durations = rng.integers(0, 3, rollout.duration.shape)
    rollout = rollout._replace(duration=durations.astype(np.float32))
    assert (rollout.mask == 0).any()
    assert (rollout.terminated != rollout.episode_end).any()
    actual = advantages_of(reward, value, next_value, rollout, (0.9, 0.8))
    expected = numpy_advantages(reward, value, next_value, rollout, 0.9, 0.8)
    np.testing.assert_allclose(actual * rollout.mask, expected, atol=1e-4)


def test_discounted_sums_start_anew_with_each_episode() -> None:
    rollout = random_rollout(1, lanes=2, steps=40)
    durations = np.random.default_rng(0).integers(0, 3, rollout.duration.shape)
    rollout = rollout._replace(duration=durations.astype(np.float32))
    actual = np.asarray(quick_jit(discounted_so_far)(rollout.reward, rollout, 0.9))
    for lane in range(2):
        total = 0.0
        for time in range(len(rollout.mask)):
            total = rollout.reward[time, lane] + total
            assert actual[time, lane] == pytest.approx(total, abs=1e-5)
            total *= 0.9 ** durations[time, lane]
            if rollout.episode_end[time, lane]:
                total = 0.0


def test_the_clipped_loss_equals_its_definition() -> None:
    rng = np.random.default_rng(0)
    log_ratio, advantage = rng.normal(size=(2, 50))
    weight = (rng.uniform(size=50) < 0.7).astype(float)
    terms = []
    for x, a, w in zip(log_ratio, advantage, weight, strict=True):
        ratio = np.exp(x)
        inside = min(max(ratio, 0.8), 1.2)
        if w:
            terms.append(min(ratio * a, inside * a))
    loss = quick_jit(clipped_loss)(log_ratio, advantage, weight, 0.2)
    assert float(loss) == pytest.approx(-np.mean(terms), rel=1e-5)


def test_ppos_loss_equals_a_double_precision_reference() -> None:
    rollout = random_rollout()
    state = PPO_SMALL.init(0, SHAPE)
    other = PPO_SMALL.init(1, SHAPE)
    rng = np.random.default_rng(0)
    advantage, target = rng.normal(size=(2, rollout.mask.size)).astype(np.float32)
    ppo = dataclasses.replace(PPO_SMALL, entropy_coefficient=0.1)

    @quick_jit
    def loss_of(state: PPOState, other: PPOState) -> Any:
        samples = Samples(**acted(rollout, state.actor), advantage=advantage, target=target)
        return ppo.loss(Networks(other.actor.policy, other.value), samples)[0]

    loss = loss_of(state, other)

    x = np.float64(rollout.observation.reshape(-1, OBSERVATION))
    action = np.float64(rollout.action.reshape(-1, ACTION))
    weight = rollout.mask.reshape(-1)

    def network(network: Any) -> Any:
        return mlp(exact(network), x, np.tanh)

    def log_prob(policy: Any) -> Any:  # the standard deviation is 1 at first
        return -0.5 * ((action - network(policy.trunk)) ** 2 + np.log(2 * np.pi)).sum(1)

    ratio = np.exp(log_prob(other.actor.policy) - log_prob(state.actor.policy))
    gain = np.minimum(ratio * advantage, np.clip(ratio, 0.8, 1.2) * advantage)
    errors = (network(other.value)[:, 0] - target) ** 2
    entropy = ACTION * 0.5 * np.log(2 * np.pi * np.e)
    expected = ((-gain + 0.5 * errors) * weight).sum() / weight.sum() - 0.1 * entropy
    assert float(loss) == pytest.approx(expected, rel=1e-5)


def test_padding_changes_nothing() -> None:
    rollout = random_rollout()
    state = PPO_SMALL.init(0, SHAPE)
    noise = np.random.default_rng(0)
    padded = Rollout(
        *(
            np.where(
                rollout.mask.reshape(rollout.mask.shape + (1,) * (array.ndim - 2)) > 0,
                array,
                0 if name in ("mask", "reward") else noise.normal(size=array.shape),
            ).astype(np.float32)
            for name, array in rollout._asdict().items()
        )
    )
    a, _ = update(state, rollout)
    b, _ = update(state, padded)
    for x, y in zip(
        jax.tree.leaves((a.actor, a.value)), jax.tree.leaves((b.actor, b.value)), strict=True
    ):
        np.testing.assert_allclose(x, y, atol=1e-6)


@partial(quick_jit, static_argnums=0)
def one_step_by_hand(ppo: PPO, state: PPOState, rollout: Rollout) -> Any:
    """The policy after one gradient step on all of a rollout, seen as the actor saw it."""
    _, reward, _, _ = ppo.rewarded(state, rollout)
    advantage, value = ppo.advantages(reward, rollout, state.actor.normalizer, state.value)
    samples = Samples(
        **acted(rollout, state.actor),
        advantage=standardize(advantage, rollout.mask).ravel(),
        target=(advantage + value).ravel(),
    )
    networks = Networks(state.actor.policy, state.value)
    gradients, _ = jax.grad(ppo.loss, has_aux=True)(networks, samples)
    after: Networks = ppo.optimizer.step(gradients, state.optimizer, networks)[0]
    return after.policy


def test_an_update_starts_from_the_policy_that_acted() -> None:
    """After normalising, acting and recomputing agree: the first ratio is 1."""
    one_step = PPO(hidden=(8, 8), epochs=1, minibatches=1, rollout_steps=30)
    update_once = update_of(one_step)
    act = quick_jit(one_step.act)
    log_prob_of = quick_jit(lambda rollout, actor: acted(rollout, actor)["log_prob"])
    state: Any = one_step.init(0, SHAPE)
    for seed in range(3):
        rollout = random_rollout(seed)
        observation = rollout.observation.reshape(-1, OBSERVATION)
        noise = np.random.default_rng(seed).normal(size=(len(observation), ACTION))
        action = act(state.actor, observation, noise)
        rollout = rollout._replace(action=np.asarray(action).reshape(rollout.action.shape))
        expected = (
            -0.5 * noise**2 - 0.5 * np.log(2 * np.pi) - np.asarray(state.actor.policy.log_std)
        )
        log_prob = log_prob_of(rollout, state.actor)
        np.testing.assert_allclose(log_prob, expected.sum(1), atol=1e-4)
        expected_actor = one_step_by_hand(one_step, state, rollout)
        state, metrics = update_once(state, rollout)
        assert float(metrics["kl"]) == pytest.approx(0, abs=1e-6)
        assert float(metrics["clip_fraction"]) == 0
        for x, y in zip(
            jax.tree.leaves(state.actor.policy), jax.tree.leaves(expected_actor), strict=True
        ):
            np.testing.assert_allclose(x, y, atol=1e-5)


def test_every_epoch_deals_every_step_once_and_evenly() -> None:
    mask = np.zeros(37, np.float32)
    mask[np.random.default_rng(0).permutation(37)[:30]] = 1
    deal = quick_jit(minibatch_orders, static_argnums=(2, 3))
    orders = np.asarray(deal(jax.random.key(0), mask, 3, 4))
    assert orders.shape == (12, 10)
    for epoch in orders.reshape(3, 40):
        assert sorted(epoch) == list(range(40))
    real = np.append(mask, np.zeros(3))[orders].sum(1)
    assert set(real) == {7, 8}
    assert (orders[:4] != orders[4:8]).any()


def test_moments_are_the_exact_mean_and_variance() -> None:
    rng = np.random.default_rng(0)
    seen, moments = [], Moments((3,))
    update = quick_jit(Moments.update)
    normalized = quick_jit(Moments.normalize)(moments, np.ones((2, 3), np.float32))
    np.testing.assert_array_equal(normalized, np.ones((2, 3)))
    for size in (5, 1, 40):
        rows = (100 + 3 * rng.normal(size=(size, 2, 3))).astype(np.float32)
        mask = np.ones((size, 2), np.float32)
        mask[-1, 1] = 0
        moments = update(moments, rows, mask)
        seen.append(rows[mask > 0])
        everything = np.concatenate(seen).astype(np.float64)
        assert float(moments.count) == len(everything)
        np.testing.assert_allclose(moments.mean, everything.mean(0), rtol=1e-6)
        np.testing.assert_allclose(moments.variance, everything.var(0), rtol=1e-4, atol=1e-6)
    unchanged = update(moments, np.ones((5, 2, 3), np.float32), np.zeros((5, 2), np.float32))
    np.testing.assert_allclose(unchanged.variance, moments.variance, rtol=1e-6)


def test_an_update_normalises_by_what_earlier_rollouts_held() -> None:
    state = PPO_SMALL.init(0, SHAPE)
    rollouts = [random_rollout(seed) for seed in range(2)]
    for rollout in rollouts:
        state, _ = update(state, rollout)
    held = np.concatenate([rollout.observation[rollout.mask > 0] for rollout in rollouts])
    np.testing.assert_allclose(state.actor.normalizer.mean, held.mean(0), atol=1e-5)
    np.testing.assert_allclose(state.actor.normalizer.variance, held.var(0), rtol=1e-4)


def test_long_gradients_are_shortened() -> None:
    adam = ClippedAdam(1e-3, max_norm=0.5)
    parameters = {"a": np.zeros(3, np.float32), "b": np.zeros(2, np.float32)}
    gradients = {"a": np.full(3, 10, np.float32), "b": np.full(2, -4, np.float32)}
    first_step = quick_jit(lambda g, p: adam.step(g, adam.init(p), p))
    _, state = first_step(gradients, parameters)
    moment = jax.tree.leaves(state)[1]  # 0.1 of the gradient after one step
    assert float(np.linalg.norm(moment)) == pytest.approx(0.05, rel=1e-5)


def test_standardised_advantages_have_mean_0_and_variance_1() -> None:
    mask = np.array([[1.0], [1.0], [1.0], [0.0]])
    x = np.array([[1.0], [2.0], [6.0], [99.0]])
    result = np.asarray(quick_jit(standardize)(x, mask))
    assert result[:3].mean() == pytest.approx(0, abs=1e-6)
    assert result[:3].std() == pytest.approx(1, rel=1e-5)
    assert result[3, 0] == 0


def test_only_the_oracle_sees_the_dense_reward() -> None:
    rollout = random_rollout()
    key = jax.random.key(0)
    np.testing.assert_array_equal(Dense().redistribute(None, rollout, key)[1], rollout.dense_reward)
    np.testing.assert_array_equal(Revealed().redistribute(None, rollout, key)[1], rollout.reward)
