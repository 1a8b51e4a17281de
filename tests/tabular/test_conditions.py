"""Past-invariance: exact, with witnesses that can be checked."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from belated.tabular import (
    examples,
    q_values,
    random_policy,
    random_problem,
    reward_invariance,
    unroll,
    value_invariance,
)

seeds = st.integers(0, 2**32 - 1)


@given(seed=seeds)
@settings(max_examples=15, deadline=None)
def test_separable_rewards_are_strongly_invariant_and_so_are_their_values(seed: int) -> None:
    rng = np.random.default_rng(seed)
    unrolled = unroll(random_problem(rng, kind="separable"))
    found = reward_invariance(unrolled, every_split=True)
    assert found.order is None
    assert found.differences is None
    values = value_invariance(unrolled, q_values(unrolled, random_policy(unrolled, rng)))
    assert values.order is None
    assert values.differences is None


@given(seed=seeds)
@settings(max_examples=15, deadline=None)
def test_monotone_rewards_keep_the_order_only(seed: int) -> None:
    rng = np.random.default_rng(seed)
    unrolled = unroll(random_problem(rng, kind="monotone", overlap=0, max_length=3))
    found = reward_invariance(unrolled)
    assert found.order is None
    assert found.differences is not None


@given(seed=seeds)
@settings(max_examples=15, deadline=None)
def test_a_witness_can_be_checked(seed: int) -> None:
    unrolled = unroll(random_problem(np.random.default_rng(seed), kind="any", max_length=2))
    reward = unrolled.problem.reward
    found = reward_invariance(unrolled, every_split=True)
    assume(found.order is not None)  # one reward in 140 keeps the order by chance
    for witness in (found.order, found.differences):
        assert witness is not None
        for history, row in zip(witness.histories, witness.values, strict=True):
            for continuation, value in zip(witness.continuations, row, strict=True):
                assert reward(history + continuation) == value
    (a, b), (c, d) = found.order.values  # type: ignore[union-attr]
    assert (a > b) != (c > d)
    (a, b), (c, d) = found.differences.values  # type: ignore[union-attr]
    assert a - b != pytest.approx(c - d)


def test_the_paper_s_definition_does_not_look_inside_the_overlap() -> None:
    unrolled = unroll(examples.entangled_overlap())
    assert reward_invariance(unrolled).differences is None
    assert reward_invariance(unrolled, every_split=True).order is not None


def test_the_paper_s_example_breaks_fact_3() -> None:
    unrolled = unroll(examples.big_and_little(gamma=0.99))
    policy = (unrolled.action == 0).astype(float)
    witness = value_invariance(unrolled, q_values(unrolled, policy)).order
    assert witness is not None
    np.testing.assert_allclose(witness.values, [[10, -5.05], [0.1, 4.85]])
    assert "after" in str(witness)
