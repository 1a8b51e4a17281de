"""The theory, solved exactly: small delayed-reward MDPs on which every claim can be checked.

A problem (`TabularDRMDP`) is unrolled into all its situations (`unroll`); values, optima and
conditions are then linear algebra.

>>> import belated.tabular as tabular
>>> unrolled = tabular.unroll(tabular.examples.xor(gamma=0.99))
>>> policy, q = tabular.optimal(unrolled)
>>> round(tabular.expected_return(unrolled, policy), 3)
0.99
>>> round(tabular.best_markov(unrolled)[1], 3)  # without the history
0.495
"""

from belated.tabular import examples
from belated.tabular.claims import Claim, check_claims
from belated.tabular.conditions import Invariance, Witness, reward_invariance, value_invariance
from belated.tabular.drmdp import TabularDRMDP
from belated.tabular.environment import TabularEnv
from belated.tabular.markov import best_markov, best_stochastic_markov
from belated.tabular.policy_iteration import improve, iterate
from belated.tabular.random_problems import random_policy, random_problem
from belated.tabular.unrolling import Unrolled, unroll
from belated.tabular.values import (
    EndlessError,
    expected_return,
    optimal,
    ordinary_q,
    q_values,
    spread,
    td_operator,
    uniform,
    visits,
)

__all__ = [
    "Claim",
    "EndlessError",
    "Invariance",
    "TabularDRMDP",
    "TabularEnv",
    "Unrolled",
    "Witness",
    "best_markov",
    "best_stochastic_markov",
    "check_claims",
    "examples",
    "expected_return",
    "improve",
    "iterate",
    "optimal",
    "ordinary_q",
    "q_values",
    "random_policy",
    "random_problem",
    "reward_invariance",
    "spread",
    "td_operator",
    "uniform",
    "unroll",
    "value_invariance",
    "visits",
]
