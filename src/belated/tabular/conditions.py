"""When the past does not matter: past-invariance, strong past-invariance, and what follows.

Each check is exact. It looks at everything that can happen in a problem and returns a witness
where the condition fails.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from belated.tabular.drmdp import Floats, Trajectory, Unrolled
from belated.tabular.values import TOLERANCE

Tables = tuple[list[Trajectory], list[Trajectory], Floats]
"""Histories, continuations, and a table of what each pair is worth, NaN where it cannot occur."""


@dataclass(frozen=True)
class Witness:
    """Two histories and two continuations: what each pair is worth."""

    histories: tuple[Trajectory, Trajectory]
    continuations: tuple[Trajectory, Trajectory]
    values: tuple[tuple[float, float], tuple[float, float]]

    def __str__(self) -> str:
        (a, b), (c, d) = self.values
        return (
            f"after {self.histories[0]}: {a:.4g} for {self.continuations[0]}, {b:.4g} for "
            f"{self.continuations[1]}; after {self.histories[1]}: {c:.4g} and {d:.4g}"
        )


@dataclass(frozen=True)
class Invariance:
    """Whether orders and differences depend on the past, with a witness if they do.

    Attributes:
        order: None if the order of continuations never depends on the history (past-invariance).
        differences: None if their differences never do either (strong past-invariance).
    """

    order: Witness | None
    differences: Witness | None


def reward_invariance(unrolled: Unrolled, *, every_split: bool = False) -> Invariance:
    """Check Definition 2 (past-invariance) and the appendix's strong form.

    Args:
        unrolled: the problem.
        every_split: also split inside the overlap. The paper's definition asks for histories of
            at least c steps; for c ≥ 2 that is too weak for the claims built on it.
    """
    return _invariance(_continuations_after_histories(unrolled, every_split))


def value_invariance(unrolled: Unrolled, q: Floats) -> Invariance:
    """Check Fact 3: the order of actions by Q does not depend on the history.

    Also check the stronger condition that their differences do not.
    """
    return _invariance(_actions_after_histories(unrolled, q))


def largest_interaction(unrolled: Unrolled, q: Floats) -> float:
    """The most by which the history changes the difference between two actions' values."""
    tables = (table for _, _, table in _actions_after_histories(unrolled, q))
    return max(float(np.ptp(table - table[:, :1], axis=0).max()) for table in tables)


def _invariance(tables: Iterator[Tables]) -> Invariance:
    """Look for witnesses in tables of values."""
    order = differences = None
    for histories, continuations, table in tables:
        found = _compare_rows(table)
        if order is None and found.order is not None:
            order = _witness(table, found.order, histories, continuations)
        if differences is None and found.differences is not None:
            differences = _witness(table, found.differences, histories, continuations)
    return Invariance(order, differences)


def _continuations_after_histories(unrolled: Unrolled, every_split: bool) -> Iterator[Tables]:
    """Yield a table of rewards for each length and split of the windows that can occur."""
    problem = unrolled.problem
    finished = [unrolled.trajectory(int(choice)) for choice in np.flatnonzero(_reveals(unrolled))]
    worth = {trajectory: problem.reward(trajectory) for trajectory in finished}
    for length in sorted({len(trajectory) for trajectory in worth}):
        trajectories = [trajectory for trajectory in worth if len(trajectory) == length]
        for split in range(1 if every_split else max(problem.overlap, 1), length):
            histories = sorted({t[:split] for t in trajectories}, key=str)
            continuations = sorted({t[split:] for t in trajectories}, key=str)
            rewards = [[worth.get(h + c, np.nan) for c in continuations] for h in histories]
            yield histories, continuations, np.array(rewards)


def _actions_after_histories(unrolled: Unrolled, q: Floats) -> Iterator[Tables]:
    """Yield for each (s, t − t_i) the histories, the actions, and a table of their values."""
    by_place = np.argsort(unrolled.place, kind="stable")
    for choices in np.split(by_place, np.cumsum(np.bincount(unrolled.place))[:-1]):
        nodes, row = np.unique(unrolled.node[choices], return_inverse=True)
        table = np.full((len(nodes), unrolled.action[choices].max() + 1), np.nan)
        table[row, unrolled.action[choices]] = q[choices]
        state = unrolled.nodes[nodes[0]].state
        actions: list[Trajectory] = [((state, a),) for a in range(table.shape[1])]
        yield [unrolled.nodes[node].history for node in nodes], actions, table


def _reveals(unrolled: Unrolled) -> npt.NDArray[np.bool_]:
    """Which choices may finish an interval."""
    problem = unrolled.problem
    may_stop = problem.lengths[unrolled.position] > 0
    if not problem.terminal:
        return may_stop
    ends = problem.transition[:, :, list(problem.terminal)].sum(axis=2) > 0
    result: npt.NDArray[np.bool_] = may_stop | ends[unrolled.state, unrolled.action]
    return result


class _Places(NamedTuple):
    """Rows and columns (i, j, u, v) of a table where its rows disagree."""

    order: tuple[int, int, int, int] | None
    differences: tuple[int, int, int, int] | None


def _compare_rows(table: Floats) -> _Places:
    """Find two rows that order two columns differently, and two whose differences differ."""
    order = differences = None
    above = table[:, :, None] > table[:, None, :] + TOLERANCE
    known = ~np.isnan(table)
    for i in range(len(table)):
        for j in range(i + 1, len(table)):
            columns = np.flatnonzero(known[i] & known[j])
            if len(columns) < 2:
                continue
            gap = table[i, columns] - table[j, columns]
            if differences is None and np.ptp(gap) > TOLERANCE:
                differences = (i, j, int(columns[gap.argmax()]), int(columns[gap.argmin()]))
            if order is None:
                flipped = (above[i] != above[j])[np.ix_(columns, columns)]
                if flipped.any():
                    u, v = columns[np.argwhere(flipped)[0]]
                    order = (i, j, int(u), int(v))
        if order is not None:
            break
    return _Places(order, differences)


def _witness(
    table: Floats,
    places: tuple[int, int, int, int],
    histories: list[Trajectory],
    continuations: list[Trajectory],
) -> Witness:
    i, j, u, v = places
    return Witness(
        (histories[i], histories[j]),
        (continuations[u], continuations[v]),
        (
            (float(table[i, u]), float(table[i, v])),
            (float(table[j, u]), float(table[j, v])),
        ),
    )
