"""How well a method's credit tells which steps earned the reward."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from belated.training.evaluation import Episode


def correlation_with_hidden_reward(episode: Episode, credit: npt.NDArray[np.float64]) -> float:
    """The correlation of credit with the hidden per-step rewards, over the steps that have both.

    NaN where there is none: the environment has no hidden reward, or one of the two is constant.
    """
    dense = np.array([step.dense_reward for step in episode.steps])
    known = np.isfinite(credit) & np.isfinite(dense)
    if not known.any() or dense[known].std() == 0 or credit[known].std() == 0:
        return float("nan")
    return float(np.corrcoef(credit[known], dense[known])[0, 1])
