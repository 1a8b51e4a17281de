"""Exact values against rollouts, against other ways to compute them, and against each other."""

from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from belated.tabular import (
    TabularDRMDP,
    TabularEnv,
    best_markov,
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
from belated.tabular.random_problems import Kind

seeds = st.integers(0, 2**32 - 1)


@given(seed=seeds, overlap=st.integers(0, 2))
@settings(max_examples=6, deadline=None)
def test_exact_values_agree_with_rollouts(seed: int, overlap: int) -> None:
    rng = np.random.default_rng(seed)
    unrolled = unroll(random_problem(rng, kind="any", overlap=overlap, ends="anywhere"))
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
        fixed = spread(unrolled, rng.integers(2, size=(4, 2, 1)) == np.arange(2))
        assert expected_return(unrolled, fixed) <= markov + 1e-9


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


def test_endless_problems_have_no_undiscounted_value() -> None:
    problem = TabularDRMDP(
        np.ones((1, 1, 1)), np.ones(1), np.ones(1), lambda trajectory: 1.0, gamma=1.0
    )
    unrolled = unroll(problem)
    with pytest.raises(ValueError, match="γ = 1"):
        q_values(unrolled, uniform(unrolled))


def test_policies_must_be_distributions() -> None:
    unrolled = unroll(examples.xor())
    with pytest.raises(ValueError, match="add up"):
        spread(unrolled, np.full((4, 2, 2), 0.6))


def test_enumeration_has_a_limit() -> None:
    unrolled = unroll(random_problem(np.random.default_rng(0), max_length=2))
    with pytest.raises(ValueError, match="too many"):
        best_markov(unrolled, limit=3)


def test_an_action_without_data_must_not_be_needed() -> None:
    unrolled = unroll(examples.off_policy_bias())
    table = np.tile([1.0, 0.0], (3, 2, 1))
    first_only = visits(unrolled, spread(unrolled, table))
    with pytest.raises(ValueError, match="no data"):
        ordinary_q(unrolled, uniform(unrolled), first_only)
