"""The solver against a brute force that shares nothing with it."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from tabular.brute_force import BruteForce, Chooser

from belated.tabular import (
    best_markov,
    expected_return,
    optimal,
    random_problem,
    spread,
    unroll,
)

SHAPES = [  # (overlap, longest interval), c > n included
    (overlap, length) for overlap in (0, 1, 2) for length in (1, 2)
]
ENDINGS = ["never", "at interval ends", "anywhere"]
HORIZON = 20
"""With γ ≤ 0.25 what comes later is worth less than 1e-11."""


def by_table(table: Any) -> Chooser:
    """The policy of Π_s that a table holds."""
    return lambda history, state, position: table[state, position]


@pytest.mark.parametrize(("overlap", "length"), SHAPES)
@pytest.mark.parametrize("ends", ["reveal", "absorb"])
def test_values_and_optima_are_those_of_all_trajectories(
    overlap: int, length: int, ends: str
) -> None:
    """18 problems for each of these 12, with all kinds of rewards and endings."""
    kinds = ["any", "separable", "monotone", "sum", "r_c", "any"]
    for number, (ending, kind) in enumerate(itertools.product(ENDINGS, kinds)):
        rng = np.random.default_rng([overlap, length, len(ends), number])
        problem = random_problem(
            rng, kind=kind, overlap=overlap, max_length=length, ending=ending, ends=ends,  # type: ignore[arg-type]
            gamma=rng.uniform(0.1, 0.25),
        )  # fmt: skip
        unrolled = unroll(problem)
        table = rng.dirichlet(np.ones(2), (len(problem.start), length))
        table[list(problem.terminal)] = [1, 0]
        brute = BruteForce(problem, HORIZON)
        found = expected_return(unrolled, spread(unrolled, table))
        assert found == pytest.approx(brute.expected_return(by_table(table)), abs=1e-10)
        best, q = optimal(unrolled)
        found = expected_return(unrolled, best, q)
        assert found == pytest.approx(brute.expected_return(None), abs=1e-10)


@pytest.mark.parametrize("ends", ["reveal", "absorb"])
def test_the_best_markov_policy_is_the_best_of_all_tables(ends: str) -> None:
    for number in range(6):
        rng = np.random.default_rng([7, len(ends), number])
        problem = random_problem(
            rng, kind="any", overlap=number % 2, max_length=2, ending="anywhere", ends=ends,  # type: ignore[arg-type]
            gamma=rng.uniform(0.1, 0.25),
        )  # fmt: skip
        if len(problem.start) > 3:
            continue
        brute = BruteForce(problem, HORIZON)
        returns = []
        for picks in itertools.product((0, 1), repeat=4):
            table = np.eye(2)[np.reshape(picks, (2, 2))]
            returns.append(brute.expected_return(by_table(table)))
        assert best_markov(unroll(problem))[1] == pytest.approx(max(returns), abs=1e-9)
