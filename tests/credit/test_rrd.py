"""Return decomposition against what it must find."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from batches import fill, random_batch
from episodes import ACTION, OBSERVATION, shape_of
from references import quick_jit

from belated.credit import RRD
from belated.credit.rrd import RewardNetwork, RRDState
from belated.experience.replay import IntervalReplay
from belated.experience.step import ProblemShape

KEY = jax.random.key(0)


def reward_function(rng: np.random.Generator) -> Any:
    """A random linear function of what r̂ sees."""
    weight = rng.normal(size=2 * (OBSERVATION - 1) + ACTION)

    def reward(observation: Any, action: Any, following: Any) -> Any:
        state, after = observation[..., :-1], following[..., :-1]
        return np.concatenate([state, action, state - after], axis=-1) @ weight

    return reward


def linear_problem(
    max_length: int, overlap: int, seed: int
) -> tuple[IntervalReplay, ProblemShape, Any]:
    """A replay whose interval rewards are sums of a linear per-step reward, as r_c sums them."""
    rng = np.random.default_rng(seed)
    shape = shape_of(max_length, overlap)
    drawn = fill(IntervalReplay(9_000, shape), rng, episodes=60)
    reward = reward_function(rng)
    replay = IntervalReplay(9_000, shape)
    for steps in drawn:
        dense = [reward(s.observation, s.action, s.next_observation) for s in steps]
        start = 0
        for time, step in enumerate(steps):
            total = sum(dense[max(start - overlap, 0) : max(time + 1 - overlap, 0)])
            end = step.interval_end
            replay.add(
                step._replace(reward=total if end else 0.0, revealed=end, dense_reward=dense[time])
            )
            start = time + 1 if step.interval_end else start
    return replay, shape, reward


@pytest.mark.parametrize(("max_length", "overlap"), [(1, 0), (5, 0), (4, 2), (3, 4)])
def test_the_steps_that_count_are_those_whose_rewards_were_summed(
    max_length: int, overlap: int
) -> None:
    replay, shape, reward = linear_problem(max_length, overlap, seed=1)
    batch = replay.sample(np.random.default_rng(2), 64)
    network = RewardNetwork(np.random.default_rng(0), shape, (8,))
    seen = quick_jit(lambda batch: network.steps_of_windows(batch, 64))(batch)
    steps, counts = (np.asarray(x, np.float64) for x in seen)
    observed = np.concatenate([steps[..., : OBSERVATION - 1], np.zeros((*counts.shape, 1))], -1)
    action = steps[..., OBSERVATION - 1 : OBSERVATION - 1 + ACTION]
    following = observed - np.concatenate(
        [steps[..., OBSERVATION - 1 + ACTION :], np.zeros((*counts.shape, 1))], -1
    )
    sums = np.sum(reward(observed, action, following) * counts, axis=0)
    np.testing.assert_allclose(sums, batch.interval_reward, atol=1e-4)


@pytest.mark.parametrize(("subset", "overlap"), [(64, 0), (3, 0), (64, 2)])
def test_on_a_linear_problem_the_per_step_reward_is_recovered(subset: int, overlap: int) -> None:
    replay, shape, _ = linear_problem(5, overlap, seed=3)
    rule = RRD(reward_learning_rate=0.03, intervals=256, subset=subset)
    rng = np.random.default_rng(0)
    linear = RewardNetwork(rng, shape, ())
    state = RRDState(linear, rule._optimizer.init(linear))
    update = quick_jit(rule.update)
    for number in range(600):
        batch = replay.sample(rng, 256)
        state, metrics = update(state, batch, jax.random.fold_in(KEY, number))
    (batch,) = replay.in_order(batch_size=len(replay))
    spread = float(np.std(batch.dense_reward))
    np.testing.assert_allclose(
        rule.reward(state, batch), batch.dense_reward, atol=(0.02 if subset > 5 else 0.15) * spread
    )
    if subset > 5:
        assert float(metrics["reward_sum_error"]) < 0.05 * spread


def test_the_choice_of_steps_does_not_bias_the_loss() -> None:
    """The mean over all choices of K steps is the loss of the whole intervals, and not before."""
    batch, shape = random_batch(max_length=6, size=32, seed=4)
    network = RewardNetwork(np.random.default_rng(5), shape, (8,))
    network = jax.tree.map(lambda weight: 3 * weight, network)  # so that the choice matters
    keys = jax.random.split(KEY, 20_000)

    @jax.jit
    def losses(network: RewardNetwork, keys: jax.Array) -> list[jax.Array]:
        """Of whole intervals, and the means over choices of two steps of each."""

        def mean_loss(rule: RRD) -> jax.Array:
            return jnp.mean(jax.vmap(lambda key: rule.loss(network, batch, key)[0])(keys))

        whole = RRD(intervals=32).loss(network, batch, KEY)[0]
        few = [RRD(intervals=32, subset=2, unbiased=unbiased) for unbiased in (True, False)]
        return [whole, *map(mean_loss, few)]

    whole, unbiased, biased = map(float, losses(network, keys))
    assert unbiased == pytest.approx(whole, rel=0.01)
    assert biased > 1.03 * whole


def test_the_reward_does_not_see_the_phase_nor_what_is_not_revealed() -> None:
    batch, shape = random_batch(max_length=5, size=64, seed=6, reveal_tails=False)
    rule = RRD(reward_units=(8,), intervals=64)
    state = rule.init(np.random.default_rng(0), shape)
    shifted = batch._replace(
        observation=batch.observation + np.eye(OBSERVATION, dtype=np.float32)[-1],
        next_observation=batch.next_observation - np.eye(OBSERVATION, dtype=np.float32)[-1],
    )
    reward = quick_jit(rule.reward)
    np.testing.assert_array_equal(reward(state, batch), reward(state, shifted))

    assert 0 < batch.revealed.sum() < 64
    spoiled = batch._replace(
        interval_reward=np.where(batch.revealed > 0, batch.interval_reward, 99.0),
        dense_reward=batch.dense_reward + 1,
    )
    update = quick_jit(rule.update)
    updated: list[RRDState] = [update(state, b, KEY)[0] for b in (batch, spoiled)]
    for a, b in zip(*map(jax.tree.leaves, updated), strict=True):
        np.testing.assert_array_equal(a, b)
