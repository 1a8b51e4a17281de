"""Which of the paper's interval rewards are past-invariant, and which strongly so."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import numpy as np

from belated.envs.rewards import IntervalReward, Max, Square, Sum, WeightedSum, Window
from belated.tabular.claims.claim import Claim
from belated.tabular.conditions import reward_invariance
from belated.tabular.drmdp import TabularDRMDP, Trajectory
from belated.tabular.unrolling import unroll

_PER_STEP = (-2.0, 0.5, 1.0, 3.0)


def paper_rewards() -> Iterator[Claim]:
    """Check which of the paper's rewards are past-invariant, and which strongly so."""
    rewards: list[tuple[str, IntervalReward, int, bool, bool]] = [
        ("Sum", Sum(), 0, True, True),
        ("Sum with overlap (r_c)", Sum(), 2, True, True),
        ("Weighted sum", WeightedSum((1.0, 0.3, 0.7)), 0, True, True),
        ("Max", Max(), 0, False, False),
        ("Square", Square(), 0, True, False),
    ]
    for name, reward, overlap, order, strong in rewards:
        yield from _invariance_of(name, _one_state(reward, overlap), order, strong)
    # Point Reach: the best column of an interval. Actions stand for the columns 0, 1, 2 and 3.
    columns = dataclasses.replace(
        _one_state(Sum(), 0), reward=_best_action, action_names=(("0", "1", "2", "3"),)
    )
    yield from _invariance_of("Point Reach (best column)", columns, False, False)


def _invariance_of(name: str, problem: TabularDRMDP, order: bool, strong: bool) -> Iterator[Claim]:
    """Check both forms, of which one expects the one and the other."""
    found = reward_invariance(unroll(problem), every_split=True)
    scale = max(map(abs, _PER_STEP))
    for statement, witness, expected in (
        ("is past-invariant", found.order, order),
        ("is strongly past-invariant", found.differences, strong),
    ):
        yield Claim(
            f"Reward {name}", statement, "n = 3, per-step rewards −2, 0.5, 1, 3; every split",
            "either", 1, 0.0 if witness is None else witness.interaction / scale, witness is None,
            expected, "" if witness is None else str(witness),
        )  # fmt: skip


def _best_action(trajectory: Trajectory) -> float:
    return max(float(step[1]) for step in trajectory if step)


def _one_state(reward: IntervalReward, overlap: int) -> TabularDRMDP:
    """One state in which any sequence of per-step rewards is possible."""

    def worth(trajectory: Trajectory) -> float:
        window = Window(overlap)
        for step in trajectory:
            window.rewards.append(0.0 if step is None else _PER_STEP[step[1]])
            window.mask.append(step is not None)
        return reward(window)

    return TabularDRMDP(
        np.ones((1, len(_PER_STEP), 1)), np.ones(1), np.array([0, 0, 1.0]), worth, 0.9,
        overlap=overlap, state_names=("",), action_names=(tuple(f"{r:g}" for r in _PER_STEP),),
    )  # fmt: skip
