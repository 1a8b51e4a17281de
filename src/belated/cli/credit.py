"""``belated credit``: which steps earned the reward?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np
import tyro
from rich.console import Console
from rich.table import Table

from belated.analysis.agent_figures import credit_chart
from belated.training.run import load_run


def credit(
    folder: Annotated[Path, tyro.conf.Positional],
    /,
    seed: int = 0,
    intervals: int = 3,
    out: Path | None = None,
    trust: bool = False,
) -> int:
    """Say which steps of an episode earned the reward.

    Plays one episode with a run's policy, prints the credit of each step beside the hidden reward,
    where the environment has one, and draws it. For methods that tell steps apart: those with an H
    (hc-...), rrd, ircr, rudder and the oracles.

    Examples:
        belated credit runs/mine
        belated credit runs/mine --seed 7 --intervals 1 --out pictures

    Args:
        folder: The run folder, as `belated train` leaves it.
        seed: Seeds the episode.
        intervals: How many intervals to print; the picture and credit.csv hold all of them.
        out: Where to write credit.png and credit.csv. None: to the run folder.
        trust: Allow to import the modules that the run's settings name, such as the
            environment's. Say so only if you know where the folder comes from.
    """
    agent = load_run(folder, trust)
    episode = agent.play(seed=seed, env=agent.env)
    values = agent.credit(episode)
    out = out or folder
    rewards = np.array([step.reward for step in episode.steps])
    dense = np.array([step.dense_reward for step in episode.steps])

    table = Table("step", "credit", "hidden reward", "revealed reward")
    shown = 0
    for time, step in enumerate(episode.steps):
        revealed = f"{step.reward:.3f}" if step.revealed else ""
        hidden = "" if np.isnan(step.dense_reward) else f"{step.dense_reward:.3f}"
        table.add_row(str(time), f"{values[time]:.3f}", hidden, revealed, end_section=step.revealed)
        shown += step.interval_end
        if shown == intervals:
            break
    console = Console()
    console.print(table)
    known = np.isfinite(values) & np.isfinite(dense)
    if known.any() and dense[known].std() > 0 and values[known].std() > 0:
        correlation = np.corrcoef(values[known], dense[known])[0, 1]
        console.print(f"Correlation of credit with the hidden reward: {correlation:.3f}")
    out.mkdir(parents=True, exist_ok=True)
    rows = np.column_stack([np.arange(len(values)), values, dense, rewards])
    header = "step,credit,dense_reward,reward"
    np.savetxt(out / "credit.csv", rows, delimiter=",", header=header, comments="", fmt="%.9g")
    console.print(f"Picture: {credit_chart(episode, values, out / 'credit.png')}")
    return 0
