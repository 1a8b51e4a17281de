"""RUDDER against NumPy, and what its rewards must never lose."""

from __future__ import annotations

from functools import cache
from typing import Any

import jax
import numpy as np
import pytest
from episodes import shape_of
from references import quick_jit, sigmoid
from rollouts import intervals_of, random_rollout

from belated.credit import Rudder, rudder
from belated.credit.rudder import Predictor, RudderState
from belated.experience.rollout import Rollout
from belated.networks import ReducedLSTM

SHAPE = shape_of(5, 0)
RULE = Rudder(lstm_units=6, rollout_passes=2, lesson_passes=3, lesson_batch=4, lessons=8)
KEY = jax.random.key(0)
redistribute = quick_jit(RULE.redistribute)
rudder_intervals = quick_jit(lambda rollout: rudder.intervals_of(rollout, SHAPE))
redistributed = quick_jit(
    lambda state, rollout: rudder.redistributed(state, rudder.intervals_of(rollout, SHAPE), rollout)
)
predictions = quick_jit(rudder.predictions)
keep_worst = quick_jit(rudder.keep_worst)
as_intervals = quick_jit(rudder.as_intervals)


def fresh() -> RudderState:
    return RULE.init(np.random.default_rng(0), SHAPE)


@cache
def trained(**how: Any) -> RudderState:
    state = fresh()
    for seed in range(2):
        state, _, _ = redistribute(state, random_rollout(seed, **how), KEY)
    return state


def numpy_cells(lstm: ReducedLSTM, x: Any) -> Any:
    w, d, r, b = (
        np.float64(array)
        for array in (lstm.inputs.weight, lstm.inputs.bias, lstm.gate.weight, lstm.gate.bias)
    )
    cell, cells = np.zeros(len(b)), []  # type: ignore[arg-type]
    for row in np.asarray(x, np.float64):
        cell = cell + sigmoid(cell @ r + b) * np.tanh(row @ w + d)
        cells.append(cell)
    return np.array(cells)


def numpy_inputs(rollout: Rollout, lane: int, first: int, last: int) -> Any:
    seen = rollout.observation[first : last + 1, lane]
    difference = np.diff(seen, axis=0, prepend=seen[:1])[:, :-1]
    action = np.clip(rollout.action[first : last + 1, lane], -1, 1)
    return np.concatenate([seen, difference, action], axis=1)


def test_the_lstm_over_a_rollout_treats_each_interval_alone() -> None:
    rollout = random_rollout(3, lanes=3, steps=40)
    intervals = rudder_intervals(rollout)
    lstm = ReducedLSTM(np.random.default_rng(0), intervals.inputs.shape[-1], 6)
    cells = np.asarray(quick_jit(ReducedLSTM.states)(lstm, intervals.inputs, intervals.start))
    assert len(intervals_of(rollout)) > 20
    for lane, first, last in intervals_of(rollout):
        expected = numpy_cells(lstm, numpy_inputs(rollout, lane, first, last))
        np.testing.assert_allclose(cells[first : last + 1, lane], expected, atol=1e-5)


def test_the_input_gate_starts_nearly_shut() -> None:
    lstm = ReducedLSTM(np.random.default_rng(0), 3, 6)
    np.testing.assert_array_equal(lstm.gate.bias, np.full(6, -3.0))


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("quality", [0.0, 0.3, 1.0])
def test_every_interval_keeps_its_reward(seed: int, quality: float) -> None:
    rollout = random_rollout(seed, lanes=2, reveal_tails=False)
    rollout = rollout._replace(reward=1e3 * rollout.reward)
    state = trained(reveal_tails=False)
    all_of_it = np.asarray(redistributed(state, rollout))
    reward = np.asarray(quality * all_of_it + (1 - quality) * rollout.reward, np.float64)
    hidden = 0
    for lane, first, last in intervals_of(rollout):
        got = reward[first : last + 1, lane]
        if rollout.revealed[last, lane]:
            assert got.sum() == pytest.approx(rollout.reward[last, lane], rel=1e-5, abs=1e-3)
            if quality == 1 and last - first >= 2:
                assert np.abs(got[:-1]).max() > 0
        else:
            hidden += 1
            np.testing.assert_array_equal(got, 0)
    assert hidden > 0
    np.testing.assert_array_equal(reward[rollout.mask == 0], 0)


