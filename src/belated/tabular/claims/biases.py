"""Claims about the ordinary Q: where it is biased and the paper's is not."""

from __future__ import annotations

from functools import partial

import numpy as np

from belated.tabular import examples
from belated.tabular.claims.claim import Claim
from belated.tabular.drmdp import Ends, Floats
from belated.tabular.policy_iteration import improve, iterate
from belated.tabular.unrolling import Unrolled, unroll
from belated.tabular.values import expected_return, ordinary_q, q_values, spread, uniform, visits


def fixed_point_bias(ends: Ends) -> Claim:
    """Policy iteration from every start, with the ordinary Q and with the new one."""
    deviation, runs = 0.0, 0
    for gamma in (0.5, 0.9, 0.99, 1.0):
        unrolled = unroll(examples.fixed_point_bias(gamma, ends))
        for p in (0.001, 0.1, 0.5, 0.9, 0.999):
            table = np.tile([1.0, 0.0], (len(unrolled.problem.start), 2, 1))
            table[0] = [1 - p, p]
            policy = spread(unrolled, table)
            ordinary = iterate(unrolled, policy, partial(on_policy_q, unrolled))[-1][1]
            new = expected_return(unrolled, improve(unrolled, q_values(unrolled, policy)))
            deviation = max(deviation, abs(ordinary + 0.495 * gamma), abs(new))
            runs += 1
    return Claim(
        "Fixed-point bias", "the ordinary Q leads to J = −0.495γ, the new one to J = 0",
        "the example; γ in {0.5, 0.9, 0.99, 1}, 0 < p < 1 (at p = 0 or 1 an action has no data)",
        ends, runs, deviation, deviation < 1e-12, True,
        "in the proof Q(D, d) should be (p − 1)/(p + 1), not (p − 1)/2; the conclusion stands",
        "fixed_point_bias",
    )  # fmt: skip


def on_policy_q(unrolled: Unrolled, policy: Floats) -> Floats:
    """Return the ordinary Q learnt by TD from the policy's own data."""
    return ordinary_q(unrolled, policy, visits(unrolled, policy))


def off_policy_bias() -> Claim:
    """Data from two policies, each good at one of the two steps."""
    unrolled = unroll(examples.off_policy_bias())
    data = np.zeros(len(unrolled.node))
    for first, last in ((0.9, 0.1), (0.1, 0.9)):  # the probability of the better action
        table = np.zeros((3, 2, 2))
        table[0], table[1], table[2] = [1 - first, first], [1 - last, last], [1, 0]
        data += visits(unrolled, spread(unrolled, table))
    ordinary = ordinary_q(unrolled, uniform(unrolled), data)
    new = q_values(unrolled, uniform(unrolled))
    at = [int(np.flatnonzero((unrolled.state == 1) & (unrolled.action == a))[0]) for a in (0, 1)]
    wrong, right = ordinary[at[1]] - ordinary[at[0]], new[at[1]] - new[at[0]]
    return Claim(
        "Off-policy bias", "mixed data mislead the ordinary Q, not the new one",
        "two steps; two data policies, each good at one of them", "either", 1, abs(wrong - 0.1),
        bool(wrong < 0 < right), True,
        f"the better last action is worth 0.1 more: {right:.4g} by the new Q, {wrong:.4g} by the "
        "ordinary one", "off_policy_bias",
    )  # fmt: skip
