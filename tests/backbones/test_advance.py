"""A rule that pays in advance, with critics that remember: when changes, how much does not."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest
from episodes import random_episode, shape_of
from references import quick_jit

from belated.backbones import SAC, TD3, CrossQ
from belated.credit import RRD
from belated.critics import HC, Markov, Segment, Singleton
from belated.experience.batch import IntervalBatch, join
from belated.experience.replay import replay_of

RULE = RRD(reward_units=(6,), intervals=8)
REMEMBERING: Any = HC(Singleton((6,)), 0.5)


def whole_episode(backbone: Any) -> tuple[IntervalBatch, Any]:
    """One episode, every step of it once and in order."""
    rng = np.random.default_rng(4)
    shape = shape_of(4)
    steps = random_episode(rng, 4, reveal_tails=False)
    while steps[-1].revealed or len(steps) < 10:
        steps = random_episode(rng, 4, reveal_tails=False)
    batches = replay_of(steps, shape, backbone.needs).in_order(batch_size=256)
    return join(list(batches)), shape


def credited(backbone: Any) -> tuple[IntervalBatch, IntervalBatch, Any]:
    """An episode as it was, as the critics see it, and what r̂ pays for each of its steps."""
    batch, shape = whole_episode(backbone)
    state = backbone.init(0, shape)
    learned, seen, _ = quick_jit(backbone._credited)(state, batch, jax.random.key(0))
    return batch, seen, np.asarray(RULE.reward(learned, batch))


@pytest.mark.parametrize("kind", [SAC, TD3, CrossQ])
def test_an_interval_keeps_its_sum_and_its_last_step_gets_the_rest(kind: Any) -> None:
    batch, seen, paid = credited(kind(REMEMBERING, credit=RULE, hidden=(4,)))
    start = np.flatnonzero(batch.position == 0)
    assert len(start) > 3
    for first, last in zip(start, [*start[1:], len(batch.reward)], strict=True):
        rewards, rest = seen.reward[first:last], seen.interval_reward[first:last]
        np.testing.assert_allclose(rewards[:-1], paid[first : last - 1], atol=1e-6)
        if batch.revealed[first]:
            assert rewards.sum() == pytest.approx(batch.interval_reward[first], abs=1e-5)
            left = batch.interval_reward[first] - paid[first:last].sum()
            np.testing.assert_allclose(rest, left, atol=1e-5)
        else:  # nobody knows what is left
            np.testing.assert_allclose(rewards, paid[first:last], atol=1e-6)
    assert not batch.revealed.all()


@pytest.mark.parametrize(("critic", "rest"), [(Markov(), False), (Segment(4), True)])
def test_the_rest_is_for_critics_that_remember(critic: Any, rest: bool) -> None:
    _, seen, paid = credited(SAC(critic, credit=RULE, hidden=(4,)))
    assert np.allclose(seen.reward, paid) != rest


def test_credit_is_what_was_paid_and_what_h_adds() -> None:
    backbone = CrossQ(REMEMBERING, credit=RULE, hidden=(4,))
    batch, shape = whole_episode(backbone)
    state = backbone.init(0, shape)
    credit = np.asarray(backbone.credit_of(state, batch))
    own = np.mean([h.credit(batch) for h in state.histories], axis=0)
    expected = own + np.asarray(RULE.reward(state.credit, batch))
    known = batch.revealed > 0
    np.testing.assert_allclose(credit[known], expected[known], atol=1e-6)
    assert np.isnan(credit[~known]).all()
