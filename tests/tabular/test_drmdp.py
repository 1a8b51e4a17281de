"""Problems are validated, and unrolling lists what can happen."""

from typing import Any

import numpy as np
import pytest

from belated.tabular import TabularDRMDP, examples, unroll

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
