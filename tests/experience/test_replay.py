"""The replay against a plain list of everything that was ever added."""

from __future__ import annotations

import itertools
import resource
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from batches import fill
from episodes import ACTION, OBSERVATION, shape_of
from hypothesis import given
from hypothesis import strategies as st

from belated.experience.batch import OPTIONAL, IntervalBatch
from belated.experience.replay import IntervalReplay
from belated.experience.step import ProblemShape, Step

shapes = st.builds(shape_of, st.integers(1, 7), st.integers(0, 4))


MEMORY = Path("/proc/self/statm")


def megabytes() -> float:
    """What this process holds in memory."""
    return int(MEMORY.read_text().split()[1]) * resource.getpagesize() / 2**20


def tagged(tag: int, phase: float = 0.0) -> np.ndarray[Any, np.dtype[np.float32]]:
    """An observation that tells which step it belongs to."""
    return np.array([tag, -tag, tag / 2, phase], np.float32)


def reward_of(tag: int) -> float:
    """The reward of an interval that ends with this step: neither rising nor falling."""
    return 1000.0 + 37 * tag % 101


def plain_step(tag: int, position: int, end: bool) -> Step:
    following = tagged(tag + 1)
    return Step(tagged(tag), np.zeros(ACTION), 0.0, following, False, False, position, end, end)


class Reference:
    """All steps ever added to a lane, with their episodes and intervals, and no ring at all."""

    def __init__(self, size: int, shape: ProblemShape) -> None:
        self.size = size
        self.shape = shape
        self.rows: list[tuple[str, int]] = []  # ("step", index) or ("final", index)
        self.steps: list[dict[str, Any]] = []
        self.intervals: list[list[int]] = []

    def available(self) -> dict[int, dict[str, Any]]:
        """The steps that may be sampled, by their tag: no row of their window is overwritten."""
        oldest = len(self.rows) - self.size
        found = {}
        for interval in self.intervals:
            first = self.steps[interval[0]]
            reach = min(self.shape.overlap, first["time"])
            if first["row"] - reach >= oldest:
                for tag in interval:
                    window = range(interval[0] - reach, interval[-1] + 1)
                    found[tag] = self.steps[tag] | {"interval": interval, "window": list(window)}
        return found


@st.composite
def scripts(draw: st.DrawFn) -> list[tuple[list[int], bool, bool]]:
    """Episodes as lists of interval lengths, whether they terminate, whether the tail is revealed.

    Lengths are clipped to the declared maximum by the test.
    """
    episode = st.tuples(
        st.lists(st.integers(1, 7), min_size=1, max_size=4), st.booleans(), st.booleans()
    )
    return draw(st.lists(episode, min_size=1, max_size=8))


def write(
    replay: IntervalReplay, reference: Reference, script: Any, shape: ProblemShape, lane: int = 0
) -> None:
    tag = len(reference.steps)
    for lengths, terminates, tail_revealed in script:
        lengths = [min(length, shape.max_length) for length in lengths]
        time, total = 0, sum(lengths)
        for number, length in enumerate(lengths):
            interval = []
            for position in range(length):
                last = time == total - 1
                end = position == length - 1
                revealed = end and (tail_revealed or number < len(lengths) - 1)
                following = 0.0 if end else (position + 1) / shape.max_length
                replay.add(
                    Step(
                        observation=tagged(tag, position / shape.max_length),
                        action=np.full(ACTION, tag / 100, np.float32),
                        reward=reward_of(tag) if revealed else 0.0,
                        next_observation=tagged(-1 if last else tag + 1, following),
                        terminated=last and terminates,
                        truncated=last and not terminates,
                        position=position,
                        interval_end=end,
                        revealed=revealed,
                        dense_reward=tag / 7,
                    ),
                    lane,
                )
                reference.steps.append(
                    {"row": len(reference.rows), "time": time, "position": position,
                     "terminated": last and terminates, "last": last, "revealed": revealed}
                )  # fmt: skip
                reference.rows.append(("step", tag))
                interval.append(tag)
                tag, time = tag + 1, time + 1
            if time == total:
                reference.rows.append(("final", tag))
            reference.intervals.append(interval)
    # A closed interval needs the row of the observation that followed it.