def test_rewards_are_the_changes_of_the_prediction_and_an_even_share_of_the_rest() -> None:
    rollout, state = random_rollout(1), trained()
    reward = np.asarray(redistributed(state, rollout))
    mean, std = np.asarray(state.inputs.mean), np.sqrt(np.asarray(state.inputs.variance))
    head, bias = (np.float64(x) for x in (state.predictor.head.weight, state.predictor.head.bias))
    scale = np.sqrt(float(state.rewards.variance))
    for lane, first, last in intervals_of(rollout):
        x = (numpy_inputs(rollout, lane, first, last) - mean) / std
        g = scale * (numpy_cells(state.predictor.lstm, x) @ head + bias)[:, 0]
        change = np.diff(g, prepend=0)
        expected = change + (rollout.reward[last, lane] - change.sum()) / len(change)
        np.testing.assert_allclose(reward[first : last + 1, lane], expected, atol=1e-4)


def test_the_loss_equals_its_definition() -> None:
    rollout, state = random_rollout(2, reveal_tails=False), trained()
    intervals = quick_jit(rudder.scaled_for)(state, rudder_intervals(rollout))
    predict = quick_jit(Predictor.__call__)
    g = np.asarray(predict(state.predictor, intervals.inputs, intervals.start), np.float64)
    terms = []
    for lane, first, last in intervals_of(rollout):
        if rollout.revealed[last, lane]:
            target = rollout.reward[last, lane] / float(state.rewards.scale)
            errors = (g[first : last + 1, lane] - target) ** 2
            terms.append(errors[-1] + 0.5 * errors.mean())
    assert len(terms) < len(intervals_of(rollout))
    loss = quick_jit(rudder.prediction_loss)(state.predictor, intervals)
    assert float(loss) == pytest.approx(np.mean(terms), rel=1e-4)


def test_hidden_intervals_teach_nothing() -> None:
    """Intervals that were never revealed change neither the scale nor the predictor's loss."""
    rollout = random_rollout(2, reveal_tails=False)
    state = trained()
    hidden = np.zeros(rollout.mask.shape, bool)
    for lane, first, last in intervals_of(rollout):
        hidden[first : last + 1, lane] = not rollout.revealed[last, lane]
    assert hidden.any()
    other = rollout._replace(action=np.where(hidden[..., None], 0.5, rollout.action))

    @quick_jit
    def gradient(state: RudderState, rollout: Rollout) -> Any:
        intervals = rudder.scaled_for(state, rudder.intervals_of(rollout, SHAPE))
        return jax.grad(rudder.prediction_loss)(state.predictor, intervals)

    gradients = [gradient(state, each) for each in (rollout, other)]
    for a, b in zip(*map(jax.tree.leaves, gradients), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-7)
    state, _, _ = redistribute(fresh(), rollout, KEY)
    assert float(state.rewards.count) == rollout.revealed.sum()


def as_numpy(tree: Any) -> Any:
    return jax.tree.map(np.asarray, tree)


