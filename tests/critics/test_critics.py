"""The critics against the paper's formulas, written as loops over single steps."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from batches import fill, random_batch
from episodes import ACTION, OBSERVATION, shape_of

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


def seeded() -> np.random.Generator:
    return np.random.default_rng(1)


def history_of(history: Any, steps: np.ndarray[Any, Any]) -> float:
    """H of a list of real steps (m, D + A), straight from the paper's definitions."""
    if len(steps) == 0:
        return 0.0
    x = jnp.asarray(steps)
    if hasattr(history, "reader"):
        hidden = jnp.zeros((history.reader.gru.units, 1))
        for step in x:
            hidden = history.reader.step(hidden, step[None])
        return float(history.head(hidden[:, 0])[0])
    total = 0.0
    for k, term in enumerate(history.terms):
        for j in range(len(x) - k):
            pair = x[j] if k == 0 else jnp.concatenate([x[j], x[j + k]])
            total += float(term(pair[None])[0, 0])
    return total


def real_steps(batch: IntervalBatch, row: int, shape: ProblemShape, end: int) -> Any:
    """The real steps of a window before t_i + end."""
    stop = shape.overlap + end
    return batch.window[:stop, row][batch.window_mask[:stop, row] > 0]


def next_history(batch: IntervalBatch, row: int, shape: ProblemShape) -> Any:
    """The history of the step that follows, after an interval's end with its own phases."""
    position, length = batch.position[row], batch.length[row]
    if position < length - 1:
        return real_steps(batch, row, shape, position + 1)
    last = slice(length, shape.overlap + length)  # the window's last c places
    steps = batch.window[last, row].copy()
    steps[:, OBSERVATION - 1] = np.arange(-shape.overlap, 0) / shape.max_length
    return steps[batch.window_mask[last, row] > 0]


@pytest.mark.parametrize("history", HISTORIES, ids=str)
@pytest.mark.parametrize(("max_length", "overlap"), SHAPES)
def test_hc_is_the_papers_sum(history: HistoryConfig, max_length: int, overlap: int) -> None:
    batch, shape = random_batch(max_length, overlap, size=12)
    critic = HC(history, 0.5).build(seeded(), shape, HIDDEN)
    encoding = critic.encode(batch)
    next_action = jnp.asarray(batch.action[::-1])
    next_step = jnp.concatenate([batch.next_observation, next_action], 1)
    following = critic.next_value(batch, next_action) - critic.current(next_step)[:, 0]
    for row in range(12):
        before = history_of(critic.history, real_steps(batch, row, shape, batch.position[row]))
        after = history_of(critic.history, next_history(batch, row, shape))
        whole = history_of(critic.history, real_steps(batch, row, shape, batch.length[row]))
        assert encoding.before[row] == pytest.approx(before, abs=1e-5)
        assert following[row] == pytest.approx(after, abs=1e-5)
        assert encoding.whole[row] == pytest.approx(whole, abs=1e-5)
    current = critic.current(jnp.concatenate([batch.observation, batch.action], 1))[:, 0]
    value = critic.value(encoding, batch.observation, batch.action)
    np.testing.assert_allclose(value, encoding.before + current, atol=1e-6)


@pytest.mark.parametrize(("max_length", "overlap"), SHAPES)
def test_q_rnn_reads_the_whole_segment(max_length: int, overlap: int) -> None:
    batch, shape = random_batch(max_length, overlap, size=12)
    critic = Segment(7).build(seeded(), shape, HIDDEN)
    encoding = critic.encode(batch)
    value = critic.value(encoding, batch.observation, batch.action)
    next_action = jnp.asarray(batch.action[::-1])
    next_value = critic.next_value(batch, next_action)
    for row in range(12):
        here = np.concatenate([batch.observation[row], batch.action[row]])[None]
        steps = np.concatenate([real_steps(batch, row, shape, batch.position[row]), here])
        assert value[row] == pytest.approx(history_of(critic, steps), abs=1e-5)
        there = np.concatenate([batch.next_observation[row], next_action[row]])[None]
        steps = np.concatenate([next_history(batch, row, shape), there])
        assert next_value[row] == pytest.approx(history_of(critic, steps), abs=1e-5)


@pytest.mark.parametrize("config", CRITICS, ids=str)
@pytest.mark.parametrize("overlap", [0, 2])
def test_a_padded_window_equals_the_unpadded_one(config: Any, overlap: int) -> None:
    """The same intervals under a larger n_max: more padding, and phases rescaled back."""
    batch, shape = random_batch(4, overlap, size=16)
    wide = shape._replace(max_length=4 + 3)
    padding = ((0, 3), (0, 0))
    rng = np.random.default_rng(0)
    garbage = rng.normal(size=(4 + overlap + 3, 16, OBSERVATION + ACTION)).astype(np.float32)
    garbage[: 4 + overlap] = batch.window
    padded = batch._replace(window=garbage, window_mask=np.pad(batch.window_mask, padding))
    critic = config.build(seeded(), shape, HIDDEN)
    wide_critic = config.build(seeded(), wide, HIDDEN)
    if overlap > 0 and config.needs:
        # The next interval's overlap gets its phase from n_max: give both the same one.
        object.__setattr__(wide_critic, "shape", shape)
    a = critic.encode(batch), critic.next_value(batch, batch.action)
    b = wide_critic.encode(padded), wide_critic.next_value(padded, batch.action)
    for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True):
        np.testing.assert_allclose(x, y, atol=1e-6)