def check(batch: IntervalBatch, reference: Reference, shape: ProblemShape) -> set[int]:
    """Compare every number of a batch with the reference and return the tags in it."""
    available = reference.available()
    width = shape.overlap + shape.max_length
    for row in range(len(batch.reward)):
        tag = int(batch.observation[row, 0])
        assert tag in available
        step = available[tag]
        interval = step["interval"]
        last = reference.steps[interval[-1]]
        assert batch.position[row] == step["position"]
        assert batch.length[row] == len(interval)
        assert batch.terminated[row] == step["terminated"]
        assert batch.action[row, 0] == np.float32(tag / 100)
        assert batch.dense_reward[row] == np.float32(tag / 7)
        assert batch.next_observation[row, 0] == (-1 if step["last"] else tag + 1)
        end = tag == interval[-1]
        assert batch.reward[row] == (reward_of(tag) if end and step["revealed"] else 0.0)
        assert batch.revealed[row] == last["revealed"]
        if last["revealed"]:
            assert batch.interval_reward[row] == reward_of(interval[-1])
        assert batch.window_end[row, 0] == (-1 if last["last"] else interval[-1] + 1)
        for place in range(width):
            offset = place - shape.overlap
            there = interval[0] + offset
            real = there in step["window"]
            assert batch.window_mask[place, row] == real
            if real:
                assert batch.window[place, row, 0] == there
                assert batch.window[place, row, OBSERVATION] == np.float32(there / 100)
                phase = np.float32(offset / shape.max_length)
                assert batch.window[place, row, OBSERVATION - 1] == phase
            else:
                assert not batch.window[place, row].any()
    revealed = [
        s["interval"] for s in available.values() if reference.steps[s["interval"][-1]]["revealed"]
    ]
    for bounds, power in ((batch.reward_bounds, 0), (batch.mean_reward_bounds, 1)):
        rewards = [reward_of(i[-1]) / len(i) ** power for i in revealed] or [np.inf]
        highest = max(rewards) if revealed else -np.inf
        np.testing.assert_array_equal(bounds, np.array([min(rewards), highest], np.float32))
    return {int(tag) for tag in batch.observation[:, 0]}


@given(scripts(), shapes, st.integers(0, 60), st.integers(0, 2**31))
def test_batches_hold_what_was_added_and_nothing_that_was_overwritten(
    script: Any, shape: ProblemShape, spare: int, seed: int
) -> None:
    size = shape.overlap + shape.max_length + 2 + spare
    replay, reference = IntervalReplay(size, shape), Reference(size, shape)
    rng = np.random.default_rng(seed)
    for episode in script:
        write(replay, reference, [episode], shape)
        available = reference.available()
        assert len(replay) == len(available)
        if available:
            check(replay.sample(rng, 16), reference, shape)
    everything: set[int] = set()
    for batch in replay.in_order(batch_size=7):
        everything |= check(batch, reference, shape)
    assert everything == set(reference.available())


