"""Random problems to check claims on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import numpy as np

from belated.tabular.drmdp import Ends, Floats, Reward, TabularDRMDP, Trajectory
from belated.tabular.unrolling import Unrolled, unroll
from belated.tabular.values import spread

Kind = Literal["sum", "r_c", "separable", "monotone", "any"]
Ending = Literal["never", "at interval ends", "anywhere"]


def random_problem(
    rng: np.random.Generator,
    *,
    kind: Kind = "separable",
    overlap: int | None = None,
    max_length: int | None = None,
    ending: Ending = "never",
    ends: Ends = "reveal",
    gamma: float | None = None,
) -> TabularDRMDP:
    """Draw a problem with two or three states, two actions and intervals of up to three steps.

    Args:
        rng: draws the problem.
        kind: the kind of reward. "sum": Σ r(s, a) over the window. "r_c": the same without its last
            c steps. "separable": a sum whose terms also depend on the position in the window and
            on its length, strongly past-invariant at every split. "monotone": an increasing
            function of a sum, past-invariant. "any": unrelated numbers. Steps in the end are worth
            nothing.
        overlap: c; drawn from 0, 1, 2 if None.
        max_length: n_max; drawn from 1, 2, 3 if None.
        ending: where episodes end, if at all. If only at interval ends, intervals have a fixed
            length and the state shows the position.
        ends: what an end does to the interval that it falls into.
        gamma: the discount; drawn from (0.5, 1) if None.
    """
    overlap = int(rng.integers(3)) if overlap is None else overlap
    max_length = int(rng.integers(1, 4)) if max_length is None else max_length
    states = int(rng.integers(2, 3 if overlap + max_length > 3 else 4))
    moves = _random_moves(rng, states)
    lengths = rng.dirichlet(np.ones(max_length)) * (rng.random(max_length) < 0.7)
    lengths[-1] += 0.1
    layers = 1
    if ending == "at interval ends":
        layers, lengths[:-1] = max_length, 0
    transition = _add_ends(rng, moves, layers, ending)
    end = layers * states
    start = np.zeros(end + 1)
    start[:states] = rng.dirichlet(np.ones(states))
    return TabularDRMDP(
        transition=transition,
        start=start,
        lengths=lengths / lengths.sum(),
        reward=_random_reward(rng, kind, end, overlap, max_length),
        gamma=rng.uniform(0.5, 1) if gamma is None else gamma,
        overlap=overlap,
        terminal=(end,),
        ends=ends,
    )


def sufficient_problems(rng: np.random.Generator, count: int, ends: Ends) -> Iterator[Unrolled]:
    """Draw problems that meet the sufficient condition (`belated.tabular.claims.claim`).

    Their rewards are strongly past-invariant at every split. Half of them never end. The others end
    anywhere if an end absorbs; if it reveals, only where intervals do, with an overlap of at most
    one step.
    """
    for index in range(count):
        if index % 2 == 0:
            yield unroll(random_problem(rng, ends=ends))
        elif ends == "absorb":
            yield unroll(random_problem(rng, ending="anywhere", ends=ends))
        else:
            overlap = int(rng.integers(2))
            yield unroll(random_problem(rng, overlap=overlap, ending="at interval ends"))


def random_policy(unrolled: Unrolled, rng: np.random.Generator) -> Floats:
    """Draw a policy of Π_s, as a probability for each choice."""
    problem = unrolled.problem
    states, actions, _ = problem.transition.shape
    table = np.zeros((states, problem.max_length, actions))
    for state in range(states):
        count = problem.number_of_actions(state)
        table[state, :, :count] = rng.dirichlet(np.ones(count), problem.max_length)
    return spread(unrolled, table)


def _random_moves(rng: np.random.Generator, states: int) -> Floats:
    """Draw p(s' | s, a) for two actions; unlikely moves are left out."""
    moves = rng.dirichlet(np.full(states, 0.5), (states, 2))
    moves[moves < 0.1] = 0
    moves /= moves.sum(axis=2, keepdims=True)
    return moves


def _add_ends(rng: np.random.Generator, moves: Floats, layers: int, ending: Ending) -> Floats:
    """Copy the states once for each layer, and let episodes end in one more state.

    Each step leads to the next layer, and from the last one to the first.

    Args:
        rng: draws how likely the end is.
        moves: p(s' | s, a) while the episode goes on.
        layers: how many copies to make: one, or one for each position in the interval.
        ending: where episodes end; if at interval ends, in the last layer only.
    """
    states, actions, _ = moves.shape
    end = layers * states
    transition = np.zeros((end + 1, actions, end + 1))
    for layer in range(layers):
        here = slice(layer * states, (layer + 1) * states)
        following = (layer + 1) % layers * states
        stop = rng.uniform(0.1, 0.5, (states, actions, 1))
        if ending == "never" or (ending == "at interval ends" and layer < layers - 1):
            stop[:] = 0
        transition[here, :, following : following + states] = moves * (1 - stop)
        transition[here, :, end] = stop[:, :, 0]
    return transition


def _random_reward(
    rng: np.random.Generator, kind: Kind, end: int, overlap: int, max_length: int
) -> Reward:
    if kind == "any":
        seed = int(rng.integers(2**32))
        return lambda trajectory: _number_of(trajectory, seed, end)
    # One term for each step (states × actions, then the end, then padding), place and length.
    width, padding = overlap + max_length, end + 1
    terms = rng.normal(size=(width + 1, width, end + 2, 2))
    if kind != "separable":
        terms[:] = terms[0, 0]
        terms[:, :, padding] = 0
    terms[:, :, end] = 0

    def add_up(trajectory: Trajectory) -> float:
        places = terms[len(trajectory)]
        counted = len(trajectory) - (overlap if kind == "r_c" else 0)
        return float(
            sum(
                places[place][(padding, 0) if step is None else step]
                for place, step in enumerate(trajectory[:counted])
            )
        )

    if kind == "monotone":
        return lambda trajectory: float(np.expm1(add_up(trajectory)))
    return add_up


def _number_of(trajectory: Trajectory, seed: int, end: int) -> float:
    """Return a random number that is always the same for the same trajectory; 0 behind the end."""
    if all(step is not None and step[0] == end for step in trajectory):
        return 0.0
    words = [0 if step is None else 1 + step[0] * 2 + step[1] for step in trajectory]
    return float(np.random.default_rng([seed, len(words), *words]).normal())
