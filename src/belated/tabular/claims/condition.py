"""The condition that is sufficient for Fact 3, Proposition 1 and an optimum in Π_s."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np

from belated.tabular.claims.claim import SUFFICIENT, Claim
from belated.tabular.claims.new_q import IMPROVES, ORDER
from belated.tabular.claims.optima import IN_PI_S, STRONG
from belated.tabular.conditions import largest_interaction
from belated.tabular.drmdp import Ends
from belated.tabular.policy_iteration import improve, iterate
from belated.tabular.random_problems import random_policy, sufficient_problems
from belated.tabular.values import TOLERANCE, expected_return, optimal, q_values, scale_of


class Consequences(NamedTuple):
    """What follows from the condition."""

    order: Claim
    improvement: Claim
    optimum: Claim


def check_condition(rng: np.random.Generator, problems: int, ends: Ends) -> Consequences:
    """Look for a problem that meets the condition and for which something does not hold.

    Differences of actions' values must not depend on the history at all; no choice may lose value
    when the policy becomes greedy, whichever histories it looks at; and policy iteration within Π_s
    must end at the optimum of Π_{τ,c}.
    """
    order = loss = gap = 0.0
    for unrolled in sufficient_problems(rng, problems, ends):
        policy = random_policy(unrolled, rng)
        q = q_values(unrolled, policy)
        order = max(order, largest_interaction(unrolled, q) / scale_of(q))
        better = q_values(unrolled, improve(unrolled, q, rng))
        loss = max(loss, float((q - better).max()) / scale_of(q))
        best, best_q = optimal(unrolled)
        found = iterate(unrolled, policy, partial(q_values, unrolled))[-1][1]
        short = expected_return(unrolled, best, best_q) - found
        gap = max(gap, short / scale_of(best_q))

    def claim(name: str, statement: str, deviation: float, evidence: str = "") -> Claim:
        return Claim(
            name, statement, SUFFICIENT[ends], ends, problems, deviation, deviation < TOLERANCE,
            True, evidence,
        )  # fmt: skip

    return Consequences(
        claim("Fact 3", ORDER, order),
        claim("Proposition 1", IMPROVES, loss),
        claim(STRONG, IN_PI_S, gap, "policy iteration finds it"),
    )
