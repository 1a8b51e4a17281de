"""The best policies without the history: deterministic ones exactly, stochastic ones by search."""

from __future__ import annotations

import contextlib
import itertools
import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize
from scipy.special import softmax

from belated.tabular.drmdp import Floats, Ints
from belated.tabular.unrolling import Unrolled
from belated.tabular.values import (
    EndlessError,
    expected_return,
    optimal,
    q_values,
    scale_of,
    visits,
)

_ROUNDING = 1e-12


class _Best(NamedTuple):
    policy: Floats
    value: float


def best_markov(
    unrolled: Unrolled, *, phase: bool = True, limit: int = 20_000
) -> tuple[Floats, float]:
    """The best deterministic policy of Π_s (without phase: of π(a | s)) and its J.

    With γ = 1 all are tried, but for those that may never end. Else by branch and bound: if only
    some of the states (with their position) are told what to do and the others may look at the
    history, the optimum can be computed, and bounds all policies of Π_s that agree. Stochastic
    policies may do better: which histories a policy of Π_s meets depends on the policy.

    Raises:
        ValueError: if more than ``limit`` bounds, or policies, are needed.
        EndlessError: if γ = 1 and no such policy ends.
    """
    place = places_of(unrolled, phase)
    actions = int(unrolled.action.max()) + 1
    if unrolled.problem.gamma == 1:
        return _best_of_all(unrolled, place, limit)
    waiting = [np.full(place.max() + 1, -1)]  # what each place is told; −1: nothing yet
    best: _Best | None = None
    bounds = 0
    while waiting:
        told = waiting.pop()
        bounds += 1
        if bounds > limit:
            raise ValueError(
                f"More than {limit} bounds are needed: the problem is too large, unless you raise "
                "`limit`."
            )
        policy, q = optimal(unrolled, (told[place] < 0) | (told[place] == unrolled.action))
        bound = expected_return(unrolled, policy, q)
        rounding = _ROUNDING * scale_of(q)
        if best is not None and bound <= best.value + rounding:
            continue
        weight = _discounted_visits(unrolled, policy)
        wanted = _votes(place, unrolled.action, weight * policy, actions)
        unsure = np.flatnonzero((wanted > 0).sum(axis=1) > 1)
        tried = _told(unrolled, place, wanted.argmax(axis=1))
        value = expected_return(unrolled, tried)
        if best is None or value > best.value:
            best = _Best(tried, value)
        if bound <= best.value + rounding or not len(unsure):
            continue
        # The place that most of what the others do is at odds with.
        split = unsure[(wanted.sum(axis=1) - wanted.max(axis=1))[unsure].argmax()]
        for action in np.argsort(wanted[split]):  # the likeliest last: it is taken up first
            if (unrolled.action[place == split] == action).any():
                waiting.append(told.copy())
                waiting[-1][split] = action
    assert best is not None
    return best


def _best_of_all(unrolled: Unrolled, place: Ints, limit: int) -> _Best:
    """Try every deterministic policy that has one action for each place."""
    options = [np.unique(unrolled.action[place == each]) for each in range(place.max() + 1)]
    count = math.prod(map(len, options))
    if count > limit:
        raise ValueError(
            f"With γ = 1 all {count} policies must be tried: too large, unless you raise `limit`."
        )
    best: _Best | None = None
    for picks in itertools.product(*options):
        policy = _told(unrolled, place, np.array(picks))
        with contextlib.suppress(EndlessError):
            value = expected_return(unrolled, policy)
            if best is None or value > best.value:
                best = _Best(policy, value)
    if best is None:
        raise EndlessError("With γ = 1 every episode must end; no policy of Π_s does that.")
    return best


def best_stochastic_markov(
    unrolled: Unrolled,
    *,
    phase: bool = True,
    restarts: int = 10,
    seed: int = 0,
    limit: int = 20_000,
) -> tuple[Floats, float]:
    """A good policy of Π_s, stochastic ones included, and its J: a lower bound of the best one's.

    By gradient ascent from random policies and from the best deterministic one.

    Raises:
        ValueError: if that one is too hard to find within ``limit``, as for `best_markov`.
    """
    place = places_of(unrolled, phase)
    actions = int(unrolled.action.max()) + 1
    forbidden = _votes(place, unrolled.action, np.ones(len(place)), actions) == 0
    rng = np.random.default_rng(seed)

    def table_of(flat: Floats) -> Floats:
        logits = np.where(forbidden, -np.inf, flat.reshape(forbidden.shape))
        table: Floats = softmax(logits, axis=1)
        return table

    def loss(flat: Floats) -> tuple[float, Floats]:
        table = table_of(flat)
        policy = table[place, unrolled.action]
        q = q_values(unrolled, policy)
        at = _discounted_visits(unrolled, policy)
        slope = _votes(place, unrolled.action, at * q, actions)  # ∂J/∂π(a | place)
        slope = table * (slope - (table * slope).sum(axis=1, keepdims=True))
        return -expected_return(unrolled, policy, q), -slope.reshape(-1)

    deterministic, value = best_markov(unrolled, phase=phase, limit=limit)
    best = _Best(deterministic, value)
    chosen = _votes(place, unrolled.action, deterministic, actions) > 0
    starts = [np.where(chosen, 3.0, 0.0).reshape(-1)]
    starts += [rng.normal(0, 2, forbidden.size) for _ in range(restarts)]
    for first in starts:
        found = minimize(loss, first, jac=True, method="L-BFGS-B")
        if -found.fun > best.value:
            best = _Best(table_of(found.x)[place, unrolled.action], float(-found.fun))
    return best


def places_of(unrolled: Unrolled, phase: bool) -> Ints:
    """A number for each choice's (s, t − t_i), or for its s alone."""
    if phase:
        return unrolled.place
    return np.unique(unrolled.state, return_inverse=True)[1].reshape(-1)


def _told(unrolled: Unrolled, place: Ints, action: npt.NDArray[np.int64]) -> Floats:
    """The policy that takes one action in each place."""
    policy: Floats = (unrolled.action == action[place]).astype(np.float64)
    return policy


def _votes(place: Ints, action: Ints, weight: Floats, actions: int) -> Floats:
    """Add up weights by place and action: (places, actions)."""
    votes = np.bincount(place * actions + action, weight, (place.max() + 1) * actions)
    return votes.reshape(-1, actions).astype(np.float64)


def _discounted_visits(unrolled: Unrolled, policy: Floats) -> Floats:
    """Σ_t γ^t p(the node of each choice at t)."""
    counted = visits(unrolled, policy, continuation=unrolled.problem.gamma)
    nodes = np.bincount(unrolled.node, counted, len(unrolled.nodes))
    return nodes[unrolled.node].astype(np.float64)
