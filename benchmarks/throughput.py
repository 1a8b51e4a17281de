"""Environment steps per second of learning, beside Stable-Baselines3's and SBX's SAC, in one run.

HalfCheetah-v5, batch 128, 256×256, one update per step, everything on one core. Rounds of all
competitors are interleaved, and ratios are taken within a round, so that whatever else the machine
does falls on all alike. Needs the ``bench`` extra; install a CPU build of torch first.
"""

from __future__ import annotations

import json as json_module
import os
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})  # before any library counts the cores

import gymnasium as gym
import jax
import jax.extend
import numpy as np
import tyro
from rich.console import Console
from rich.progress import track
from rich.table import Table

import belated
from belated.training.off_policy import OffPolicy

WARM_UP = 700
CHUNK = 20  # steps between two looks at the clock
SB3, SBX = "Stable-Baselines3 SAC", "SBX SAC"

Learn = Callable[[int], Any]
"""Learns for some more steps."""


def stable_baselines3() -> Learn:
    import torch
    from stable_baselines3 import SAC

    torch.set_num_threads(1)
    return _peer(SAC("MlpPolicy", "HalfCheetah-v5", **_PEER, device="cpu"))


def sbx() -> Learn:
    from sbx import SAC

    return _peer(SAC("MlpPolicy", "HalfCheetah-v5", **_PEER))


_PEER: dict[str, Any] = {"batch_size": 128, "learning_starts": 500, "seed": 0}


def _peer(model: Any) -> Learn:
    return lambda steps: model.learn(steps, reset_num_timesteps=False)


def agent_of(method: str) -> belated.Agent:
    env = gym.make("belated/HalfCheetah-sum-n20-v0")
    return belated.Agent(method, env, seed=0, learning_starts=500)


def steps_per_second(learn: Learn, seconds: float) -> float:
    start, steps = time.perf_counter(), 0
    while time.perf_counter() - start < seconds:
        learn(CHUNK)
        steps += CHUNK
    return steps / (time.perf_counter() - start)


def parts_of_a_step(agent: belated.Agent, repeats: int = 100) -> dict[str, float]:
    """Milliseconds for an update, for sampling, and for acting with an environment step."""
    lanes, experience = agent._require_env()
    assert isinstance(experience, OffPolicy)
    noise = np.zeros((1, agent.shape.action_size), np.float32)
    batch = experience.sample()

    def update() -> None:
        agent.learner.update(batch)["td_loss"].block_until_ready()

    def sample() -> None:
        experience.sample()

    def act() -> None:
        for lane, step in lanes.step(agent.learner.act(lanes.observation, noise)):
            experience.add(step, lane)

    timed = {}
    for part in (update, sample, act):
        times = []
        for _ in range(repeats):
            start = time.perf_counter()
            part()
            times.append(time.perf_counter() - start)
        timed[part.__name__] = 1e3 * statistics.median(times)
    return timed


def operations_per_update(agent: belated.Agent) -> float:
    """Floating-point operations of an update's matrix products.

    XLA's own count takes the body of a loop for a single step.
    """
    experience = agent._require_env()[1]
    assert isinstance(experience, OffPolicy)
    traced = agent.learner._functions.update.trace(agent.learner.leaves, experience.sample())
    return _operations(traced.jaxpr.jaxpr)


def _operations(program: Any) -> float:
    total = 0.0
    for equation in program.eqns:
        if equation.primitive.name == "dot_general":
            (contracted, _), _ = equation.params["dimension_numbers"]
            left, (result,) = equation.invars[0].aval.shape, equation.outvars
            total += 2 * np.prod(result.aval.shape) * np.prod([left[axis] for axis in contracted])
        inner = sum(map(_operations, jax.extend.core.jaxprs_in_params(equation.params)))
        total += inner * equation.params.get("length", 1)
    return total


def sgemm_gflops(size: int = 1024) -> float:
    """The best square product of this core, the yardstick for what is possible."""
    matrix = np.random.default_rng(0).normal(size=(size, size)).astype(np.float32)
    times = []
    for _ in range(20):
        start = time.perf_counter()
        matrix @ matrix
        times.append(time.perf_counter() - start)
    return 2 * size**3 / min(times) / 1e9


def main(
    methods: tuple[str, ...] = (
        "sac",
        "hc-singleton",
        "hc-pairwise-1",
        "hc-pairwise-3",
        "hc-rnn",
        "q-rnn",
    ),
    rounds: int = 7,
    seconds: float = 3.0,
    json: Path | None = None,
) -> None:
    """Measure and print steps per second.

    Args:
        methods: Which of belated's methods to measure.
        rounds: How many rounds to run.
        seconds: How long each competitor learns in a round.
        json: Also write the figures to this file.
    """
    agents = {name: agent_of(name) for name in methods}
    competitors: dict[str, Learn] = {SB3: stable_baselines3()}
    try:
        competitors[SBX] = sbx()
    except ImportError:
        print("SBX is not installed and is left out.")
    competitors |= {name: agent.learn for name, agent in agents.items()}
    for learn in track(competitors.values(), "warming up", transient=True):
        learn(WARM_UP)
    speeds: dict[str, list[float]] = {name: [] for name in competitors}
    peaks = []
    for _ in track(range(rounds), "measuring", transient=True):
        peaks.append(sgemm_gflops())
        for name, learn in competitors.items():
            speeds[name].append(steps_per_second(learn, seconds))

    peak = statistics.median(peaks)
    report: dict[str, Any] = {"sgemm_gflops": peak, "methods": {}, "peers": {}}
    table = Table(
        "", "steps/s", "spread", "ratio to SB3", "update ms", "sample ms", "act, env ms", "MFLOP",
        "of peak",
    )  # fmt: skip
    for name, measured in speeds.items():
        ratio = statistics.median(a / b for a, b in zip(measured, speeds[SB3], strict=True))
        figures: dict[str, Any] = {
            "steps_per_second": statistics.median(measured),
            "ratio_to_sb3": ratio,
            "rounds": measured,
        }
        spread = f"{min(measured):.0f}–{max(measured):.0f}"
        cells = [name, f"{figures['steps_per_second']:.0f}", spread, f"{ratio:.2f}"]
        if name in agents:
            parts, operations = parts_of_a_step(agents[name]), operations_per_update(agents[name])
            share = operations / (parts["update"] / 1e3) / (peak * 1e9)
            figures |= {"milliseconds": parts, "flops": operations, "share_of_peak": share}
            cells += [f"{parts[part]:.2f}" for part in ("update", "sample", "act")]
            cells += [f"{operations / 1e6:.0f}", f"{share:.0%}"]
        table.add_row(*cells)
        report["methods" if name in agents else "peers"][name] = figures
    Console(width=120).print(table)
    print(f"one core's sgemm: {peak:.0f} GFLOPS (median of rounds)")
    if json is not None:
        json.write_text(json_module.dumps(report, indent=2) + "\n")


if __name__ == "__main__":
    tyro.cli(main)
