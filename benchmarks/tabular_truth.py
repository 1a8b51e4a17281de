"""Do agents with discrete actions end at the best policy that the exact solver finds?

Each problem is played with its own discrete actions by small agents. The learned policy's table
is then evaluated exactly, so that no number here has noise of its own beside the learning.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np

import belated
from belated.tabular import (
    TabularDRMDP,
    TabularEnv,
    best_markov,
    examples,
    expected_return,
    optimal,
    random_problem,
    spread,
    uniform,
    unroll,
)

METHODS = ("hc-rnn", "q-rnn", "dqn-hc-rnn", "sac", "dqn")
RANDOM_STEPS, STEPS, EPISODE = 10_000, 20_000, 100
SMALL: dict[str, Any] = {
    "hidden": (32, 32),
    "batch_size": 64,
    "learning_rate": 1e-3,
    "learning_starts": RANDOM_STEPS,
    "tau": 0.01,
}
NEARLY_GREEDY: dict[str, Any] = {"initial_temperature": 0.3, "entropy_fraction": 0.05}


def problems() -> dict[str, TabularDRMDP]:
    """The paper's two biases, and random problems that are strongly past-invariant."""
    found = {
        "fixed-point bias": examples.fixed_point_bias(gamma=0.9),
        "off-policy bias": examples.off_policy_bias(gamma=0.9),
        "big and little": examples.big_and_little(gamma=0.9),
    }
    rng = np.random.default_rng(0)
    for number in range(20):
        found[f"random {number}"] = random_problem(
            rng, kind="separable", overlap=number % 2, gamma=0.8, ending="never"
        )
    return found


def learned_table(agent: belated.Agent, problem: TabularDRMDP) -> Any:
    """π(a | s, position) as the agent would act: (S, n_max, A)."""
    states, actions, _ = problem.transition.shape
    table = np.zeros((states, problem.max_length, actions))
    for state in range(states):
        allowed = np.arange(actions) < problem.number_of_actions(state)
        for position in range(problem.max_length):
            phase = [position / problem.max_length]
            seen = np.concatenate([np.eye(states)[state], allowed, phase]).astype(np.float32)
            table[state, position, int(agent.predict(seen)[0])] = 1
    return table


def measure(problem: TabularDRMDP, method: str, seed: int) -> dict[str, float]:
    """Train an agent and compare its J with the best one's."""
    env = belated.IntervalPhase(TabularEnv(problem, EPISODE, discrete=True), action_masks=True)
    changes = SMALL | ({} if method.startswith("dqn") else NEARLY_GREEDY)
    if "rnn" in method:
        changes = changes | {"units": 24}
    if "hc" in method:  # with random lengths λ > 0 pulls H away from what it should be
        changes = changes | {"regularizer": 0.0}
    agent = belated.Agent(method, env, seed=seed, gamma=problem.gamma, **changes)
    agent.learn(STEPS)
    unrolled = unroll(problem)
    reached = expected_return(unrolled, spread(unrolled, learned_table(agent, problem)))
    best = best_markov(unrolled)[1]
    policy, q = optimal(unrolled)
    chance = expected_return(unrolled, uniform(unrolled))
    return {
        "reached": reached,
        "best": best,
        "optimum": expected_return(unrolled, policy, q),
        "chance": chance,
        "gap": (best - reached) / max(abs(best), abs(best - chance)),
    }


def main() -> None:
    """Measure all, print a table and write it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("results/tabular_truth.json"))
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--methods", nargs="+", default=METHODS)
    arguments = parser.parse_args()
    rows: list[dict[str, Any]] = []
    for name, problem in problems().items():
        for method in arguments.methods:
            for seed in range(arguments.seeds):
                row = measure(problem, method, seed)
                rows.append({"problem": name, "method": method, "seed": seed} | row)
                print(
                    f"{name:18} {method:12} {row['reached']:9.4f} of {row['best']:9.4f} "
                    f"({row['gap']:+.2%})",
                    flush=True,
                )
                arguments.out.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