def test_a_step_can_be_sampled_as_soon_as_its_interval_ends_and_not_before() -> None:
    replay = IntervalReplay(50, shape_of(3))
    for tag in range(6):
        end = tag % 3 == 2
        replay.add(plain_step(tag, tag % 3, end))
        assert len(replay) == 3 * ((tag + 1) // 3)
        if end:  # the observation that followed is known, although no step was taken in it
            batch = next(replay.in_order(batch_size=50))
            assert batch.next_observation[-1, 0] == tag + 1


def test_every_available_step_is_equally_likely() -> None:
    replay = IntervalReplay(60, shape_of(4, 2), lanes=2)
    rng = np.random.default_rng(0)
    fill(replay, rng, episodes=20, lane=0)
    fill(replay, rng, episodes=3, lane=1)
    batch = replay.sample(rng, 40_000)
    _, counts = np.unique(batch.observation[:, 0], return_counts=True)
    assert len(counts) == len(replay)
    expected = 40_000 / len(replay)
    assert np.abs(counts - expected).max() < 5 * np.sqrt(expected)


def test_lanes_do_not_disturb_each_other() -> None:
    shape = shape_of(4, 2)
    together = IntervalReplay(200, shape, lanes=2)
    alone = [IntervalReplay(100, shape) for _ in range(2)]
    episodes = [fill(alone[lane], np.random.default_rng(lane), episodes=9) for lane in range(2)]
    interleaved = itertools.zip_longest(*(itertools.chain(*lane) for lane in episodes))
    for steps in interleaved:
        for lane, step in enumerate(steps):
            if step is not None:
                together.add(step, lane)
    expected = [*alone[0].in_order(50), *alone[1].in_order(50)]
    for a, b in zip(together.in_order(50), expected, strict=True):
        for x, y in zip(a, b, strict=True):
            np.testing.assert_array_equal(x, y)


def test_an_abandoned_episode_leaves_no_trace_in_later_windows() -> None:
    shape = shape_of(3, 2)
    for steps_of_first in (3, 4):  # cut at an interval's end, and inside one
        replay = IntervalReplay(50, shape)
        for tag in range(steps_of_first):
            end = tag % 3 == 2
            replay.add(plain_step(tag, tag % 3, end))
        replay.start_episode()
        for tag in range(10, 13):
            end = tag == 12
            replay.add(plain_step(tag, tag - 10, end))
        batch = next(replay.in_order(50))
        assert batch.observation[:, 0].tolist() == [0, 1, 2, 10, 11, 12]
        assert batch.next_observation[:, 0].tolist() == [1, 2, 3, 11, 12, 13]
        assert batch.window_mask[:, 3].tolist() == [0, 0, 1, 1, 1]


@given(st.lists(scripts(), min_size=1, max_size=3), scripts(), shapes, st.integers(0, 40))
def test_a_restored_replay_goes_on_as_the_saved_one(
    before: Any, after: Any, shape: ProblemShape, spare: int
) -> None:
    """Rows are saved a few at a time, each when it is settled and never again."""
    size = shape.overlap + shape.max_length + 2 + spare
    replay = IntervalReplay(size, shape)
    reference = Reference(size, shape)
    saved: list[tuple[int, Any]] = []
    (ring,), done = replay.rings, 0
    for script in before:
        write(replay, reference, script, shape)
        first = max(done, ring.oldest)
        saved.append((first, ring.records(first, ring.settled)))
        done = ring.settled
    copy = IntervalReplay(size, shape)
    for first, records in saved:
        copy.rings[0].put(first, records)
    copy.restore(replay.state())
    second = Reference(size, shape)
    second.__dict__.update(
        {k: list(v) if isinstance(v, list) else v for k, v in vars(reference).items()}
    )
    write(replay, reference, after, shape)
    write(copy, second, after, shape)
    for a, b in zip(replay.in_order(9), copy.in_order(9), strict=True):
        for x, y in zip(a, b, strict=True):
            np.testing.assert_array_equal(x, y)
    np.testing.assert_array_equal(ring.duration, copy.rings[0].duration)


@pytest.mark.parametrize("asked", [set(), {"window"}, {"dense_reward", "mean_reward_bounds"}])
def test_what_nobody_needs_is_not_gathered_and_the_rest_is_the_same(asked: set[str]) -> None:
    batches = []
    for needs in (OPTIONAL, frozenset(asked)):
        replay = IntervalReplay(300, shape_of(4, 2), needs=needs)
        fill(replay, np.random.default_rng(0))
        batches.append(replay.sample(np.random.default_rng(1), 20))
    for name, full, lean in zip(IntervalBatch._fields, *batches, strict=True):
        missing = name in OPTIONAL | {"window_mask"} and name.removesuffix("_mask") not in asked
        assert (lean is None) == missing, name
        if not missing:
            np.testing.assert_array_equal(full, lean)


def test_an_unknown_need_is_refused() -> None:
    with pytest.raises(ValueError, match=r"cannot have next_action; a part may ask for dense"):
        IntervalReplay(300, shape_of(4), needs=frozenset({"next_action"}))


def test_a_million_steps_of_halfcheetah_take_little_more_than_their_own_bytes() -> None:
    steps, observation, action = 1_000_000, 18, 6
    replay = IntervalReplay(steps, ProblemShape(observation, action, 20, 0))
    # observation, action, two rewards, position, length, time, terminated, revealed
    raw = steps * (4 * observation + 4 * action + 2 * 4 + 3 * 4 + 2)
    assert replay.nbytes < 1.25 * raw


@pytest.mark.skipif(not MEMORY.exists(), reason="this system does not tell a process's memory")
def test_memory_is_taken_when_rows_come_and_not_before() -> None:
    before = megabytes()
    replay = IntervalReplay(2**26, shape_of(3, 0))
    replay.add(plain_step(0, 0, True))
    replay.restore(replay.state())
    assert replay.nbytes > 2**30
    assert megabytes() - before < 64


def test_a_replay_cannot_claim_rows_that_it_does_not_have() -> None:
    replay, rows = IntervalReplay(2**20, shape_of(3, 0)), 2**20 - 1
    claimed = {"0.counters": np.array([0, 0, rows, rows, 0])}
    with pytest.raises(ValueError, match="rows of a replay are missing"):
        replay.restore(replay.state() | claimed)


def test_a_replay_too_small_for_a_window_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 27 rows"):
        IntervalReplay(26, shape_of(20, 5))