@pytest.mark.parametrize("config", CRITICS, ids=str)
def test_padding_takes_no_gradient_and_gives_none(config: Any) -> None:
    batch, shape = random_batch(5, 2, size=16)
    critic = config.build(seeded(), shape, HIDDEN)

    def total(window: Any) -> Any:
        b = batch._replace(window=window)
        encoding = critic.encode(b)
        value = critic.value(encoding, b.observation, b.action)
        return jnp.sum(value**2) + critic.auxiliary_loss(encoding, b)[0]

    gradient = jax.grad(total)(jnp.asarray(batch.window))
    assert not jnp.any(gradient[batch.window_mask == 0])


@pytest.mark.parametrize("config", CRITICS, ids=str)
def test_intervals_of_one_step_leave_nothing_to_remember(config: Any) -> None:
    batch, shape = random_batch(1, 0, size=16)
    critic = config.build(seeded(), shape, HIDDEN)
    alone = critic.value(critic.encode(batch), batch.next_observation, batch.action)
    np.testing.assert_allclose(critic.next_value(batch, batch.action), alone, atol=1e-6)
    if isinstance(config, HC):
        assert not np.any(critic.encode(batch).before)
    if isinstance(config, Segment):
        assert not np.any(critic.encode(batch))


def test_the_regulariser_counts_revealed_intervals_only() -> None:
    batch, shape = random_batch(5, 0, size=64, reveal_tails=False)
    assert 0 < batch.revealed.sum() < 64
    critic = HC(Singleton((6,)), 0.7).build(seeded(), shape, HIDDEN)
    encoding = critic.encode(batch)
    seen = batch.revealed > 0
    errors = (np.float64(encoding.whole) - batch.interval_reward)[seen] ** 2
    assert critic.auxiliary_loss(encoding, batch)[0] == pytest.approx(0.7 * errors.mean(), rel=1e-5)
    nothing = batch._replace(revealed=np.zeros(64, np.float32))
    assert critic.auxiliary_loss(encoding, nothing)[0] == 0


@pytest.mark.parametrize("history", HISTORIES, ids=str)
@pytest.mark.parametrize("overlap", [0, 2])
def test_credit_adds_up_to_what_the_interval_adds(history: HistoryConfig, overlap: int) -> None:
    shape = shape_of(5, overlap)
    replay = IntervalReplay(500, shape)
    fill(replay, np.random.default_rng(3))
    critic = HC(history, 0.5).build(seeded(), shape, HIDDEN)
    (batch,) = replay.in_order(500)
    credit, encoding = np.asarray(critic.credit(batch)), critic.encode(batch)
    ends = np.flatnonzero(batch.position == batch.length - 1)
    start = 0
    for end in ends:
        earned = float(encoding.whole[end] - encoding.before[start])
        assert credit[start : end + 1].sum() == pytest.approx(earned, abs=1e-5)
        start = int(end) + 1


@pytest.mark.parametrize("reach", [1, 2, 5])
def test_pairwise_reaches_exactly_k_steps_back(reach: int) -> None:
    """Changing step j moves what steps later than j + K add only if pairs reach that far."""
    batch, shape = random_batch(8, 0, size=64, episodes=40)
    history = HC(Pairwise(reach, (6,)), 0.5).build(seeded(), shape, HIDDEN).history
    long = batch.length == 8
    window, mask = batch.window[:, long], batch.window_mask[:, long]
    changed = window.copy()
    changed[0] += 1
    a, b = (np.diff(history.prefix_values(w, mask), axis=0) for w in (window, changed))
    moved = np.abs(a - b).max(axis=1) > 1e-6
    assert moved.tolist() == [place <= reach for place in range(8)]


@pytest.mark.parametrize("history", HISTORIES, ids=str)
def test_a_history_is_its_last_prefix(history: HistoryConfig) -> None:
    """Also where there are more steps than one tile holds, and where there are none at all."""
    batch, shape = random_batch(5, 2, size=130)
    built = HC(history, 0.5).build(seeded(), shape, HIDDEN).history
    for mask in (batch.window_mask, next_history_of(batch, shape)[1], 0 * batch.window_mask):
        last = built.prefix_values(batch.window, mask)[-1]
        np.testing.assert_allclose(built.value(batch.window, mask), last, atol=1e-5)


@pytest.mark.parametrize("number", [256, 700])
@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_values_are_computed_where_they_are_wanted(number: int, share: float) -> None:
    wanted = np.random.default_rng(number).random(number) < share
    values = values_where(jnp.asarray(wanted), lambda places: 1.0 + places)
    np.testing.assert_array_equal(values, np.where(wanted, 1.0 + np.arange(number), 0.0))
