"""Environment steps per second of learning, beside Stable-Baselines3's and SBX's SAC, in one run.

HalfCheetah-v5, batch 128, 256×256, one update per step, everything on one core. Each competitor has
a process of its own, as it would have in use. With ``--discrete``: CartPole-v1, beside
Stable-Baselines3's DQN with an update per step; ``--units 64`` is the size that it has by default.
Rounds of all are interleaved, and ratios are taken within a round, so that whatever else the
machine does falls on all alike. belated's methods compete twice: in float32, as their peers do, and
with products of bfloat16 factors. Needs the ``bench`` extra; install a CPU build of torch first.
"""

from __future__ import annotations

import importlib.util
import json as json_module
import os
import statistics
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

CORE = min(os.sched_getaffinity(0))
os.sched_setaffinity(0, {CORE})  # before any library counts the cores

import gymnasium as gym
import numpy as np
import tyro
from contestant import Contestant, Figures, Learn
from products import products_of
from rich.console import Console
from rich.progress import track
from rich.table import Table

import belated
from belated.experience.off_policy import OffPolicy

SB3, SBX, SB3_DQN = "Stable-Baselines3 SAC", "SBX SAC", "Stable-Baselines3 DQN"
ROUNDED, DISCRETE = "bfloat16", "CartPole"
OPTIONS: dict[str, dict[str, Any]] = {
    "shared": {"shared": True},
    "separate": {"shared": False},
    "last policy": {"policy_average": 0},
}


def stable_baselines3(units: int) -> Learn:
    import torch
    from stable_baselines3 import SAC

    torch.set_num_threads(1)
    return _peer(SAC("MlpPolicy", "HalfCheetah-v5", **_settings(units), device="cpu"))


def stable_baselines3_dqn(units: int) -> Learn:
    import torch
    from stable_baselines3 import DQN

    torch.set_num_threads(1)
    every_step = {"train_freq": 1, "gradient_steps": 1}
    return _peer(DQN("MlpPolicy", "CartPole-v1", **_settings(units), **every_step, device="cpu"))


def sbx(units: int) -> Learn:
    from sbx import SAC

    return _peer(SAC("MlpPolicy", "HalfCheetah-v5", **_settings(units)))


def _settings(units: int) -> dict[str, Any]:
    network = {"policy_kwargs": {"net_arch": [units, units]}}
    return {"batch_size": 128, "learning_starts": 500, "seed": 0} | network


def _peer(model: Any) -> Learn:
    return lambda steps: model.learn(steps, reset_num_timesteps=False)


def agent_of(name: str, units: int) -> belated.Agent:
    """An agent as its name says: METHOD and what is special about it, after commas."""
    method, *options = name.split(", ")
    if DISCRETE in options:
        env = belated.make("CartPole-v1", interval=20)
    else:
        env = gym.make("belated/HalfCheetah-sum-n20-v0")
    changes: dict[str, Any] = {"learning_starts": 500, "hidden": (units, units)}
    changes["precision"] = ROUNDED if ROUNDED in options else "float32"
    for option in OPTIONS.keys() & {*options}:
        changes |= OPTIONS[option]
    return belated.Agent(method, env, seed=0, **changes)


def make(name: str, units: int) -> tuple[Learn, Callable[[], Figures]]:
    """A competitor, and the parts of its step if it is one of belated's."""
    peers = {SB3: stable_baselines3, SBX: sbx, SB3_DQN: stable_baselines3_dqn}
    if name in peers:
        return peers[name](units), dict
    agent = agent_of(name, units)
    return agent.learn, lambda: figures_of(agent)


def figures_of(agent: belated.Agent) -> dict[str, Any]:
    """What a step is made of, and how much of it the matrix products need."""
    parts, experience = parts_of_a_step(agent), agent.loop.experience
    assert isinstance(experience, OffPolicy)
    update, leaves = agent.learner._functions.update, agent.learner.leaves
    products = products_of(update, leaves, experience.sample())
    parts["products"] = sum(n * product.milliseconds() for product, n in products.items())
    operations = sum(n * product.operations for product, n in products.items())
    return {"milliseconds": parts, "flops": operations}


def parts_of_a_step(agent: belated.Agent, repeats: int = 100) -> dict[str, float]:
    """Milliseconds for an update, for sampling, and for acting with an environment step.

    Medians; the quickest update too, which stands beside the quickest products.
    """
    lanes, experience = agent.loop.lanes, agent.loop.experience
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
        if part is update:
            timed["quickest update"] = 1e3 * min(times)
    return timed


