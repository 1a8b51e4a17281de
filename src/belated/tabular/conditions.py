"""When the past does not matter: past-invariance, strong past-invariance, and what follows.

Each check is exact. It looks at everything that can happen in a problem and returns a witness
where the condition fails.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from belated.tabular.drmdp import Floats, TabularDRMDP, Trajectory
from belated.tabular.unrolling import Unrolled
from belated.tabular.values import TOLERANCE, scale_of

Tables = tuple[list[Trajectory], list[Trajectory], Floats]
"""Histories, continuations, and a table of what each pair is worth, NaN where it cannot occur."""


@dataclass(frozen=True)
class Witness:
    """Two histories and two continuations: what each pair is worth."""

    problem: TabularDRMDP
    histories: tuple[Trajectory, Trajectory]
    continuations: tuple[Trajectory, Trajectory]
    values: tuple[tuple[float, float], tuple[float, float]]

    @property
    def interaction(self) -> float:
        """By how much the difference of the continuations depends on the history."""
        (a, b), (c, d) = self.values
        return abs((a - b) - (c - d))

    def __str__(self) -> str:
        (a, b), (c, d) = self.values
        say = self.problem.describe
        return (
            f"after {say(self.histories[0])}: {a:.4g} for {say(self.continuations[0])}, {b:.4g} "
            f"for {say(self.continuations[1])}; after {say(self.histories[1])}: {c:.4g} and {d:.4g}"
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
    return _invariance(unrolled.problem, _continuations_after_histories(unrolled, every_split))


def value_invariance(unrolled: Unrolled, q: Floats) -> Invariance:
    """Check Fact 3: the order of actions by Q does not depend on the history.

    Also check the stronger condition that their differences do not.
    """
    return _invariance(unrolled.problem, _actions_after_histories(unrolled, q))


def largest_interaction(unrolled: Unrolled, q: Floats) -> float:
    """The most by which the history changes the difference between two actions' values."""
    tables = (table for _, _, table in _actions_after_histories(unrolled, q))
    return max(float(np.ptp(table - table[:, :1], axis=0).max()) for table in tables)


def _invariance(problem: TabularDRMDP, tables: Iterator[Tables]) -> Invariance:
    """Look for witnesses in tables of values; rounding is a share of the largest one."""
    everything = list(tables)
    scale = max((scale_of(table) for _, _, table in everything), default=1.0)
    order = differences = None
    for histories, continuations, table in everything:
        found = _compare_rows(table, TOLERANCE * scale)
        if order is None and found.order is not None:
            order = _witness(problem, table, found.order, histories, continuations)
        if differences is None and found.differences is not None:
            differences = _witness(problem, table, found.differences, histories, continuations)
    return Invariance(order, differences)


def _continuations_after_histories(unrolled: Unrolled, every_split: bool) -> Iterator[Tables]:
    """Yield a table of rewards for each length and split of the windows that can occur."""
    problem = unrolled.problem
    finished = [unrolled.trajectory(int(choice)) for choice in np.flatnonzero(_reveals(unrolled))]
    by_length: dict[int, list[tuple[Trajectory, float]]] = {}
    for trajectory in dict.fromkeys(finished):
        pair = (trajectory, problem.worth(trajectory))
        by_length.setdefault(len(trajectory), []).append(pair)
    for length, worth in sorted(by_length.items()):
        for split in range(1 if every_split else max(problem.overlap, 1), length):
            histories: dict[Trajectory, int] = {}
            continuations: dict[Trajectory, int] = {}
            places = [
                (
                    histories.setdefault(trajectory[:split], len(histories)),
                    continuations.setdefault(trajectory[split:], len(continuations)),
                )
                for trajectory, _ in worth
            ]
            table = np.full((len(histories), len(continuations)), np.nan)
            table[tuple(np.transpose(places))] = [value for _, value in worth]
            yield [*histories], [*continuations], table


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
    if not problem.terminal or problem.ends == "absorb":
        return may_stop
    ends = problem.transition[:, :, list(problem.terminal)].sum(axis=2) > 0
    result: npt.NDArray[np.bool_] = may_stop | ends[unrolled.state, unrolled.action]
    return result


class _Places(NamedTuple):
    """Rows and columns (i, j, u, v) of a table where its rows disagree."""

    order: tuple[int, int, int, int] | None
    differences: tuple[int, int, int, int] | None


def _compare_rows(table: Floats, rounding: float) -> _Places:
    """Find two rows that order two columns differently, and two whose differences differ.

    Rows that know the same columns are compared with the first of them: what one does, all do, or
    there is a witness. Then the first ones are compared with each other where both know.
    """
    known = ~np.isnan(table)
    _, first, group = np.unique(known, axis=0, return_index=True, return_inverse=True)
    pairs = [(first[each], i) for i, each in enumerate(group.reshape(-1)) if i != first[each]]
    pairs += list(itertools.combinations(first.tolist(), 2))
    order = differences = None
    for i, j in pairs:
        columns = np.flatnonzero(known[i] & known[j])
        if len(columns) < 2:
            continue
        one, other = table[i, columns], table[j, columns]
        gap = one - other
        if np.ptp(gap) <= rounding:
            continue  # the order is the same, too, unless rounding decides it
        if differences is None:
            differences = (i, j, int(columns[gap.argmax()]), int(columns[gap.argmin()]))
        flip = _flipped(one, other, rounding)
        if flip is not None:
            order = (i, j, int(columns[flip[0]]), int(columns[flip[1]]))
            break
    return _Places(order, differences)


def _flipped(one: Floats, other: Floats, rounding: float) -> tuple[int, int] | None:
    """Two columns of which the first is above the second in one row and not in the other."""
    for up, down in ((one, other), (other, one)):
        # In the order of `up`, a column is above all that lie more than `rounding` below it; so it
        # is in `down` exactly if it is above the highest of them there.
        by_size = np.argsort(up, kind="stable")
        below = np.searchsorted(up[by_size], up[by_size] - rounding, side="left")
        highest = np.maximum.accumulate(down[by_size])
        for place in np.flatnonzero(below > 0):
            if down[by_size[place]] <= highest[below[place] - 1] + rounding:
                worse = by_size[: below[place]]
                return int(by_size[place]), int(worse[down[worse].argmax()])
    return None


def _witness(
    problem: TabularDRMDP,
    table: Floats,
    places: tuple[int, int, int, int],
    histories: list[Trajectory],
    continuations: list[Trajectory],
) -> Witness:
    i, j, u, v = places
    return Witness(
        problem,
        (histories[i], histories[j]),
        (continuations[u], continuations[v]),
        (
            (float(table[i, u]), float(table[i, v])),
            (float(table[j, u]), float(table[j, v])),
        ),
    )
