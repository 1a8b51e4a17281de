"""All that can happen in a finite delayed-reward MDP, as one finite graph.

The reward of an interval depends on its steps, so values depend on the history since the interval
began. For a small problem all such histories can be listed: `unroll` makes a graph whose nodes are
the situations (τ_{t_i−c:t}, s_t) that can occur, and everything else in this package is linear
algebra on it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy import sparse

from belated.tabular.drmdp import Floats, Ints, TabularDRMDP, Trajectory

_DENSE = 250


class Node(NamedTuple):
    """A situation in which an action is taken."""

    history: Trajectory  # τ_{t_i−c:t}
    state: int


@dataclass(frozen=True)
class Unrolled:
    """All situations of a problem, and all choices in them.

    A *choice* is a node together with an action: the argument τ_{t_i−c:t+1} of the paper's Q.

    Attributes:
        problem: what was unrolled.
        nodes: the situations.
        node: each choice's node, shape (choices,).
        action: each choice's action.
        reward: the reward that a choice reveals on average.
        transition: from choices to nodes, with probabilities; rows sum to less than 1 where the
            episode may end.
        start: the nodes' probabilities at the episode's start.
    """

    problem: TabularDRMDP
    nodes: list[Node]
    node: Ints
    action: Ints
    reward: Floats
    transition: sparse.csr_matrix
    start: Floats

    @cached_property
    def first(self) -> Ints:
        """The first choice of each node; those of a node follow each other."""
        return np.unique(self.node, return_index=True)[1]

    @cached_property
    def dense_transition(self) -> Floats | None:
        """The transitions as an array, if it is small enough to be the quicker form."""
        if len(self.nodes) > _DENSE:
            return None
        dense: Floats = self.transition.toarray()
        return dense

    @cached_property
    def state(self) -> Ints:
        """Each choice's state."""
        return np.array([node.state for node in self.nodes], np.int64)[self.node]

    @cached_property
    def position(self) -> Ints:
        """Each choice's t − t_i."""
        overlap = self.problem.overlap
        lengths = np.array([len(node.history) for node in self.nodes], np.int64)
        return lengths[self.node] - overlap

    @cached_property
    def place(self) -> Ints:
        """A number for each choice's (s, t − t_i), which is all that a policy of Π_s sees."""
        pairs = np.stack([self.state, self.position])
        return np.unique(pairs, axis=1, return_inverse=True)[1].reshape(-1)

    def trajectory(self, choice: int) -> Trajectory:
        """τ_{t_i−c:t+1} of a choice."""
        node = self.nodes[self.node[choice]]
        return (*node.history, (node.state, int(self.action[choice])))


def unroll(problem: TabularDRMDP, limit: int = 100_000) -> Unrolled:
    """List every situation that can occur in a problem.

    There are about S·(S·A)^(c + n_max − 1) of them.

    Raises:
        ValueError: if there are more than ``limit``.
    """
    nodes = _Nodes(limit)
    first_states = np.flatnonzero(problem.start)
    for first in map(int, first_states):
        nodes.find(Node((None,) * problem.overlap, first))
    node_of: list[int] = []
    actions: list[int] = []
    rewards: list[float] = []
    rows: list[int] = []
    columns: list[int] = []
    probabilities: list[float] = []
    hazards = [problem.hazard(position) for position in range(problem.max_length)]
    moves = {
        (state, action): [(int(s), float(row[s])) for s in np.flatnonzero(row)]
        for state in range(len(problem.start))
        for action in range(problem.number_of_actions(state))
        for row in [problem.following(state, action)]
    }
    for current, (history, state) in enumerate(nodes.found):  # more are found on the way
        hazard = hazards[len(history) - problem.overlap]
        for action in range(problem.number_of_actions(state)):
            trajectory: Trajectory = (*history, (state, action))
            revealed = 0.0
            following_states = moves[state, action]
            for probability, reveals, following in _outcomes(
                problem, trajectory, hazard, following_states
            ):
                revealed += probability * reveals
                if following is not None:
                    rows.append(len(node_of))
                    columns.append(nodes.find(following))
                    probabilities.append(probability)
            node_of.append(current)
            actions.append(action)
            rewards.append(revealed * problem.worth(trajectory) if revealed > 0 else 0.0)
    start = np.zeros(len(nodes.found))
    start[: len(first_states)] = problem.start[first_states]
    return Unrolled(
        problem=problem,
        nodes=nodes.found,
        node=np.array(node_of, np.int64),
        action=np.array(actions, np.int64),
        reward=np.array(rewards),
        transition=sparse.csr_matrix(
            (probabilities, (rows, columns)), (len(node_of), len(nodes.found))
        ),
        start=start,
    )


class _Nodes:
    """The nodes found so far, numbered in the order in which they were found."""

    def __init__(self, limit: int) -> None:
        self.found: list[Node] = []
        self._limit = limit
        self._numbers: dict[Node, int] = {}

    def find(self, node: Node) -> int:
        """Return the node's number; a new node gets the next one."""
        if node not in self._numbers:
            if len(self.found) == self._limit:
                raise ValueError(
                    f"The problem has more than {self._limit} situations (history, state): too "
                    "many to list. Use fewer states or actions, shorter intervals or a smaller "
                    "overlap."
                )
            self._numbers[node] = len(self.found)
            self.found.append(node)
        return self._numbers[node]


def _outcomes(
    problem: TabularDRMDP, trajectory: Trajectory, hazard: float, moves: list[tuple[int, float]]
) -> Iterator[tuple[float, bool, Node | None]]:
    """Yield what can follow τ_{t_i−c:t+1}: probability, whether the interval ends, next node.

    The next node is None if the episode is over.
    """
    kept = trajectory[len(trajectory) - problem.overlap :]
    for following, probability in moves:
        if following in problem.terminal and problem.ends == "reveal":
            yield probability, True, None
            continue
        if hazard > 0:
            over = following in problem.terminal and _is_behind_the_end(problem, kept, following)
            yield probability * hazard, True, None if over else Node(kept, following)
        if hazard < 1:
            yield probability * (1 - hazard), False, Node(trajectory, following)


def _is_behind_the_end(problem: TabularDRMDP, history: Trajectory, end: int) -> bool:
    """Whether nothing but the end is left to count in what follows an interval's end.

    Raises:
        ValueError: if that would be worth something.
    """
    if any(step is None or step[0] not in problem.terminal for step in history):
        return False
    for length in np.flatnonzero(problem.lengths) + 1:
        behind = (*history, *((end, 0),) * int(length))
        if problem.worth(behind) != 0:
            raise ValueError(
                f"Behind the end, {problem.describe(behind)} is worth {problem.worth(behind)}: "
                "with ends='absorb' it must be 0."
            )
    return True
