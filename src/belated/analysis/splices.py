"""Histories and continuations of intervals, spliced into intervals that were never played."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from belated.analysis.random_play import StepTable
from belated.envs.rewards import IntervalReward, Window

_CANDIDATES = 50
"""How many random pieces the best-fitting one is chosen from."""


class Splice(NamedTuple):
    """The rows at which two histories and two continuations start.

    Histories have c + split rows, continuations length − split. Inside the overlap a split is
    negative.
    """

    length: int
    split: int
    histories: tuple[int, int]
    continuations: tuple[int, int]


def draw_splices(table: StepTable, tries: int, generator: np.random.Generator) -> Iterator[Splice]:
    """Draw splices. A try yields none if there is no second history or continuation."""
    intervals = table.splittable()
    for _ in range(tries):
        start, length, earliest = intervals[generator.integers(len(intervals))]
        split = int(generator.integers(earliest, length))
        history, joint = start - table.overlap, start + split
        size = joint - history
        # Histories of an episode's beginning are padded where others are not.
        fitting = (table.padding <= size) & np.isin(table.padding, [*table.paddings])
        if table.padding[history] == size:
            fitting &= table.padding < size  # nothing but padding is always the same
        others = np.flatnonzero((table.remaining > size) & fitting)
        second_history = _closest(table, others, (history, size), joint, generator)
        others = np.flatnonzero((table.remaining >= length - split) & (table.padding == 0))
        second_continuation = _closest(table, others, (joint, length - split), joint, generator)
        if second_history is not None and second_continuation is not None:
            yield Splice(length, split, (history, second_history), (joint, second_continuation))


def _closest(
    table: StepTable,
    others: npt.NDArray[np.int64],
    piece: tuple[int, int],
    joint: int,
    generator: np.random.Generator,
) -> int | None:
    """Among some random pieces, pick the one that meets the joint at the most similar observation.

    Args:
        table: all steps.
        others: the rows at which pieces of the same size start.
        piece: the first row and the size of the piece to replace.
        joint: the row at which the first history and the first continuation meet.
        generator: draws the candidates.
    """
    start, size = piece
    others = others[abs(others - start) >= size]  # pieces that share steps are too alike
    if not len(others):
        return None
    candidates = others[generator.integers(len(others), size=_CANDIDATES)]
    meets = candidates + (joint - start)  # a history ends at the joint, a continuation starts there
    distances = np.square(table.features[meets] - table.features[joint]).sum(axis=1)
    return int(candidates[distances.argmin()])


def evaluate_splice(reward: IntervalReward, table: StepTable, splice: Splice) -> list[list[float]]:
    """Return the rewards of the four combinations, as [history][continuation]."""
    return [
        [_reward_of(reward, table, splice, history, continuation) for continuation in (0, 1)]
        for history in (0, 1)
    ]


def _reward_of(
    reward: IntervalReward, table: StepTable, splice: Splice, history: int, continuation: int
) -> float:
    before, after = splice.histories[history], splice.continuations[continuation]
    joint = before + table.overlap + splice.split
    places = [*range(before, joint), *range(after, after + splice.length - splice.split)]
    steps = [table.steps[place] for place in places]
    window = Window(table.overlap)
    window.rewards = [step.reward for step in steps]
    window.mask = [bool(table.padding[place] == 0) for place in places]
    if reward.needs_steps:
        window.observations = [step.observation for step in steps]
        window.actions = [step.action for step in steps]
    value = reward(window)
    if not math.isfinite(value):
        raise ValueError(
            f"The interval reward {reward} returned {value} for an interval of {splice.length} "
            "steps that was spliced together; it must be finite for every interval."
        )
    return value
