"""Past-invariance: exact, with witnesses that can be checked."""

import dataclasses
import itertools

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
from belated.tabular.conditions import _compare_rows
from belated.tabular.drmdp import Reward
from belated.tabular.random_problems import Kind

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


@given(seed=seeds, power=st.integers(-10, 10))
@settings(max_examples=15, deadline=None)
def test_the_unit_of_the_reward_does_not_matter(seed: int, power: int) -> None:
    """Tolerances are shares of the largest value."""

    def times(reward: Reward) -> Reward:
        return lambda trajectory: 10.0**power * reward(trajectory)

    kinds: list[Kind] = ["separable", "monotone", "any"]
    for kind in kinds:
        problem = random_problem(np.random.default_rng(seed), kind=kind, overlap=0, max_length=2)
        scaled = dataclasses.replace(problem, reward=times(problem.reward))
        plain, other = (reward_invariance(unroll(each)) for each in (problem, scaled))
        assert (plain.order is None) == (other.order is None)
        assert (plain.differences is None) == (other.differences is None)


@given(seed=seeds)
@settings(max_examples=40, deadline=None)
def test_rows_are_compared_as_by_hand(seed: int) -> None:
    """Tables with gaps, ties and equal rows, against a comparison of all quadruples."""
    rng = np.random.default_rng(seed)
    rows, columns = rng.integers(2, 6, 2)
    table = rng.integers(0, 4, (rows, columns)).astype(float)
    if rng.random() < 0.5:
        table = table[:1] + rng.integers(0, 3, (rows, 1))  # strongly invariant
    table[rng.random(table.shape) < 0.2] = np.nan
    order = differences = False
    for i, j in itertools.combinations(range(rows), 2):
        for u, v in itertools.permutations(range(columns), 2):
            a, b, c, d = table[i, u], table[i, v], table[j, u], table[j, v]
            if not np.isnan([a, b, c, d]).any():
                order |= (a > b) != (c > d)
                differences |= a - b != c - d
    found = _compare_rows(table, 1e-9)
    assert (found.order is not None) == order
    assert (found.differences is not None) == differences
    for places, flip in ((found.order, True), (found.differences, False)):
        if places is not None:
            i, j, u, v = places
            a, b, c, d = table[i, u], table[i, v], table[j, u], table[j, v]
            assert (a > b) != (c > d) if flip else a - b != c - d
