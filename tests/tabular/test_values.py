"""Exact values against rollouts, against other ways to compute them, and against each other."""

import itertools
from collections import defaultdict
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from belated.tabular import (
    EndlessError,
    TabularDRMDP,
    TabularEnv,
    best_markov,
    best_stochastic_markov,
    examples,
    expected_return,
    improve,
    iterate,
    optimal,
    ordinary_q,
    q_values,
    random_policy,
    random_problem,
    spread,
    td_operator,
    uniform,
    unroll,
    visits,
)
from belated.tabular.random_problems import Ending, Kind

seeds = st.integers(0, 2**32 - 1)


@given(seed=seeds, overlap=st.integers(0, 2))
@settings(max_examples=6, deadline=None)
def test_exact_values_agree_with_rollouts(seed: int, overlap: int) -> None:
    rng = np.random.default_rng(seed)
    unrolled = unroll(random_problem(rng, kind="any", overlap=overlap, ending="anywhere"))
    gamma, policy = unrolled.problem.gamma, random_policy(unrolled, rng)
    index = {unrolled.trajectory(choice): choice for choice in range(len(policy))}
    choices = {node: np.flatnonzero(unrolled.node == i) for i, node in enumerate(unrolled.nodes)}
    env = TabularEnv(unrolled.problem)
    env.reset(seed=seed)
    starts, samples = [], defaultdict(list)
    for _ in range(1_200):
        env.reset()
        visited, rewards, over = [], [], False
        while not over:
            here = choices[(env._trajectory, env.state)]  # type: ignore[index]
            choice = int(rng.choice(here, p=policy[here]))
            visited.append(choice)
            bins = len(here)
            action = (unrolled.action[choice] + 0.5) / bins * 2 - 1
            _, reward, over, _, _ = env.step(np.array([action]))
            rewards.append(reward)
        returns = np.zeros(len(rewards) + 1)
        for t in reversed(range(len(rewards))):
            returns[t] = rewards[t] + gamma * returns[t + 1]
            samples[visited[t]].append(returns[t])
        starts.append(returns[0])
    q = q_values(unrolled, policy)
    assert set(samples) <= set(index.values())
    error = np.std(starts) / np.sqrt(len(starts))
    assert expected_return(unrolled, policy) == pytest.approx(np.mean(starts), abs=5 * error + 1e-9)
    for choice, values in samples.items():
        if len(values) >= 100:
            error = np.std(values) / np.sqrt(len(values))
            assert q[choice] == pytest.approx(np.mean(values), abs=5.5 * error + 1e-9)


@given(seed=seeds)
@settings(max_examples=20, deadline=None)
def test_q_is_the_fixed_point_of_the_td_operator(seed: int) -> None:
    rng = np.random.default_rng(seed)
    unrolled = unroll(random_problem(rng, kind="any"))
    policy = random_policy(unrolled, rng)
    q = q_values(unrolled, policy)
    np.testing.assert_allclose(td_operator(unrolled, policy, q), q, atol=1e-10)


@given(seed=seeds)
@settings(max_examples=15, deadline=None)
def test_nothing_beats_the_optimum(seed: int) -> None:
    rng = np.random.default_rng(seed)
    unrolled = unroll(random_problem(rng, kind="any", overlap=0, max_length=2))
    best = expected_return(unrolled, optimal(unrolled)[0])
    _, markov = best_markov(unrolled)
    assert best >= markov - 1e-9
    for _ in range(5):
        tried = rng.dirichlet(np.ones(2), len(unrolled.nodes)).reshape(-1)
        assert expected_return(unrolled, tried) <= best + 1e-9
        states = len(unrolled.problem.start)
        fixed = spread(unrolled, rng.integers(2, size=(states, 2, 1)) == np.arange(2))
        assert expected_return(unrolled, fixed) <= markov + 1e-9


@given(
    seed=seeds,
    gamma=st.sampled_from([0.9, 0.999, 0.999999]),
    ending=st.sampled_from(["never", "at interval ends", "anywhere"]),
)
@settings(max_examples=40, deadline=None)
def test_the_optimum_solves_its_own_equation(seed: int, gamma: float, ending: Ending) -> None:
    """Also where the discount is so near 1 that rounding could be taken for a gain, forever."""
    rng = np.random.default_rng(seed)
    unrolled = unroll(random_problem(rng, kind="any", ending=ending, gamma=gamma, max_length=2))
    _, q = optimal(unrolled)
    best = np.full(len(unrolled.nodes), -np.inf)
    np.maximum.at(best, unrolled.node, q)
    again = unrolled.reward + gamma * (unrolled.transition @ best)
    np.testing.assert_allclose(q, again, rtol=0, atol=1e-9 * np.abs(q).max())


