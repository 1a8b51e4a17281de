"""``belated demo``: a late-reward problem to look at."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium as gym
from rich.console import Console

import belated
from belated.analysis.agent_figures import point_reach_heatmap
from belated.analysis.figures import learning_curves
from belated.analysis.runs import Run
from belated.training.callbacks import Evaluate
from belated.training.progress import ProgressBar

SETTINGS: dict[str, Any] = {"hidden": (64, 64), "learning_rate": 1e-3}
"""Small networks are quick, enough for Point Reach, and can take a higher learning rate."""


def demo(steps: int = 40_000, seed: int = 1, out: Path = Path("demo")) -> int:
    """Learn Point Reach with hc-singleton and with plain SAC, and draw the results.

    A point walks over a grid to a target that it does not see; every 20 steps its reward shows
    how far it got. Takes about five minutes on one core; progress bars show the time left.

    Args:
        steps: How many environment steps each method learns for.
        seed: Seeds everything.
        out: The folder for the pictures.
    """
    console = Console()
    runs = []
    for method in ("hc-singleton", "sac"):
        agent = belated.Agent(method, gym.make("belated/PointReach-v0"), seed=seed, **SETTINGS)
        # The environment and the evaluated policy are deterministic: one episode is enough.
        callbacks = [Evaluate(every=2_500, episodes=1), ProgressBar(steps, f"{method:13}")]
        agent.learn(steps, callback=callbacks)
        about = {"task": "Point Reach, reward every 20 steps", "method": method, "seed": seed}
        runs.append(Run(out, about, tuple(agent.evaluations)))
        console.print(f"{method}: {_outcome(agent)}")
        if method == "hc-singleton":
            heatmap = point_reach_heatmap(
                agent, out / "heatmap.png", title="what a step earns, and the way that is taken"
            )
    picture = learning_curves(
        runs,
        out / "curves.png",
        column="length_mean",
        label="steps to the target\n(500: not reached)",
    )
    console.print(f"Pictures: {picture}, {heatmap}")
    console.print("One run each: with either method, finding the target is a matter of luck.")
    return 0


def _outcome(agent: belated.Agent) -> str:
    needed = [row["length_mean"] for row in agent.evaluations]
    if needed[-1] >= 500:
        return f"does not reach the target within 500 steps after {agent.steps} steps of training"
    return (
        f"reaches the target in {needed[-1]:.0f} steps after {agent.steps} steps of training "
        f"(best {min(needed):.0f})"
    )