def sgemm_gflops(size: int = 1024) -> float:
    """The best square product of this core, the yardstick for what is possible."""
    matrix = np.random.default_rng(0).normal(size=(size, size)).astype(np.float32)
    times = []
    for _ in range(20):
        start = time.perf_counter()
        matrix @ matrix
        times.append(time.perf_counter() - start)
    return 2 * size**3 / min(times) / 1e9


METHODS = (
    "sac", "crossq", "hc-singleton", "crossq-hc-singleton", "hc-pairwise-1", "hc-pairwise-3",
    "hc-rnn", "q-rnn",
)  # fmt: skip
DISCRETE_METHODS = ("dqn", "sac", "crossq", "dqn-hc-singleton", "hc-singleton")


def main(
    methods: tuple[str, ...] | None = None,
    discrete: bool = False,
    units: int = 256,
    rounded: bool = True,
    rounds: int = 21,
    seconds: float = 1.0,
    json: Path | None = None,
) -> None:
    """Measure and print steps per second.

    Args:
        methods: Which of belated's methods to measure; by default a selection. One H for all
            critics is "hc-singleton, shared", one for each "crossq-hc-singleton, separate", and
            without an averaged policy "crossq-hc-singleton, last policy".
        discrete: On CartPole-v1 beside DQN, not on HalfCheetah-v5 beside SAC.
        units: Of each of the two hidden layers.
        rounded: Also measure products of bfloat16 factors.
        rounds: How many rounds to run.
        seconds: How long each competitor learns in a round.
        json: Also write the figures to this file.
    """
    peers = [SB3_DQN] if discrete else [SB3, *([SBX] if importlib.util.find_spec("sbx") else [])]
    own = methods or (DISCRETE_METHODS if discrete else METHODS)
    own = tuple(f"{method}, {DISCRETE}" if discrete else method for method in own)
    names = [*peers, *own, *(f"{method}, {ROUNDED}" for method in own if rounded)]
    competitors = {}
    for name in track(names, "warming up", transient=True):
        competitors[name] = Contestant(name, CORE, partial(make, units=units))
        competitors[name].wait_until_ready()
    speeds: dict[str, list[float]] = {name: [] for name in names}
    peaks = []
    for _ in track(range(rounds), "measuring", transient=True):
        peaks.append(sgemm_gflops())
        for name, competitor in competitors.items():
            competitor.go(seconds)
            speeds[name].append(competitor.result()["steps_per_second"])
    parts = {name: competitor.finish() for name, competitor in competitors.items()}
    report = report_of(speeds, parts, max(peaks))
    Console(width=120).print(table_of(report))
    print(f"one core's sgemm: {max(peaks):.0f} GFLOPS; shares of it are of the quickest update")
    if json is not None:
        json.write_text(json_module.dumps(report, indent=2) + "\n")


def report_of(
    speeds: dict[str, list[float]], parts: dict[str, Figures], peak: float
) -> dict[str, Any]:
    """Medians, ratios within a round, and shares of the peak."""
    report: dict[str, Any] = {"sgemm_gflops": peak, "peers": {}, "methods": {}}
    reference = next(iter(speeds))
    for name, measured in speeds.items():
        ratios = [a / b for a, b in zip(measured, speeds[reference], strict=True)]
        figures: dict[str, Any] = {
            "steps_per_second": statistics.median(measured),
            "ratio_to_sb3": statistics.median(ratios),
            "rounds": measured,
        }
        if more := parts[name]:
            quickest = more["milliseconds"]["quickest update"] / 1e3
            figures |= more | {"share_of_peak": more["flops"] / quickest / peak / 1e9}
        report["methods" if parts[name] else "peers"][name] = figures
    return report


def table_of(report: dict[str, Any]) -> Table:
    table = Table(
        "", "steps/s", "spread", "to SB3", "update ms", "quickest", "products", "sample",
        "act, env", "MFLOP", "of peak",
    )  # fmt: skip
    for name, figures in (report["peers"] | report["methods"]).items():
        rounds = figures["rounds"]
        cells = [name, f"{figures['steps_per_second']:.0f}", f"{min(rounds):.0f}–{max(rounds):.0f}"]
        cells.append(f"{figures['ratio_to_sb3']:.2f}")
        if "milliseconds" in figures:
            parts = ("update", "quickest update", "products", "sample", "act")
            cells += [f"{figures['milliseconds'][part]:.2f}" for part in parts]
            cells += [f"{figures['flops'] / 1e6:.0f}", f"{figures['share_of_peak']:.0%}"]
        table.add_row(*cells)
    return table


if __name__ == "__main__":
    tyro.cli(main)
