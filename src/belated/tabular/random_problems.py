"""Random problems on which claims are checked."""

from __future__ import annotations

from typing import Literal

import numpy as np

from belated.tabular.drmdp import Floats, Reward, Segment, TabularDRMDP, Unrolled
from belated.tabular.values import spread

Kind = Literal["sum", "separable", "monotone", "any"]
Ends = Literal["never", "at interval ends", "anywhere"]


def random_problem(
    rng: np.random.Generator,
    *,
    kind: Kind = "separable",
    overlap: int | None = None,
    max_length: int | None = None,
    ends: Ends = "never",
    gamma: float | None = None,
) -> TabularDRMDP:
    """Draw a problem with two or three states, two actions and intervals of up to three steps.

    Args:
        rng: where the randomness comes from.
        kind: of reward. "sum": Σ r(s, a). "separable": a sum whose terms also depend on the place
            in the window and on its length, strongly past-invariant at every split. "monotone":
            an increasing function of a sum, past-invariant. "any": unrelated numbers.
        overlap: c; drawn from 0, 1, 2 if None.
        max_length: n_max; drawn from 1, 2, 3 if None.
        ends: where episodes end, if at all. If it is at interval ends only, intervals have a fixed
            length and the state tells the position.
        gamma: the discount; drawn from (0.5, 1) if None.
    """
    overlap = int(rng.integers(3)) if overlap is None else overlap
    max_length = int(rng.integers(1, 4)) if max_length is None else max_length
    states = int(rng.integers(2, 3 if overlap + max_length > 3 else 4))
    moves = rng.dirichlet(np.full(states, 0.5), (states, 2))
    moves[moves < 0.1] = 0
    moves /= moves.sum(axis=2, keepdims=True)
    lengths = rng.dirichlet(np.ones(max_length)) * (rng.random(max_length) < 0.7)
    lengths[-1] += 0.1
    layers = 1
    if ends == "at interval ends":
        layers, lengths[:-1] = max_length, 0
    end = layers * states
    transition = np.zeros((end + 1, 2, end + 1))
    for layer in range(layers):
        here = slice(layer * states, (layer + 1) * states)
        following = (layer + 1) % layers * states
        stop = rng.uniform(0.1, 0.5, (states, 2, 1))
        if ends == "never" or (ends == "at interval ends" and layer < layers - 1):
            stop[:] = 0
        transition[here, :, following : following + states] = moves * (1 - stop)
        transition[here, :, end] = stop[:, :, 0]
    start = np.zeros(end + 1)
    start[:states] = rng.dirichlet(np.ones(states))
    return TabularDRMDP(
        transition=transition,
        start=start,
        lengths=lengths / lengths.sum(),
        reward=_random_reward(rng, kind, end, overlap + max_length),
        gamma=rng.uniform(0.5, 1) if gamma is None else gamma,
        overlap=overlap,
        terminal=(end,),
    )


def random_policy(unrolled: Unrolled, rng: np.random.Generator) -> Floats:
    """Draw a policy of Π_s, as a probability for each choice."""
    problem = unrolled.problem
    states, actions, _ = problem.transition.shape
    table = np.zeros((states, problem.max_length, actions))
    for state in range(states):
        count = problem.number_of_actions(state)
        table[state, :, :count] = rng.dirichlet(np.ones(count), problem.max_length)
    return spread(unrolled, table)


def _random_reward(rng: np.random.Generator, kind: Kind, states: int, width: int) -> Reward:
    if kind == "any":
        seed = int(rng.integers(2**32))
        return lambda segment: _number_of(segment, seed)
    # One term for each step (states × actions, and one for padding), place and length.
    terms = rng.normal(size=(width + 1, width, states + 1, 2))
    if kind in ("sum", "monotone"):
        terms[:] = terms[0, 0]
        terms[:, :, states] = 0

    def add_up(segment: Segment) -> float:
        places = terms[len(segment)]
        return float(
            sum(
                places[place][(states, 0) if step is None else step]
                for place, step in enumerate(segment)
            )
        )

    if kind == "monotone":
        return lambda segment: float(np.exp(add_up(segment)))
    return add_up


def _number_of(segment: Segment, seed: int) -> float:
    """Return a fixed random number of a segment."""
    words = [0 if step is None else 1 + step[0] * 2 + step[1] for step in segment]
    return float(np.random.default_rng([seed, len(words), *words]).normal())
