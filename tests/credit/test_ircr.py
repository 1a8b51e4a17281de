"""IRCR's guidance against its definition."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from batches import random_batch
from episodes import ACTION, OBSERVATION, shape_of

from belated.credit import IRCR
from belated.experience.batch import IntervalBatch
from belated.experience.replay import IntervalReplay
from belated.experience.step import Step

KEY = jax.random.key(0)


def guidance(rule: IRCR, batch: IntervalBatch) -> jax.Array:
    _, shape = random_batch()
    state, _ = rule.update(rule.init(np.random.default_rng(0), shape), batch, KEY)
    return rule.reward(state, batch)


def replay_of(*intervals: tuple[int, float | None], rows: int = 60) -> IntervalReplay:
    """One episode of intervals of these lengths and rewards; None if it was never revealed."""
    replay = IntervalReplay(rows, shape_of(4))
    for length, reward in intervals:
        for position in range(length):
            end = position == length - 1
            revealed = end and reward is not None
            replay.add(
                Step(
                    observation=np.zeros(OBSERVATION, np.float32),
                    action=np.zeros(ACTION, np.float32),
                    reward=float(reward) if revealed and reward is not None else 0.0,
                    next_observation=np.zeros(OBSERVATION, np.float32),
                    terminated=False,
                    truncated=False,
                    position=position,
                    interval_end=end,
                    revealed=revealed,
                )
            )
    return replay


def in_order(replay: IntervalReplay) -> IntervalBatch:
    (batch,) = replay.in_order(batch_size=100)
    return batch


def test_every_step_is_credited_with_its_intervals_place_between_worst_and_best() -> None:
    batch = in_order(replay_of((2, -3.0), (1, 5.0), (3, 1.0)))
    expected = [0, 0, 1, 0.5, 0.5, 0.5]
    np.testing.assert_allclose(guidance(IRCR(), batch), expected, atol=1e-6)


def test_credit_per_step_compares_means() -> None:
    batch = in_order(replay_of((2, -2.0), (1, 1.0), (3, 0.0)))
    np.testing.assert_allclose(
        guidance(IRCR(per_step=True), batch), [0, 0, 1, 0.5, 0.5, 0.5], atol=1e-6
    )
    batch = in_order(replay_of((4, 4.0), (1, 2.0)))
    np.testing.assert_allclose(guidance(IRCR(per_step=True), batch), [0, 0, 0, 0, 1], atol=1e-6)


def test_an_evicted_extreme_no_longer_counts() -> None:
    batch = in_order(replay_of((4, 100.0), (4, -100.0), (4, 0.0), (4, 1.0), (4, 2.0), rows=14))
    np.testing.assert_allclose(
        guidance(IRCR(), batch), [0, 0, 0, 0, 0.5, 0.5, 0.5, 0.5, 1, 1, 1, 1]
    )


def test_where_all_are_equal_or_nothing_was_revealed_there_is_no_guidance() -> None:
    assert not guidance(IRCR(), in_order(replay_of((2, 7.0), (2, 7.0)))).any()
    assert not guidance(IRCR(), in_order(replay_of((2, None), (2, None)))).any()
    batch = in_order(replay_of((2, 1.0), (2, None), (1, -1.0)))
    np.testing.assert_allclose(guidance(IRCR(), batch), [1, 1, 0, 0, 0])


@pytest.mark.parametrize("per_step", [False, True])
def test_guidance_is_between_0_and_1(per_step: bool) -> None:
    for seed in range(20):
        batch, _ = random_batch(seed=seed, reveal_tails=False)
        values = guidance(IRCR(per_step=per_step), batch)
        assert jnp.isfinite(values).all()
        assert ((values >= 0) & (values <= 1)).all()
