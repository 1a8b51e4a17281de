"""The critics against the paper's formulas, written as loops over single steps."""

from __future__ import annotations

from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import references
from batches import fill, random_batch
from episodes import ACTION, OBSERVATION, shape_of
from references import quick_jit

from belated.critics import HC, Markov, Pairwise, Recurrent, Segment, Singleton
from belated.critics.histories import HistoryConfig
from belated.critics.windows import next_history as next_history_of
from belated.experience.batch import IntervalBatch
from belated.experience.replay import IntervalReplay
from belated.experience.step import ProblemShape
from belated.kernels.tiles import values_where

HIDDEN = (8, 8)
HISTORIES: list[HistoryConfig] = [
    Singleton((6, 5)),
    Pairwise(1, (6, 5)),
    Pairwise(3, (6,)),
    Recurrent(7),
]
CRITICS = [Markov(), Segment(7), *(HC(history, 0.5) for history in HISTORIES)]
SHAPES = [(5, 0), (5, 2), (3, 5), (1, 0), (1, 1)]
ROWS = 16  # in most batches, so that they share what is compiled


@cache
def built(config: Any, shape: ProblemShape) -> Any:
    return config.build(np.random.default_rng(1), shape, HIDDEN)


@quick_jit
def outputs(critic: Any, batch: IntervalBatch, next_action: Any) -> dict[str, Any]:
    """All that a critic says of a batch."""
    encoding = critic.encode(batch)
    said = {
        "encoding": encoding,
        "value": critic.value(encoding, batch.observation, batch.action),
        "next_value": critic.next_value(batch, next_action),
        "auxiliary_loss": critic.auxiliary_loss(encoding, batch)[0],
    }
    return said | ({"credit": critic.credit(batch)} if hasattr(critic, "history") else {})


@pytest.mark.parametrize("history", HISTORIES, ids=str)
@pytest.mark.parametrize(("max_length", "overlap"), SHAPES)
def test_hc_is_the_papers_sum(history: HistoryConfig, max_length: int, overlap: int) -> None:
    batch, shape = random_batch(max_length, overlap, size=ROWS)
    critic = built(HC(history, 0.5), shape)
    next_action = batch.action[::-1]
    said = outputs(critic, batch, next_action)
    exact = references.exact(critic)
    before, after, whole = (
        references.digests(exact, steps)
        for steps in zip(*references.histories(batch, shape), strict=True)
    )
    current, following = (
        references.mlp(exact.current, np.concatenate(step, 1))[:, 0]
        for step in ((batch.observation, batch.action), (batch.next_observation, next_action))
    )
    np.testing.assert_allclose(said["encoding"].before, before, rtol=0, atol=1e-5)
    np.testing.assert_allclose(said["next_value"] - following, after, rtol=0, atol=1e-5)
    np.testing.assert_allclose(said["encoding"].whole, whole, rtol=0, atol=1e-5)
    np.testing.assert_allclose(said["value"], said["encoding"].before + current, atol=1e-6)


@pytest.mark.parametrize(("max_length", "overlap"), SHAPES)
def test_q_rnn_reads_the_whole_segment(max_length: int, overlap: int) -> None:
    batch, shape = random_batch(max_length, overlap, size=ROWS)
    critic = built(Segment(7), shape)
    next_action = batch.action[::-1]
    said = outputs(critic, batch, next_action)
    exact = references.exact(critic)
    here = np.concatenate([batch.observation, batch.action], 1)
    there = np.concatenate([batch.next_observation, next_action], 1)
    for row, (before, after, _) in enumerate(references.histories(batch, shape)):
        value = references.history_value(exact, np.append(before, here[row : row + 1], 0))
        assert said["value"][row] == pytest.approx(float(value), abs=1e-5)
        value = references.history_value(exact, np.append(after, there[row : row + 1], 0))
        assert said["next_value"][row] == pytest.approx(float(value), abs=1e-5)


@pytest.mark.parametrize("config", CRITICS, ids=str)
@pytest.mark.parametrize("overlap", [0, 2])
def test_a_padded_window_equals_the_unpadded_one(config: Any, overlap: int) -> None:
    """Windows no wider than these intervals need, and as wide as n_max asks for."""
    batch, shape = random_batch(3, overlap, size=ROWS)
    wide = shape._replace(max_length=5)
    rng = np.random.default_rng(0)
    garbage = rng.normal(size=(5 + overlap, ROWS, OBSERVATION + ACTION)).astype(np.float32)
    garbage[: 3 + overlap] = batch.window
    padded = batch._replace(window=garbage, window_mask=np.pad(batch.window_mask, ((0, 2), (0, 0))))
    # The next interval's overlap gets its phase from n_max, which is the same for both.
    critic = built(config, wide)
    a, b = (outputs(critic, each, batch.action) for each in (batch, padded))
    for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True):
        np.testing.assert_allclose(x, y, atol=1e-6)


next_histories = quick_jit(next_history_of, static_argnums=1)


@pytest.mark.parametrize(("max_length", "overlap"), SHAPES)
def test_without_the_phase_the_next_history_has_none_and_is_else_the_same(
    max_length: int, overlap: int
) -> None:
    batch, shape = random_batch(max_length, overlap, size=ROWS)
    window = batch.window.copy()
    window[..., shape.phase_place] = 0
    silent, silent_mask = next_histories(batch._replace(window=window), shape._replace(phase=False))
    assert not silent[..., shape.phase_place].any()
    steps, mask = next_histories(batch, shape)
    assert (steps[..., shape.phase_place] < 0).any() == (overlap > 0)  # where there is a phase
    np.testing.assert_array_equal(silent, steps.at[..., shape.phase_place].set(0))
    np.testing.assert_array_equal(silent_mask, mask)


