"""Run folders made of given numbers."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any


def make_run(
    folder: Path,
    returns: Sequence[float],
    *,
    task: str = "Toy",
    method: str = "sac",
    seed: int = 0,
    every: int = 10,
    commit: str = "a" * 40,
    **config: Any,
) -> Path:
    """A run with an evaluation every so many steps, and a row without one before each."""
    place = folder / task / f"{method}-s{seed}"
    place.mkdir(parents=True, exist_ok=True)
    sources = {"belated": {"commit": commit, "dirty": False, "digest": commit[:16]}}
    document = {
        "env": "Toy-v0", "task": task, "method": method, "label": method, "seed": seed,
        "steps": every * len(returns), "eval_every": every, "eval_episodes": 1, "num_envs": 1,
        "hyperparameters": {"type": "Method", "gamma": 0.99},
        "provenance": {"sources": sources, "versions": {"jax": "1"}, "cpu": "abacus"},
    }  # fmt: skip
    (place / "config.json").write_text(json.dumps(document | config))
    rows = ["step,return_mean,wall_time"]
    for number, value in enumerate(returns, 1):
        step = number * every
        rows += [f"{step - 1},,{(step - 1) / 100}", f"{step},{value},{step / 100}"]
    (place / "progress.csv").write_text("\n".join(rows) + "\n")
    return place
