from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest
from small_agents import small_agent

from belated.analysis.agent_figures import draw_credit, draw_heatmaps


def test_credit_is_drawn_with_the_hidden_reward_only_where_there_is_one() -> None:
    credit, rewards = np.arange(6.0), np.zeros(6)
    known = draw_credit(credit, dense=credit, rewards=rewards, ends=[2, 5])
    unknown = draw_credit(
        credit, dense=credit * np.nan, rewards=rewards, ends=[2, 5], title="hc after 6 steps"
    )
    assert [len(figure.axes) for figure in (known, unknown)] == [3, 2]
    assert known.axes[1].get_title(loc="left") == "credit of each step"
    assert [figure.get_suptitle() for figure in (known, unknown)] == ["", "hc after 6 steps"]


@pytest.mark.parametrize("over", [0, 10])
def test_the_axes_of_heatmaps_are_labelled(over: int) -> None:
    agent = small_agent(env=gym.make("belated/PointReach-v0", max_steps=20), policy_average=over)
    figure = draw_heatmaps({"one": agent, "another": agent})
    grids = figure.axes[:2]
    assert [axes.get_xlabel() for axes in grids] == ["x", "x"]
    assert [axes.get_ylabel() for axes in grids] == ["y", ""]
