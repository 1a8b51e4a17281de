"""Exact values of policies, new (Eq. 3) and ordinary (Eq. 1), and the best policies.

A policy is an array with one probability for each choice of an `Unrolled` problem, which covers
Π_{τ,c}. Policies of Π_s are tables π(a | s, t − t_i) of shape (S, n_max, A); `spread` turns them
into the former.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.sparse.linalg import MatrixRankWarning, spsolve

from belated.tabular.drmdp import Floats, Ints
from belated.tabular.unrolling import Unrolled

Matrix = Any
"""A NumPy array for small problems, else a sparse matrix."""

TOLERANCE = 1e-9
"""Differences of values below this share of the largest value are rounding."""


class EndlessError(ValueError):
    """Without a discount, a policy under which an episode may never end."""


def scale_of(values: Floats) -> float:
    """The largest of some values' sizes: what differences between them are compared with."""
    largest = float(np.nanmax(np.abs(values), initial=0.0))
    return largest if largest > 0 else 1.0


def spread(unrolled: Unrolled, table: npt.ArrayLike) -> Floats:
    """Turn a table π(a | s, t − t_i) of Π_s into a probability for each choice.

    Raises:
        ValueError: if it is not a distribution over each state's actions.
    """
    problem = unrolled.problem
    states, actions, _ = problem.transition.shape
    wanted = (states, problem.max_length, actions)
    array = np.asarray(table, np.float64)
    if array.shape != wanted:
        raise ValueError(
            f"A table of Π_s has the shape (S, n_max, A) = {wanted}, not {array.shape}."
        )
    policy: Floats = array[unrolled.state, unrolled.position, unrolled.action]
    return checked_policy(unrolled, policy)


def checked_policy(unrolled: Unrolled, policy: npt.ArrayLike) -> Floats:
    """Return a policy as an array, one probability for each choice.

    Raises:
        ValueError: if it is none.
    """
    array = np.asarray(policy, np.float64)
    if array.shape != unrolled.node.shape:
        raise ValueError(
            f"A policy has one probability for each of {len(unrolled.node)} choices, not the shape "
            f"{array.shape}; `spread` makes one of a table."
        )
    totals = np.bincount(unrolled.node, array, len(unrolled.nodes))
    wrong = np.flatnonzero(~(np.abs(totals - 1) <= 1e-9))
    if not (array >= 0).all() or len(wrong):
        where = unrolled.nodes[wrong[0] if len(wrong) else unrolled.node[array.argmin()]]
        raise ValueError(
            "A policy's probabilities must add up to 1 over each state's actions; they do not in "
            f"{unrolled.problem.state_name(where.state)}."
        )
    return array


def uniform(unrolled: Unrolled) -> Floats:
    """Return the policy that takes all actions with equal probability."""
    return 1.0 / np.bincount(unrolled.node)[unrolled.node]


def td_operator(unrolled: Unrolled, policy: npt.ArrayLike, q: Floats) -> Floats:
    """Apply the new Q's TD operator: the minimiser of Eq. 4 for a fixed target Q.

    It is the same for every data distribution that covers all choices, because the target depends
    on nothing but the choice.
    """
    policy = checked_policy(unrolled, policy)
    values = np.bincount(unrolled.node, policy * q, len(unrolled.nodes))
    result: Floats = unrolled.reward + unrolled.problem.gamma * (unrolled.transition @ values)
    return result


def q_values(unrolled: Unrolled, policy: npt.ArrayLike) -> Floats:
    """Q^π(τ_{t_i−c:t+1}) of every choice, the fixed point of `td_operator`.

    Raises:
        EndlessError: if γ = 1 and the policy never ends an episode.
    """
    policy = checked_policy(unrolled, policy)
    moves, gamma = _moves(unrolled, policy), unrolled.problem.gamma
    if gamma == 1:
        _require_ends(unrolled, moves)
    revealed = np.bincount(unrolled.node, policy * unrolled.reward, len(unrolled.nodes))
    values = _solve(moves * gamma, revealed.astype(np.float64))
    result: Floats = unrolled.reward + gamma * (unrolled.transition @ values)
    return result


