from __future__ import annotations

import statistics
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reward_functions import spread

from belated.envs.rewards import (
    FunctionReward,
    IntervalReward,
    Max,
    Square,
    SquareSum,
    Sum,
    SumSquare,
    WeightedSum,
    Window,
    names_code,
    parse_reward,
)

numbers = st.floats(-100, 100)


def window_of(rewards: list[float], overlap: int = 0) -> Window:
    """The window of an interval whose overlap and steps have these rewards."""
    window = Window(overlap)
    window.start_episode()
    for step, reward in enumerate(rewards):
        window.add_step(np.array([step]), np.array([-step]))
        window.add_reward(reward)
        if step + 1 == overlap:
            window.start_interval()
    return window


@given(st.lists(numbers, min_size=1, max_size=30))
def test_named_rewards_are_what_the_paper_says(rewards: list[float]) -> None:
    window = window_of(rewards)
    mean = statistics.fmean(rewards)
    assert Sum()(window) == pytest.approx(sum(rewards))
    assert Max()(window) == 10 * max(rewards)
    expected = 4 * mean if abs(mean) < 1 else 4 * np.sign(mean) * mean**2
    assert Square()(window) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("rewards", "sum_square", "square_sum"),
    [
        ([3.0], 9.0, 9.0),
        ([-3.0], -9.0, -9.0),
        ([0.0, 0.0], 0.0, 0.0),
        ([1.0, 2.0, -3.0], -4.0, 0.0),  # 1 + 4 − 9; 0²
        ([1.0, 2.0, 3.0, -2.0], 10.0, 4.0),  # 1 + 4 + 9 − 4; 4²/4
        ([-1.0, -2.0, 0.5, 0.0, -1.5], -7.0, -3.2),  # −1 − 4 + 0.25 − 2.25; −4²/5
    ],
)
def test_squares_keep_their_sign(
    rewards: list[float], sum_square: float, square_sum: float
) -> None:
    assert SumSquare()(window_of(rewards)) == pytest.approx(sum_square)
    assert SquareSum()(window_of(rewards)) == pytest.approx(square_sum)


@given(st.lists(numbers, min_size=1, max_size=30))
def test_the_squares_of_an_interval_agree_where_they_should(rewards: list[float]) -> None:
    window = window_of(rewards)
    mean = statistics.fmean(rewards)
    per_step = [SquareSum()(window_of([reward])) for reward in rewards]
    assert SumSquare()(window) == pytest.approx(sum(per_step), abs=1e-9)
    if abs(mean) >= 1:
        assert SquareSum()(window) == pytest.approx(len(rewards) / 4 * Square()(window))
    alike = window_of([mean] * len(rewards))  # then it does not matter what is squared
    assert SquareSum()(alike) == pytest.approx(SumSquare()(alike), abs=1e-9)


whole_numbers = st.integers(-50, 50).map(float)  # with which sums of squares are exact


@st.composite
def quadruples(draw: st.DrawFn) -> list[list[list[float]]]:
    """Two histories of one length, each followed by two continuations of one length."""
    histories, continuations = (
        draw(st.lists(piece, min_size=2, max_size=2))
        for piece in (
            st.lists(whole_numbers, min_size=size, max_size=size)
            for size in (draw(st.integers(1, 5)), draw(st.integers(1, 5)))
        )
    )
    return [[history + continuation for continuation in continuations] for history in histories]


@given(quadruples())
def test_the_sum_of_squares_is_strongly_past_invariant(pieces: list[list[list[float]]]) -> None:
    (a, b), (c, d) = ([SumSquare()(window_of(rewards)) for rewards in row] for row in pieces)
    assert a - b == c - d


@given(quadruples())
def test_the_square_of_the_sum_is_past_invariant(pieces: list[list[list[float]]]) -> None:
    (a, b), (c, d) = ([SquareSum()(window_of(rewards)) for rewards in row] for row in pieces)
    assert np.sign(a - b) == np.sign(c - d)


def test_the_square_of_the_sum_is_not_strongly_past_invariant() -> None:
    """After 0 the continuations 1 and 3 are 4 apart, after 2 they are 8 apart."""
    pieces = [[0.0, 3.0], [0.0, 1.0], [2.0, 3.0], [2.0, 1.0]]
    a, b, c, d = (SquareSum()(window_of(rewards)) for rewards in pieces)
    assert (a - b, c - d) == (4.0, 8.0)