@pytest.mark.parametrize("config", CRITICS, ids=str)
def test_padding_takes_no_gradient_and_gives_none(config: Any) -> None:
    batch, shape = random_batch(5, 2, size=ROWS)
    critic = built(config, shape)

    def total(window: Any) -> Any:
        b = batch._replace(window=window)
        encoding = critic.encode(b)
        value = critic.value(encoding, b.observation, b.action)
        return jnp.sum(value**2) + critic.auxiliary_loss(encoding, b)[0]

    gradient = np.asarray(quick_jit(jax.grad(total))(batch.window))
    assert not gradient[batch.window_mask == 0].any()


@pytest.mark.parametrize("config", CRITICS, ids=str)
def test_intervals_of_one_step_leave_nothing_to_remember(config: Any) -> None:
    batch, shape = random_batch(1, 0, size=ROWS)
    said = outputs(built(config, shape), batch, batch.action)
    following = batch._replace(observation=batch.next_observation)
    alone = outputs(built(config, shape), following, batch.action)["value"]
    np.testing.assert_allclose(said["next_value"], alone, atol=1e-6)
    if isinstance(config, HC):
        assert not np.any(said["encoding"].before)
    if isinstance(config, Segment):
        assert not np.any(said["encoding"])


@pytest.mark.parametrize("history", HISTORIES, ids=str)
def test_the_regulariser_counts_revealed_intervals_only(history: HistoryConfig) -> None:
    batch, shape = random_batch(5, 0, size=ROWS, seed=1, reveal_tails=False)
    assert 0 < batch.revealed.sum() < ROWS
    assert (batch.reward != batch.interval_reward)[batch.revealed > 0].any()
    critic = built(HC(history, 0.5), shape)
    said = outputs(critic, batch, batch.action)
    seen = batch.revealed > 0
    errors = (np.float64(said["encoding"].whole) - batch.interval_reward)[seen] ** 2
    assert said["auxiliary_loss"] == pytest.approx(0.5 * errors.mean(), rel=1e-5)
    nothing = batch._replace(revealed=np.zeros(ROWS, np.float32))
    assert outputs(critic, nothing, batch.action)["auxiliary_loss"] == 0


@pytest.mark.parametrize("history", HISTORIES, ids=str)
@pytest.mark.parametrize("overlap", [0, 2])
def test_credit_adds_up_to_what_the_interval_adds(history: HistoryConfig, overlap: int) -> None:
    shape = shape_of(5, overlap)
    replay = IntervalReplay(500, shape)
    fill(replay, np.random.default_rng(3))
    critic = built(HC(history, 0.5), shape)
    batches = [batch for batch in replay.in_order(ROWS) if len(batch.position) == ROWS]
    said = [outputs(critic, batch, batch.action) for batch in batches]
    position, length = (
        np.concatenate([getattr(batch, name) for batch in batches])
        for name in ("position", "length")
    )
    credit = np.concatenate([each["credit"] for each in said])
    before, whole = (
        np.concatenate([getattr(each["encoding"], name) for each in said])
        for name in ("before", "whole")
    )
    ends = np.flatnonzero(position == length - 1)
    assert len(ends) > 10
    start = 0
    for end in ends:
        earned = float(whole[end] - before[start])
        assert credit[start : end + 1].sum() == pytest.approx(earned, abs=1e-5)
        start = int(end) + 1


prefix_values = quick_jit(lambda history, window, mask: history.prefix_values(window, mask))


@pytest.mark.parametrize("reach", [1, 2, 5])
def test_pairwise_reaches_exactly_k_steps_back(reach: int) -> None:
    """Changing step j moves what steps later than j + K add only if pairs reach that far."""
    batch, shape = random_batch(8, 0, size=64, episodes=40)
    history = built(HC(Pairwise(reach, (6,)), 0.5), shape).history
    long = batch.length == 8
    window, mask = batch.window[:, long], batch.window_mask[:, long]
    changed = window.copy()
    changed[0] += 1
    a, b = (np.diff(prefix_values(history, w, mask), axis=0) for w in (window, changed))
    moved = np.abs(a - b).max(axis=1) > 1e-6
    assert moved.tolist() == [place <= reach for place in range(8)]


@quick_jit
def both_values(history: Any, window: Any, mask: Any) -> tuple[Any, Any]:
    return history.value(window, mask), history.prefix_values(window, mask)[-1]


@pytest.mark.parametrize("history", HISTORIES, ids=str)
def test_a_history_is_its_last_prefix(history: HistoryConfig) -> None:
    """Also where there are more steps than one tile holds, and where there are none at all."""
    batch, shape = random_batch(5, 2, size=130)
    next_mask = next_histories(batch, shape)[1]
    for mask in (batch.window_mask, next_mask, 0 * batch.window_mask):
        value, last = both_values(built(HC(history, 0.5), shape).history, batch.window, mask)
        np.testing.assert_allclose(value, last, atol=1e-5)


@pytest.mark.parametrize("number", [256, 700])
def test_values_are_computed_where_they_are_wanted(number: int) -> None:
    compute = quick_jit(lambda wanted: values_where(wanted, lambda places: 1.0 + places))
    for share in (0.0, 0.5, 1.0):
        wanted = np.random.default_rng(number).random(number) < share
        expected = np.where(wanted, 1.0 + np.arange(number), 0.0)
        np.testing.assert_array_equal(compute(wanted), expected)