def test_lessons_are_the_worst_predicted_intervals() -> None:
    first, second = (random_rollout(seed, reveal_tails=False) for seed in (4, 5))
    state = trained()._replace(lessons=fresh().lessons)
    everything = []
    for rollout in (first, second):
        intervals = rudder_intervals(rollout)
        misses = np.abs(np.asarray(predictions(state, intervals)) - intervals.reward)
        lessons, kept = map(as_numpy, keep_worst(state, intervals, misses))
        state = state._replace(lessons=lessons)
        everything += [
            (float(misses[last, lane]), rollout, lane, begin, last)
            for lane, begin, last in intervals_of(rollout)
            if rollout.revealed[last, lane]
        ]
        worst = sorted(everything, key=lambda item: -item[0])[: RULE.lessons]
        np.testing.assert_allclose(kept, [item[0] for item in worst], rtol=1e-4)
        for slot, (_, source, lane, begin, last) in enumerate(worst):
            length = last - begin + 1
            assert int(lessons.length[slot]) == length
            assert float(lessons.reward[slot]) == source.reward[last, lane]
            expected = numpy_inputs(source, lane, begin, last)
            np.testing.assert_allclose(lessons.inputs[:length, slot], expected, atol=1e-6)
            assert not np.asarray(lessons.inputs[length:, slot]).any()
    sources = {id(item[1]) for item in worst}
    assert len(sources) == 2


def test_a_lesson_is_predicted_as_it_was_in_its_rollout() -> None:
    state, rollout = trained(), random_rollout(6)
    intervals = rudder_intervals(rollout)
    misses = np.abs(np.asarray(predictions(state, intervals)) - intervals.reward)
    lessons, kept = keep_worst(state, intervals, misses)
    again = as_numpy(as_intervals(lessons))
    errors = np.abs(np.asarray(predictions(state, again)) - again.reward) * again.last
    np.testing.assert_allclose(errors.sum(0), kept, rtol=1e-4, atol=1e-5)


def test_a_useless_prediction_leaves_the_revealed_reward() -> None:
    rollout = random_rollout(7)
    state = fresh()
    _, reward, metrics = redistribute(state, rollout, KEY)
    assert float(metrics["rudder_error"]) > 0.2
    assert float(metrics["rudder_quality"]) == 0
    np.testing.assert_array_equal(reward, rollout.reward)


def test_a_sum_of_hidden_rewards_is_found_again() -> None:
    """Where each step earns what its action says, the redistributed reward says so too."""
    rule = Rudder(lstm_units=16, rollout_passes=20, lessons=16, lesson_batch=16)
    update = quick_jit(rule.redistribute)
    over_interval = quick_jit(rudder.over_interval)
    state = rule.init(np.random.default_rng(0), SHAPE)
    for seed in range(40):
        rollout = random_rollout(seed, lanes=4, steps=60)
        earned = np.clip(rollout.action[..., 0], -1, 1) * rollout.mask + 1 * rollout.mask
        total = np.asarray(over_interval(earned, rollout))
        rollout = rollout._replace(reward=total * rollout.interval_end)
        state, _, metrics = update(state, rollout, jax.random.fold_in(KEY, seed))
    assert float(metrics["rudder_quality"]) > 0.3
    # The first step's reward is also what it says of those to come: compare the later ones.
    later = (rollout.mask > 0) & (np.asarray(rudder_intervals(rollout).start) == 0)
    credit = np.asarray(quick_jit(rule.credit)(state, rollout))
    late, found = (np.corrcoef(x[later], earned[later])[0, 1] for x in (rollout.reward, credit))
    assert found > 0.9
    assert late < 0.3


def test_rudder_never_looks_at_the_dense_reward() -> None:
    rollout, state = random_rollout(8), trained()
    nothing = rollout._replace(dense_reward=np.full_like(rollout.dense_reward, np.nan))
    a, b = (redistribute(state, each, KEY)[:2] for each in (rollout, nothing))
    for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True):
        np.testing.assert_array_equal(x, y)


def test_a_rollout_without_any_revealed_reward_is_survived() -> None:
    rollout = random_rollout(9)
    rollout = rollout._replace(
        revealed=np.zeros_like(rollout.revealed), reward=np.zeros_like(rollout.reward)
    )
    state = fresh()
    for _ in range(2):
        state, reward, metrics = redistribute(state, rollout, KEY)
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves((state, metrics)))
    np.testing.assert_array_equal(reward, 0)
