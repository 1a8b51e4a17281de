from __future__ import annotations

import numpy as np

from belated.analysis.agent_figures import draw_credit


def test_credit_is_drawn_with_the_hidden_reward_only_where_there_is_one() -> None:
    credit, rewards = np.arange(6.0), np.zeros(6)
    known = draw_credit(credit, dense=credit, rewards=rewards, ends=[2, 5])
    unknown = draw_credit(credit, dense=credit * np.nan, rewards=rewards, ends=[2, 5])
    assert [len(figure.axes) for figure in (known, unknown)] == [3, 2]
    assert known.axes[1].get_title(loc="left") == "credit of each step"
