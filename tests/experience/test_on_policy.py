"""Rollouts end where intervals do, and never mix lanes or episodes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from episodes import ACTION, OBSERVATION, shape_of
from hypothesis import given
from hypothesis import strategies as st
from rollouts import random_lane

from belated.experience.on_policy import OnPolicy
from belated.experience.rollout import Rollout
from belated.experience.step import Step


class Collector:
    """Takes the learner's place and keeps the rollouts."""

    def __init__(self) -> None:
        self.rollouts: list[Rollout] = []

    def update(self, rollout: Rollout) -> dict[str, float]:
        self.rollouts.append(rollout)
        return {"loss": 0.0}


def experience_for(steps: int, max_length: int, lanes: int) -> OnPolicy:
    return OnPolicy(steps, shape_of(max_length), lanes)


def numbered(lanes: int, steps: int, max_length: int, seed: int) -> list[list[Step]]:
    """Steps that carry their lane and time in the dense reward."""
    rng = np.random.default_rng(seed)
    return [
        [
            step._replace(dense_reward=1_000.0 * lane + time)
            for time, step in enumerate(random_lane(rng, steps, max_length))
        ]
        for lane in range(lanes)
    ]


@given(
    lanes=st.integers(1, 4),
    steps=st.integers(1, 30),
    max_length=st.integers(1, 7),
    seed=st.integers(0, 1_000),
)
def test_a_rollout_holds_whole_intervals_of_each_lane(
    lanes: int, steps: int, max_length: int, seed: int
) -> None:
    experience, collector = experience_for(steps, max_length, lanes), Collector()
    script = numbered(lanes, 120, max_length, seed)
    for time in range(120):
        for lane in range(lanes):
            experience.add(script[lane][time], lane)
        experience.learn(collector, lanes)  # type: ignore[arg-type]
    share = -(-steps // lanes)
    assert len(collector.rollouts) >= 120 // (share + 2 * max_length)
    seen = [-1] * lanes
    for rollout in collector.rollouts:
        assert rollout.mask.shape == (share + max_length - 1, lanes)
        for lane in range(lanes):
            count = int(rollout.mask[:, lane].sum())
            assert rollout.mask[:count, lane].all()
            assert not any(array[count:, lane].any() for array in rollout)
            numbers = rollout.dense_reward[:count, lane] - 1_000 * lane
            first = int(numbers[0])
            assert numbers.tolist() == list(range(first, first + count))
            assert first > seen[lane]
            seen[lane] = first + count - 1
            # It starts and ends between two intervals, at the first chance from its share on.
            assert first == 0 or script[lane][first - 1].interval_end
            ends = [step.interval_end for step in script[lane][first : first + count]]
            assert ends[-1]
            assert count >= share
            assert not any(ends[share - 1 : -1])
            for time, step in enumerate(script[lane][first : first + count]):
                assert (rollout.observation[time, lane] == step.observation).all()
                assert (rollout.next_observation[time, lane] == step.next_observation).all()
                assert (rollout.action[time, lane] == step.action).all()
                assert rollout.reward[time, lane] == np.float32(step.reward)
                assert rollout.terminated[time, lane] == step.terminated
                assert rollout.episode_end[time, lane] == (step.terminated or step.truncated)
                assert rollout.interval_end[time, lane] == step.interval_end
                assert rollout.revealed[time, lane] == step.revealed


def test_one_lane_loses_no_step() -> None:
    experience, collector = experience_for(7, 4, 1), Collector()
    (script,) = numbered(1, 100, 4, 0)
    for step in script:
        experience.add(step, 0)
        experience.learn(collector, 1)  # type: ignore[arg-type]
    numbers = np.concatenate([r.dense_reward[r.mask > 0] for r in collector.rollouts])
    assert numbers.tolist() == list(range(len(numbers)))
    assert len(numbers) > 90


@pytest.mark.parametrize("at", [3, 11, 26])
def test_a_rollout_can_be_saved_anywhere(at: int) -> None:
    script = numbered(3, 60, 5, 1)
    kept: list[Any] = []
    for stop in (None, at):
        experience, collector = experience_for(20, 5, 3), Collector()
        for time in range(60):
            if time == stop:
                state = {name: array.copy() for name, array in experience.state().items()}
                experience = experience_for(20, 5, 3)
                experience.restore(state)
            for lane in range(3):
                experience.add(script[lane][time], lane)
            experience.learn(collector, 3)  # type: ignore[arg-type]
        kept.append(collector.rollouts)
    assert len(kept[0]) == len(kept[1]) > 1
    for a, b in zip(*kept, strict=True):
        for x, y in zip(a, b, strict=True):
            np.testing.assert_array_equal(x, y)


def test_an_episode_that_was_left_loses_its_open_interval() -> None:
    def step(number: int, end: bool) -> Step:
        ones = np.ones(OBSERVATION, np.float32)
        position = number % 2
        return Step(ones, np.ones(ACTION), 1.0, ones, False, False, position, end, end, number)

    experience, collector = experience_for(6, 3, 1), Collector()
    for number, end in enumerate([False, True, False]):
        experience.add(step(number, end), 0)
    experience.start_episode(0)
    for number, end in enumerate([False, True, False, True]):
        experience.add(step(10 + number, end), 0)
        experience.learn(collector, 1)  # type: ignore[arg-type]
    (rollout,) = collector.rollouts
    assert rollout.dense_reward[:, 0].tolist() == [0, 1, 10, 11, 12, 13, 0, 0]
    assert rollout.episode_end[:, 0].tolist() == [0, 1, 0, 0, 0, 0, 0, 0]
