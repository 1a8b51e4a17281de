"""All checks of the paper's theory, in the order of the paper."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from belated.tabular.claims import biases, new_q, optima, rewards
from belated.tabular.claims.claim import Claim


def check_claims(problems: int = 1_000, seed: int = 0) -> Iterator[Claim]:
    """Check all claims, one after the other.

    Args:
        problems: how many random problems the central claims are checked on.
        seed: seeds the random problems.
    """
    rng = np.random.default_rng(seed)
    some = max(1, problems // 10)
    yield optima.optimum_with_history(rng, some)
    yield optima.no_optimum_without_history()
    yield new_q.unique_fixed_point(rng, some)
    yield new_q.order_as_printed(rng, some)
    yield new_q.order_under_the_exact_condition(rng, problems)
    yield new_q.order_with_early_ends()
    yield new_q.order_with_the_literal_overlap()
    yield new_q.order_with_ends_after_overlap()
    yield new_q.improvement_as_printed()
    yield new_q.improvement_under_the_exact_condition(rng, problems)
    yield new_q.improvement_with_early_ends()
    yield new_q.improvement_with_the_literal_overlap()
    yield new_q.improvement_with_ends_after_overlap()
    yield biases.fixed_point_bias()
    yield biases.off_policy_bias()
    yield optima.optimum_of_big_and_little()
    yield optima.optimum_under_the_exact_condition(rng, problems)
    yield optima.optimum_with_early_ends()
    yield optima.smaller_overlap(rng, some)
    yield optima.markov_optimum_of_sums()
    yield optima.markov_optimum_of_undiscounted_sums(rng, some)
    yield from rewards.paper_rewards()
