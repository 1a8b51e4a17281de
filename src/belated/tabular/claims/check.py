"""All checks of the paper's theory, in the order of the paper."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from belated.tabular.claims import biases, new_q, optima, rewards
from belated.tabular.claims.claim import Claim, under_both
from belated.tabular.claims.condition import check_condition
from belated.tabular.drmdp import Ends


def check_claims(problems: int = 1_000, seed: int = 0) -> Iterator[Claim]:
    """Check all claims, one after the other.

    Args:
        problems: how many random problems the central claims are checked on, for each reading of
            an end.
        seed: seeds the random problems.
    """
    rng = np.random.default_rng(seed)
    some = max(1, problems // 10)

    def on(check: Any, count: int, **more: Any) -> Iterator[Claim]:
        return under_both(partial(check, rng, count, **more))

    readings: tuple[Ends, ...] = ("reveal", "absorb")
    under = [check_condition(rng, problems, ends) for ends in readings]
    yield from on(optima.optimum_with_history, some)
    yield from under_both(optima.no_optimum_without_history)
    yield from on(new_q.unique_fixed_point, some, discounted=True)
    yield from on(new_q.unique_fixed_point, some, discounted=False)
    yield new_q.fixed_points_without_data()
    yield from under_both(new_q.order_as_printed)
    yield from (each.order for each in under)
    yield from under_both(new_q.order_with_early_ends)
    yield from under_both(new_q.order_with_early_ends_of_a_mean)
    yield new_q.order_with_the_literal_overlap()
    yield from under_both(new_q.order_with_ends_after_overlap)
    yield from under_both(new_q.improvement_as_printed)
    yield from (each.improvement for each in under)
    yield from under_both(new_q.improvement_with_early_ends)
    yield from under_both(new_q.improvement_with_early_ends_of_a_mean)
    yield new_q.improvement_with_the_literal_overlap()
    yield from under_both(new_q.improvement_with_ends_after_overlap)
    yield from under_both(biases.fixed_point_bias)
    yield biases.off_policy_bias()
    yield from under_both(optima.optimum_as_printed)
    yield from (each.optimum for each in under)
    yield from under_both(optima.optimum_with_early_ends)
    yield from under_both(optima.optimum_with_early_ends_of_a_mean)
    yield optima.optimum_with_the_literal_overlap()
    yield from under_both(optima.optimum_with_ends_after_overlap)
    yield from on(optima.smaller_overlap, some)
    yield optima.sum_with_a_discount()
    yield from on(optima.sum_of_single_steps, some)
    yield from on(optima.sum_without_a_discount, some)
    yield from on(optima.shifted_sum, some)
    yield from under_both(optima.further_shifted_sum)
    yield from under_both(optima.sum_of_the_window)
    yield from rewards.paper_rewards()
