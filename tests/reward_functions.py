"""Interval rewards of a user's own, to be found by name."""

from __future__ import annotations

from typing import Any

import numpy as np


def spread(observations: Any, actions: Any, rewards: Any) -> float:
    return float(np.ptp(rewards))


def masked_mean_action(observations: Any, actions: Any, rewards: Any, mask: Any) -> float:
    return float(actions[mask].mean())


def reward_is_large(reward: float, info: dict[str, Any]) -> bool:
    return reward > 5