def test_a_gain_in_the_first_step_is_one() -> None:
    """No choice leads to where an episode starts, so no other Q shows what is gained there."""
    moves = np.array([[[0.0, 1], [0, 1]], [[0, 1], [0, 1]]])
    problem = TabularDRMDP(
        moves, np.array([1.0, 0]), np.ones(1), lambda t: float(t[-1][1]), 0.9, terminal=(1,)  # type: ignore[index]
    )  # fmt: skip
    unrolled = unroll(problem)
    policy, q = optimal(unrolled)
    assert expected_return(unrolled, policy, q) == pytest.approx(1)


@given(seed=seeds, kind=st.sampled_from(["any", "sum"]))
@settings(max_examples=15, deadline=None)
def test_with_a_reward_at_every_step_the_ordinary_q_is_the_new_one(seed: int, kind: Kind) -> None:
    rng = np.random.default_rng(seed)
    unrolled = unroll(random_problem(rng, kind=kind, overlap=0, max_length=1))
    policy, data = random_policy(unrolled, rng), rng.random(len(unrolled.node)) + 0.1
    new = q_values(unrolled, policy)
    np.testing.assert_allclose(ordinary_q(unrolled, policy, data), new, atol=1e-8)


def test_visits_count_the_steps_of_an_episode() -> None:
    unrolled = unroll(examples.fixed_point_bias())
    counted = visits(unrolled, uniform(unrolled))
    assert counted.sum() == pytest.approx(2)  # episodes of two steps
    at_a = unrolled.state == 0
    np.testing.assert_allclose(counted[at_a], 0.25)


@pytest.mark.parametrize("gamma", [0.5, 0.9, 0.99, 1.0])
@pytest.mark.parametrize("p", [0.01, 0.5, 0.99])
def test_the_fixed_point_bias(gamma: float, p: float) -> None:
    unrolled = unroll(examples.fixed_point_bias(gamma))
    table = np.tile([1.0, 0.0], (5, 2, 1))
    table[0] = [1 - p, p]
    policy = spread(unrolled, table)

    def on_policy(policy: np.ndarray) -> np.ndarray:
        return ordinary_q(unrolled, policy, visits(unrolled, policy))

    at_d = unrolled.state == 3
    np.testing.assert_allclose(on_policy(policy)[at_d], (p - 1) / (p + 1), atol=1e-12)
    path = iterate(unrolled, policy, on_policy)
    assert path[-1][1] == pytest.approx(-0.495 * gamma, abs=1e-12)
    once = improve(unrolled, q_values(unrolled, policy))
    assert expected_return(unrolled, once) == pytest.approx(0, abs=1e-12)


def test_the_history_is_worth_what_the_paper_says() -> None:
    xor = unroll(examples.xor(gamma=1.0))
    assert expected_return(xor, optimal(xor)[0]) == pytest.approx(1)
    assert best_markov(xor)[1] == pytest.approx(0.5)


def test_without_a_discount_a_policy_must_end() -> None:
    """Stay (worth 1) or go (worth 0)."""
    problem = TabularDRMDP(
        np.array([[[1.0, 0], [0, 1]], [[0, 1], [0, 1]]]), np.array([1.0, 0]), np.ones(1),
        lambda trajectory: float(trajectory[-1] == (0, 0)), gamma=1.0, terminal=(1,),
        state_names=("hall", "out"),
    )  # fmt: skip
    unrolled = unroll(problem)
    assert expected_return(unrolled, uniform(unrolled)) == pytest.approx(1)
    with pytest.raises(EndlessError, match="none does that comes to the state hall"):
        q_values(unrolled, [1.0, 0.0])
    with pytest.raises(EndlessError, match="the state hall"):
        optimal(unrolled)


def test_policies_must_be_distributions() -> None:
    unrolled = unroll(examples.xor())
    with pytest.raises(ValueError, match=r"add up to 1 .* do not in A₀"):
        spread(unrolled, np.full((4, 2, 2), 0.6))
    with pytest.raises(ValueError, match=r"shape \(S, n_max, A\) = \(4, 2, 2\), not \(4, 2\)"):
        spread(unrolled, np.ones((4, 2)))
    for use in (q_values, expected_return, visits):
        with pytest.raises(ValueError, match="one probability for each of 6 choices"):
            use(unrolled, [1.0])
        with pytest.raises(ValueError, match="add up to 1"):
            use(unrolled, np.full(6, 2.0))
        with pytest.raises(ValueError, match="add up to 1"):
            use(unrolled, np.full(6, np.nan))


