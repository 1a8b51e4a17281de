"""Finite delayed-reward MDPs, and all that can happen in them as one finite graph.

The reward of an interval depends on its steps, so values depend on the history since the interval
began. For a small problem all such histories can be listed: `unroll` makes a graph whose nodes are
the situations (τ_{t_i−c:t}, s_t) that can occur, and everything else in this package is linear
algebra on it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

StateAction = tuple[int, int]
"""A state and the action taken in it."""
Trajectory = tuple[StateAction | None, ...]
"""Steps in order of time; None stands for a step before the episode's start."""
Reward = Callable[[Trajectory], float]
"""r_c(τ_{t_i−c:t_i+n_i}): a function of the c steps before an interval and of its own n_i."""


@dataclass(frozen=True)
class TabularDRMDP:
    """A finite delayed-reward MDP (Definition 1; with an overlap, the appendix's DRMDP-c).

    The end of an episode also ends its last interval, however short, and reveals that interval's
    reward.

    Attributes:
        transition: p(s' | s, a), shape (S, A, S).
        start: p(s_0), shape (S,).
        lengths: q_n of the lengths 1, 2, …, shape (n_max,).
        reward: what an interval is worth.
        gamma: the discount, in (0, 1].
        overlap: c.
        terminal: states in which the episode is over.
        actions: how many of the A actions each state has; None for all.
    """

    transition: Floats
    start: Floats
    lengths: Floats
    reward: Reward
    gamma: float
    overlap: int = 0
    terminal: tuple[int, ...] = ()
    actions: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        for name in ("transition", "start", "lengths"):
            object.__setattr__(self, name, np.asarray(getattr(self, name), np.float64))
        shape = self.transition.shape
        if len(shape) != 3 or shape[0] != shape[2]:
            raise ValueError(f"transition must have the shape (S, A, S), got {shape}.")
        states, actions, _ = shape
        if not set(self.terminal) <= set(range(states)):
            raise ValueError(f"There are {states} states; terminal is {self.terminal}.")
        if self.start.shape != (states,):
            raise ValueError(f"start must have {states} probabilities, got {self.start.shape}.")
        if self.lengths.ndim != 1 or len(self.lengths) == 0:
            raise ValueError("lengths must hold the probabilities of the lengths 1, 2, ….")
        if self.actions is not None and (
            len(self.actions) != states or not all(1 <= n <= actions for n in self.actions)
        ):
            raise ValueError(
                f"actions must say for each of {states} states how many of the {actions} actions "
                f"it has, got {self.actions}."
            )
        _check_distribution(self.start, "start")
        _check_distribution(self.lengths, "lengths")
        if self.lengths[-1] == 0:
            raise ValueError("The longest length must be possible; leave out trailing zeros.")
        for state in range(states):
            if state in self.terminal:
                if self.start[state] > 0:
                    raise ValueError(f"An episode cannot start in the terminal state {state}.")
                continue
            for action in range(self.number_of_actions(state)):
                _check_distribution(self.transition[state, action], f"p(·|{state}, {action})")
        if not 0 < self.gamma <= 1:
            raise ValueError(f"gamma must be in (0, 1], got {self.gamma}.")
        if self.overlap < 0:
            raise ValueError(f"The overlap cannot be negative, got {self.overlap}.")

    @property
    def max_length(self) -> int:
        """n_max."""
        return len(self.lengths)

    def number_of_actions(self, state: int) -> int:
        """How many actions a state has."""
        return self.transition.shape[1] if self.actions is None else self.actions[state]

    def hazard(self, position: int) -> float:
        """Return q_n(n = position + 1 | n > position): how likely a step here is the last."""
        return float(self.lengths[position] / self.lengths[position:].sum())


def _check_distribution(probabilities: Floats, name: str) -> None:
    if (probabilities < 0).any() or not np.isclose(probabilities.sum(), 1, atol=1e-9):
        raise ValueError(f"{name} must be a distribution, got {probabilities.tolist()}.")


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
    for current, (history, state) in enumerate(nodes.found):  # more are found on the way
        for action in range(problem.number_of_actions(state)):
            trajectory: Trajectory = (*history, (state, action))
            revealed = 0.0
            for probability, reveals, following in _outcomes(problem, trajectory):
                revealed += probability * reveals
                if following is not None:
                    rows.append(len(node_of))
                    columns.append(nodes.find(following))
                    probabilities.append(probability)
            node_of.append(current)
            actions.append(action)
            rewards.append(revealed * problem.reward(trajectory) if revealed > 0 else 0.0)
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
    problem: TabularDRMDP, trajectory: Trajectory
) -> Iterator[tuple[float, bool, Node | None]]:
    """Yield what can follow τ_{t_i−c:t+1}: probability, whether the interval ends, next node.

    The next node is None if the episode is over.
    """
    assert trajectory[-1] is not None
    hazard = problem.hazard(len(trajectory) - problem.overlap - 1)
    kept = trajectory[len(trajectory) - problem.overlap :]
    for following in map(int, np.flatnonzero(problem.transition[trajectory[-1]])):
        probability = float(problem.transition[trajectory[-1]][following])
        if following in problem.terminal:
            yield probability, True, None
            continue
        if hazard > 0:
            yield probability * hazard, True, Node(kept, following)
        if hazard < 1:
            yield probability * (1 - hazard), False, Node(trajectory, following)
