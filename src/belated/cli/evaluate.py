"""``belated evaluate``: play episodes with a run's policy."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import tyro

from belated.ranges import non_negative_int, optional, positive_int
from belated.training.run import load_run


def evaluate(
    folder: Annotated[Path, tyro.conf.Positional],
    /,
    episodes: int = 10,
    json_output: Annotated[bool, tyro.conf.arg(name="json")] = False,
    seed: int | None = None,
    best: bool = False,
    trust: bool = False,
) -> int:
    """Play episodes with a run's policy.

    Prints the mean of their returns and its standard deviation over the episodes. The policy
    takes its best action each time and does not explore. "revealed" is the return that an agent
    was told of; the other counts the hidden reward of every step, where the environment has one.

    Examples:
        belated evaluate runs/mine
        belated evaluate runs/mine --episodes 100 --json
        belated evaluate runs/mine --best --seed 1

    Args:
        folder: The run folder, as `belated train` leaves it.
        episodes: How many episodes to play.
        json_output: Print JSON, with the return of each episode.
        seed: Seeds the episodes. None: those of the run's evaluations.
        best: Take the agent of the best evaluation, not the last one. It was chosen by the
            episodes of the run's evaluations, so other ones (--seed) tell more.
        trust: Allow to import the modules that the run's settings name, such as the
            environment's. Say so only if you know where the folder comes from.
    """
    positive_int(episodes, "--episodes")
    optional(non_negative_int)(seed, "--seed")
    agent = load_run(folder, trust, best)
    outcome = agent.evaluate(episodes, env=agent.env, seed=seed)
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
