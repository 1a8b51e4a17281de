"""Problems are validated, and unrolling lists what can happen."""

import dataclasses
from typing import Any

import numpy as np
import pytest

from belated.tabular import TabularDRMDP, TabularEnv, examples, q_values, unroll

OK: dict[str, Any] = {
    "transition": np.full((2, 2, 2), 0.5),
    "start": [0.5, 0.5],
    "lengths": [0.5, 0.5],
    "reward": len,
    "gamma": 0.9,
}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"transition": np.full((2, 2, 3), 0.5)}, "shape"),
        ({"transition": np.full((2, 2, 2), 0.6)}, r"p\(·\|0, 0\)"),
        ({"start": [0.5, 0.6]}, "start"),
        ({"start": [1.0]}, "start"),
        ({"start": [-0.5, 1.5]}, "start"),
        ({"lengths": [0.5, 0.6]}, "lengths"),
        ({"lengths": []}, "lengths"),
        ({"lengths": [1.0, 0.0]}, "zeros"),
        ({"gamma": 0.0}, "gamma"),
        ({"gamma": 1.1}, "gamma"),
        ({"overlap": -1}, "overlap"),
        ({"overlap": 1.5}, "overlap must be a whole number, got 1.5"),
        ({"start": [0.5, 0.500008]}, "start must be a distribution.*1.000008"),
        ({"start": [np.nan, 1.0]}, "start must be a distribution"),
        ({"start": ["a", "b"]}, "start must be an array of numbers"),
        ({"reward": 3.0}, "reward must be a function of a trajectory, got 3.0"),
        ({"gamma": "high"}, "gamma must be a finite number"),
        ({"gamma": 1.0}, "With γ = 1 every episode must end, but from the state 0 no end"),
        ({"ends": "sometimes"}, "ends must be one of reveal, absorb"),
        ({"state_names": ("a",)}, "There are 2 states, but names for 1"),
        ({"terminal": (2,)}, "terminal"),
        ({"terminal": (0,)}, "cannot start"),
        ({"actions": (1, 3)}, "actions"),
    ],
)
def test_bad_problems_are_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        TabularDRMDP(**OK | change)


def test_too_large_problems_are_refused() -> None:
    with pytest.raises(ValueError, match="too many"):
        unroll(TabularDRMDP(**OK), limit=5)


@pytest.mark.parametrize("overlap", [0, 1, 2])
def test_every_situation_is_listed_once(overlap: int) -> None:
    unrolled = unroll(TabularDRMDP(**OK | {"overlap": overlap}))
    pads = [sum(4**k for k in range(overlap)) + 4**overlap, 1][overlap == 0]
    # Any steps of the overlap (fewer at an episode's start), none or one of the interval, a state.
    assert len(unrolled.nodes) == len(set(unrolled.nodes)) == pads * (1 + 4) * 2
    assert len(unrolled.node) == 2 * len(unrolled.nodes)


def test_probabilities_add_up_to_one_unless_the_episode_may_end() -> None:
    endless = unroll(TabularDRMDP(**OK))
    np.testing.assert_allclose(endless.transition.sum(axis=1), 1)
    ending = unroll(examples.fixed_point_bias())
    last = (ending.state == 2) | (ending.state == 3)
    np.testing.assert_allclose(np.asarray(ending.transition.sum(axis=1))[:, 0], ~last)


def test_hazards_are_conditional_probabilities() -> None:
    problem = TabularDRMDP(**OK | {"lengths": [0.2, 0.0, 0.8]})
    assert [problem.hazard(k) for k in range(3)] == pytest.approx([0.2, 0.0, 1.0])


@pytest.mark.parametrize("value", [np.nan, np.inf, "a lot", None, [1.0]])
def test_a_reward_that_is_no_finite_number_names_the_segment(value: Any) -> None:
    names = {"state_names": ("left", "right"), "action_names": (("stay", "go"),) * 2}
    problem = TabularDRMDP(**OK | names | {"reward": lambda trajectory: value})
    with pytest.raises(ValueError, match=r"reward of the interval left stay is .* finite number"):
        unroll(problem)


def test_without_a_discount_the_state_that_never_ends_is_named() -> None:
    trap = np.zeros((3, 1, 3))
    trap[0, 0] = [0, 0.5, 0.5]
    trap[1, 0] = [0, 1, 0]
    how: dict[str, Any] = {
        "transition": trap, "start": [1, 0, 0], "lengths": [1], "reward": len, "terminal": (2,),
        "state_names": ("start", "trap", "end"),
    }  # fmt: skip
    with pytest.raises(ValueError, match="from the state trap no end can be reached"):
        TabularDRMDP(**how, gamma=1.0)
    assert TabularDRMDP(**how, gamma=0.9).gamma == 0.9


def test_time_goes_on_behind_an_absorbing_end() -> None:
    """Both ways to read an end; figures by hand."""
    reveal = unroll(examples.early_end())
    absorb = unroll(examples.early_end(ends="absorb"))
    policy = [(each.action == 0).astype(float) for each in (reveal, absorb)]
    q = {
        (ends, unrolled.problem.state_names[start], action): value
        for ends, unrolled, at in (("reveal", reveal, policy[0]), ("absorb", absorb, policy[1]))
        for node, action, value in zip(
            unrolled.node, unrolled.action, q_values(unrolled, at), strict=True
        )
        if unrolled.nodes[node].state == 2
        for start, _ in [unrolled.nodes[node].history[0]]
    }
    assert [q["reveal", "rich", a] for a in (0, 1)] == pytest.approx([10, 5.5])
    assert [q["absorb", "rich", a] for a in (0, 1)] == pytest.approx([5, 5.5])
    assert [q["reveal", "poor", a] for a in (0, 1)] == pytest.approx([0, 0.5])
    assert [q["absorb", "poor", a] for a in (0, 1)] == pytest.approx([0, 0.5])


def test_what_lies_behind_the_end_must_be_worth_nothing() -> None:
    problem = examples.early_end(ends="absorb")
    with pytest.raises(ValueError, match="Behind the end, the end, the end, the end is worth 3"):
        unroll(dataclasses.replace(problem, reward=len))


def test_an_environment_s_end_reveals() -> None:
    with pytest.raises(ValueError, match="ends='reveal'"):
        TabularEnv(examples.early_end(ends="absorb"))
