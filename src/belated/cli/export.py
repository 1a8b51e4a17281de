"""``belated export``: write a run's policy to a file of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import tyro

from belated.training.agent import Agent


def export(
    run: Annotated[Path, tyro.conf.Positional], path: Annotated[Path, tyro.conf.Positional]
) -> int:
    """Write a run's policy to a file that needs no JAX.

    It takes an observation with the phase at its end and gives the best action, without exploring.
    Whoever reads the file needs no belated either; docs/deploying.md shows how.

    Examples:
        belated export runs/mine policy.npz
        belated export runs/mine/best policy.onnx

    Args:
        run: A run folder or a saved agent.
        path: The file to write: policy.npz, for NumPy alone, or policy.onnx (pip install
            "belated[onnx]").
    """
    agent = Agent.load(run)
    agent.export(path)
    shape = agent.shape
    numbers = len(shape.choices) or shape.action_size
    kind = "integers" if shape.choices else "numbers"
    print(
        f"{path}: {shape.observation_size} numbers, the phase last, to {numbers} {kind} within the "
        "action space's bounds"
    )
    return 0
