"""``belated evaluate``: play episodes with a run's policy."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import tyro

from belated.ranges import positive_int
from belated.training.run import load_run


def evaluate(
    folder: Annotated[Path, tyro.conf.Positional],
    /,
    episodes: int = 10,
    json_output: Annotated[bool, tyro.conf.arg(name="json")] = False,
    trust: bool = False,
) -> int:
    """Play episodes with the deterministic policy of a run and print their returns.

    Args:
        folder: The run folder.
        episodes: How many episodes to play.
        json_output: Print JSON.
        trust: Import the modules that the run's settings name.
    """
    positive_int(episodes, "--episodes")
    agent = load_run(folder, trust)
    outcome = agent.evaluate(episodes, env=agent.env)
    summary = {"steps": agent.steps, "episodes": episodes} | outcome.summary()
    if json_output:
        print(json.dumps(summary | {"returns": outcome.returns.tolist()}))
    else:
        print(
            f"return {summary['return_mean']:,.2f} ± {summary['return_std']:,.2f} "
            f"(revealed {summary['revealed_return_mean']:,.2f}), "
            f"{summary['length_mean']:,.1f} steps, over {episodes} episodes"
        )
    return 0