def test_the_search_has_a_limit() -> None:
    unrolled = unroll(examples.xor())
    with pytest.raises(ValueError, match="too large"):
        best_markov(unrolled, limit=1)


@given(seed=seeds, phase=st.booleans())
@settings(max_examples=25, deadline=None)
def test_the_best_markov_policy_is_the_best_of_all(seed: int, phase: bool) -> None:
    rng = np.random.default_rng(seed)
    problem = random_problem(rng, kind="any", overlap=int(rng.integers(2)), max_length=2)
    unrolled = unroll(problem)
    place = np.stack([unrolled.state, unrolled.position * phase])
    _, place = np.unique(place, axis=1, return_inverse=True)
    tried = [
        expected_return(unrolled, (unrolled.action == np.array(picks)[place.reshape(-1)]))
        for picks in itertools.product((0, 1), repeat=place.max() + 1)
    ]
    policy, value = best_markov(unrolled, phase=phase)
    assert value == pytest.approx(max(tried), abs=1e-12)
    assert expected_return(unrolled, policy) == pytest.approx(value, abs=1e-12)
    stochastic, more = best_stochastic_markov(unrolled, phase=phase, restarts=2)
    assert more >= value
    assert expected_return(unrolled, stochastic) == pytest.approx(more, abs=1e-9)
    assert more <= expected_return(unrolled, optimal(unrolled)[0]) + 1e-9


def test_a_stochastic_policy_may_be_better() -> None:
    """Two looks at one place, and the second should differ from the first: a coin is best."""
    unrolled = unroll(examples.differ_from_before())
    assert best_markov(unrolled, phase=False)[1] == pytest.approx(0)
    best = 0.5 * 0.5 / 0.75  # half of a reward of 1 at every second step
    policy, value = best_stochastic_markov(unrolled, phase=False)
    assert value == pytest.approx(best)
    assert expected_return(unrolled, policy) == pytest.approx(best)


def test_an_action_without_data_must_not_be_needed() -> None:
    unrolled = unroll(examples.off_policy_bias())
    table = np.tile([1.0, 0.0], (3, 2, 1))
    first_only = visits(unrolled, spread(unrolled, table))
    with pytest.raises(ValueError, match="no data"):
        ordinary_q(unrolled, uniform(unrolled), first_only)


def test_without_a_discount_loops_that_nobody_takes_are_of_no_account() -> None:
    """XOR with a third way, to a place where one may loop: figures by hand."""

    def reward(trajectory: Any) -> float:
        (first, _), (last, action) = trajectory[0], trajectory[-1]
        if last == 2 and action < 2:
            return float(first != action)
        return {(3, 0): -0.1, (3, 1): 0.1}.get((last, action), 0.0)

    moves = np.zeros((5, 3, 5))
    moves[[0, 1], 0, 2] = 1
    moves[2, [0, 1], 4] = 1
    moves[2, 2, 3] = 1
    moves[3, 0, 3] = moves[3, 1, 4] = 1
    problem = TabularDRMDP(
        moves, np.array([0.5, 0.5, 0, 0, 0]), np.array([0, 1.0]), reward, 1.0, terminal=(4,),
        actions=(1, 1, 3, 2, 1),
    )  # fmt: skip
    unrolled = unroll(problem)
    assert best_markov(unrolled)[1] == pytest.approx(0.5)
    policy, q = optimal(unrolled)
    assert expected_return(unrolled, policy) == pytest.approx(1.0)
    assert expected_return(unrolled, policy, q) == pytest.approx(1.0)


def test_without_a_discount_an_optimal_policy_ends() -> None:
    """Staying is as good as leaving, forever."""
    moves = np.array([[[1.0, 0], [0, 1], [0, 1]], [[0, 1], [0, 1], [0, 1]]])
    problem = TabularDRMDP(
        moves, np.array([1.0, 0]), np.ones(1), lambda t: float(t[-1][1]), 1.0, terminal=(1,)  # type: ignore[index]
    )  # fmt: skip
    unrolled = unroll(problem)
    policy, _ = optimal(unrolled)
    np.testing.assert_array_equal(policy, [0, 0, 1])
    assert best_markov(unrolled)[1] == pytest.approx(2)