def _require_ends(
    unrolled: Unrolled,
    moves: Matrix,
    among: npt.NDArray[np.bool_] | None = None,
    why: str = "With γ = 1 every episode must end",
) -> None:
    """Refuse a policy under which some situation, or one ``among`` some, never comes to an end."""
    ending = np.asarray(moves.sum(axis=1)).reshape(-1) < 1 - 1e-12
    ending = _closure(ending, lambda found: moves @ found.astype(float) > 0)
    endless = np.flatnonzero(~ending if among is None else ~ending & among)
    if len(endless):
        state = unrolled.nodes[int(endless[0])].state
        raise EndlessError(
            f"{why}; under this policy none does that comes to the state "
            f"{unrolled.problem.state_name(state)}."
        )


def _closure(
    found: npt.NDArray[np.bool_], step: Callable[[Any], npt.NDArray[np.bool_]]
) -> npt.NDArray[np.bool_]:
    """Add what a step leads to, until there is nothing more."""
    while True:
        more = found | step(found)
        if (more == found).all():
            return found
        found = more


def expected_return(unrolled: Unrolled, policy: npt.ArrayLike, q: Floats | None = None) -> float:
    """J(π), from Q^π if it is known.

    Raises:
        EndlessError: if γ = 1 and the policy may never end an episode that it starts.
    """
    policy = checked_policy(unrolled, policy)
    if q is None and unrolled.problem.gamma == 1:
        return _undiscounted_return(unrolled, policy)
    q = q_values(unrolled, policy) if q is None else q
    return float(unrolled.start[unrolled.node] @ (policy * q))


def _undiscounted_return(unrolled: Unrolled, policy: Floats) -> float:
    """J(π) for γ = 1; what the policy would do where it never comes is of no account."""
    moves = _moves(unrolled, policy)
    reached = _closure(unrolled.start > 0, lambda found: moves.T @ found.astype(float) > 0)
    _require_ends(unrolled, moves, reached)
    revealed = np.bincount(unrolled.node, policy * unrolled.reward, len(unrolled.nodes))
    inside = sparse.diags(reached.astype(float)) @ moves
    values = _solve(inside, np.where(reached, revealed, 0.0))
    return float(unrolled.start @ values)


def visits(unrolled: Unrolled, policy: npt.ArrayLike, continuation: float = 1.0) -> Floats:
    """How often each choice occurs in an episode: a data distribution ρ, not normalised.

    Args:
        unrolled: the problem.
        policy: collects the data.
        continuation: the probability with which collecting goes on after each step. Must be
            less than 1 for problems whose episodes need not end.

    Raises:
        EndlessError: if it is 1, and the policy may never end an episode.
    """
    policy = checked_policy(unrolled, policy)
    moves = _moves(unrolled, policy)
    if continuation == 1:
        why = "Unless `continuation` is less than 1, every episode must end"
        _require_ends(unrolled, moves, why=why)
    here = _solve(moves.T * continuation, unrolled.start)
    counted: Floats = here[unrolled.node] * policy
    return counted


def ordinary_q(
    unrolled: Unrolled, policy: npt.ArrayLike, data: Floats, *, phase: bool = True
) -> Floats:
    """The fixed point of TD with an ordinary Q(s, t − t_i, a), or Q(s, a) without the phase.

    Choices that share an entry are averaged with the weights that the data give them. That is
    where the off-policy bias and the fixed-point bias come from.

    Args:
        unrolled: the problem.
        policy: π, whose actions the targets take.
        data: ρ, a weight for each choice, for example from `visits`.
        phase: whether Q sees the position in the interval.

    Returns:
        The value of the entry that each choice belongs to; NaN where there are no data.
    """
    policy = checked_policy(unrolled, policy)
    columns = [unrolled.state, unrolled.action] + ([unrolled.position] if phase else [])
    _, entry = np.unique(np.stack(columns), axis=1, return_inverse=True)
    entry = entry.reshape(-1)
    total = np.bincount(entry, data)
    known = total > 0
    weight = np.divide(data, total[entry], out=np.zeros_like(data), where=known[entry])
    average = sparse.csr_matrix((weight, (entry, np.arange(len(entry)))))
    member = sparse.csr_matrix((np.ones(len(entry)), (np.arange(len(entry)), entry)))
    if not known.all():
        # Entries without data have no value, so no target may need one.
        reached = np.asarray(average @ _follow(unrolled, policy) @ member.toarray())
        if (reached[np.ix_(known, ~known)] > 0).any():
            raise ValueError("The policy takes actions for which there are no data.")
    follow = average @ _follow(unrolled, policy) @ member
    values = _solve(follow * unrolled.problem.gamma, average @ unrolled.reward)
    return np.where(known, values, np.nan)[entry]