@given(st.lists(numbers, min_size=1, max_size=20), st.integers(0, 5))
def test_overlapping_sum_leaves_out_the_last_c_steps(rewards: list[float], overlap: int) -> None:
    before, steps = rewards[:overlap], rewards[overlap:]
    overlap = len(before)
    if steps:
        window = window_of(rewards, overlap)
        assert Sum()(window) == pytest.approx(sum(rewards[: len(steps)]))


@given(st.lists(numbers, min_size=1, max_size=20))
def test_sum_is_the_weighted_sum_with_weights_one(rewards: list[float]) -> None:
    window = window_of(rewards)
    assert WeightedSum((1.0,) * 20)(window) == pytest.approx(Sum()(window))


def test_weights_start_with_the_overlap() -> None:
    window = window_of([1.0, 2.0, 3.0, 4.0], overlap=2)
    assert window.length == 2
    assert WeightedSum((1000.0, 100.0, 10.0, 1.0, 0.1))(window) == 1234.0


def test_a_function_sees_the_window_and_its_mask() -> None:
    seen: list[Any] = []

    def reward(observations: Any, actions: Any, rewards: Any, mask: Any) -> int:
        seen.append((observations.tolist(), actions.tolist(), rewards.tolist(), mask.tolist()))
        return 7

    window = Window(overlap=2)
    window.start_episode()
    for step in range(3):
        window.add_step(np.array([step]), np.array([-step]))
        window.add_reward(float(step))
    assert FunctionReward(reward)(window) == 7.0
    window.start_interval()
    window.add_step(np.array([3]), np.array([-3]))
    window.add_reward(3.0)
    FunctionReward(reward)(window)
    assert seen == [
        (
            [[0], [0], [0], [1], [2]],
            [[0], [0], [0], [-1], [-2]],
            [0.0, 0.0, 0.0, 1.0, 2.0],
            [False, False, True, True, True],
        ),
        ([[1], [2], [3]], [[-1], [-2], [-3]], [1.0, 2.0, 3.0], [True, True, True]),
    ]


@pytest.mark.parametrize(
    "reward",
    [Sum(), Max(), Square(), SumSquare(), SquareSum(), WeightedSum((0.1, 1 / 3, 2.0))],
)
def test_text_is_read_back_as_the_same_reward(reward: IntervalReward) -> None:
    assert parse_reward(str(reward)) == reward
    assert not names_code(str(reward))


def test_a_function_is_found_by_its_name() -> None:
    reward = parse_reward("reward_functions:spread")
    assert str(reward) == "reward_functions:spread"
    assert parse_reward(str(reward)) == reward
    assert reward(window_of([1.0, 5.0, 2.0])) == 4.0


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("summ", "There are sum, max, square"),
        (3, "There are sum, max, square"),
        ("sum-squares", "There are sum, max, square, sum-square, square-sum, weighted"),
        ("sum-square:2", "sum-square takes no arguments"),
        ("weighted:1,two", "Cannot read the reward"),
        ("weighted:1,nan", "finite"),
        ("no_such_module:f", "Cannot import"),
        ("math:no_such_function", "Cannot import"),
        ("math:pi", "found 3.14"),
        ("math:sqrt", "must take"),
        (lambda observations: 0.0, "must take"),
    ],
)
def test_bad_rewards_are_refused(spec: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        parse_reward(spec)


@pytest.mark.parametrize(
    ("reward", "said"),
    [
        (Max(), "max reward is not defined for overlapping"),
        (Square(), "square reward is not defined for overlapping"),
        (SumSquare(), "sum-square reward is not defined for overlapping"),
        (SquareSum(), "square-sum reward is not defined for overlapping"),
        (WeightedSum((1.0,) * 20), "need 25"),
        (FunctionReward(spread), "must also take the mask"),
    ],
)
def test_rewards_that_are_not_defined_for_an_overlap_say_so(
    reward: IntervalReward, said: str
) -> None:
    with pytest.raises(ValueError, match=said):
        reward.check(max_length=20, overlap=5)


def test_a_function_must_return_a_number() -> None:
    with pytest.raises(ValueError, match="must return a number, got None"):
        FunctionReward(lambda observations, actions, rewards: None)(window_of([1.0]))  # type: ignore[arg-type, return-value]