def optimal(
    unrolled: Unrolled, allowed: npt.NDArray[np.bool_] | None = None
) -> tuple[Floats, Floats]:
    """The best policy of Π_{τ,c} and its Q, by policy iteration over the nodes.

    Args:
        unrolled: the problem.
        allowed: which choices the policy may take; by default all. Each node must have one.
    """
    if allowed is None:
        allowed = np.ones(len(unrolled.node), bool)
    forbidden = np.where(allowed, 0, -np.inf)
    policy = _towards_the_end(unrolled, allowed)
    last: tuple[Floats, Floats, Floats] | None = None
    while True:
        q = q_values(unrolled, policy)
        values: Floats = np.bincount(unrolled.node, policy * q, len(unrolled.nodes)).astype(float)
        if last is not None and values.sum() <= last[2].sum():
            return last[:2]  # only rounding was gained
        last = policy, q, values
        # An action is given up for a better one only: with γ = 1 one as good may be a loop.
        better = greedy(unrolled, q + forbidden, tolerance=0)
        gain = np.bincount(unrolled.node, better * q, len(unrolled.nodes)) - values
        switch = gain > 1e-13 * scale_of(q)  # (else it is rounding)
        if not switch.any():
            return policy, q
        policy = np.where(switch[unrolled.node], better, policy)


def _towards_the_end(unrolled: Unrolled, allowed: npt.NDArray[np.bool_]) -> Floats:
    """A deterministic policy under which every episode ends, wherever one can."""
    leads = unrolled.transition
    may_end = np.asarray(leads.sum(axis=1)).reshape(-1) < 1 - 1e-12
    policy, ending = np.zeros(len(unrolled.node)), np.zeros(len(unrolled.nodes), bool)
    while True:
        good = allowed & (may_end | (leads @ ending.astype(float) > 0)) & ~ending[unrolled.node]
        if not good.any():
            return policy + _first_of_each(unrolled.node, allowed & ~ending[unrolled.node])
        policy += _first_of_each(unrolled.node, good)
        ending[unrolled.node[good]] = True


def greedy(unrolled: Unrolled, q: Floats, tolerance: float = TOLERANCE) -> Floats:
    """The policy of Π_{τ,c} that takes the best action in each node; ties go to the first."""
    best = np.full(len(unrolled.nodes), -np.inf)
    np.maximum.at(best, unrolled.node, q)
    scale = scale_of(q[np.isfinite(q)])
    candidates = q >= best[unrolled.node] - tolerance * scale
    return _first_of_each(unrolled.node, candidates)


def _first_of_each(group: Ints, candidates: npt.NDArray[np.bool_]) -> Floats:
    chosen = np.flatnonzero(candidates)
    _, first = np.unique(group[chosen], return_index=True)
    policy = np.zeros(len(group))
    policy[chosen[first]] = 1
    return policy


def _moves(unrolled: Unrolled, policy: Floats) -> Matrix:
    """From nodes to nodes under a policy."""
    if unrolled.dense_transition is None:
        return _take(unrolled, policy) @ unrolled.transition
    moves: Floats = np.add.reduceat(policy[:, None] * unrolled.dense_transition, unrolled.first)
    return moves


def _take(unrolled: Unrolled, policy: Floats) -> sparse.csr_matrix:
    """From nodes to choices, with a policy's probabilities."""
    choices = np.arange(len(policy))
    return sparse.csr_matrix((policy, (unrolled.node, choices)), (len(unrolled.nodes), len(policy)))


def _follow(unrolled: Unrolled, policy: Floats) -> sparse.csr_matrix:
    """From choices to the choices that follow them under a policy."""
    return unrolled.transition @ _take(unrolled, policy)


def _solve(matrix: Matrix, right: Floats) -> Floats:
    """Solve x = right + matrix·x."""
    if isinstance(matrix, np.ndarray):
        return np.linalg.solve(np.eye(len(right)) - matrix, right).astype(np.float64)
    system = sparse.identity(len(right), format="csc") - matrix.tocsc()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MatrixRankWarning)  # the error below says more
        solution: Floats = np.atleast_1d(spsolve(system, right))
    if not np.isfinite(solution).all():
        raise EndlessError("There is no finite value: with γ = 1 every episode must end.")
    return solution
