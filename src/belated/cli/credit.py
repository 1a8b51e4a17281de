"""``belated credit``: which steps earned the reward?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np
import numpy.typing as npt
import tyro
from rich.console import Console
from rich.table import Table

from belated.analysis.agent_figures import credit_chart
from belated.ranges import non_negative_int, positive_int
from belated.training.evaluation import Episode
from belated.training.run import BEST, load_run, read_settings


def credit(
    folder: Annotated[Path, tyro.conf.Positional],
    /,
    seed: int = 0,
    intervals: int = 3,
    out: Path | None = None,
    best: bool = False,
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
        out: Where to write credit.png and credit.csv. None: to the run folder,
            or its best/.
        best: Take the agent of the best evaluation, not the last one.
        trust: Allow to import the modules that the run's settings name, such as the
            environment's. Say so only if you know where the folder comes from.
    """
    non_negative_int(seed, "--seed")
    positive_int(intervals, "--intervals")
    agent = load_run(folder, trust, best)
    settings = read_settings(folder)
    episode = agent.play(seed=seed, env=agent.env)
    values = agent.credit(episode)
    out = out or (folder / BEST if best else folder)
    rewards = np.array([step.reward for step in episode.steps])
    dense = np.array([step.dense_reward for step in episode.steps])

    console = Console()
    console.print(_table(episode, values, intervals))
    known = np.isfinite(values) & np.isfinite(dense)
    if known.any() and dense[known].std() > 0 and values[known].std() > 0:
        correlation = np.corrcoef(values[known], dense[known])[0, 1]
        console.print(f"Correlation of credit with the hidden reward: {correlation:.3f}")
    told = np.isfinite(values)
    console.print(
        f"In this episode credits add up to {values[told].sum():.4g}, revealed rewards to "
        f"{rewards[told].sum():.4g}. (Far apart, an H has not learned yet what earns them; ircr's "
        "credit is a rank and has no such sum.)"
    )
    out.mkdir(parents=True, exist_ok=True)
    rows = np.column_stack([np.arange(len(values)), values, dense, rewards])
    header = "step,credit,dense_reward,reward"
    np.savetxt(out / "credit.csv", rows, delimiter=",", header=header, comments="", fmt="%.9g")
    title = f"{settings.label or settings.method} after {agent.steps:,} steps, on {settings.env}"
    console.print(f"Picture: {credit_chart(episode, values, out / 'credit.png', title=title)}")
    return 0


def _table(episode: Episode, credit: npt.NDArray[np.float64], intervals: int) -> Table:
    """The first intervals, with the hidden reward if there is one: a late environment has none."""
    has_hidden = not any(np.isnan(step.dense_reward) for step in episode.steps)
    table = Table("step", "credit", *["hidden reward"] * has_hidden, "revealed reward")
    shown = 0
    for time, step in enumerate(episode.steps):
        hidden = [f"{step.dense_reward:.3f}"] * has_hidden
        revealed = f"{step.reward:.3f}" if step.revealed else ""
        cells = str(time), f"{credit[time]:.3f}", *hidden, revealed
        table.add_row(*cells, end_section=step.revealed)
        shown += step.interval_end
        if shown == intervals:
            break
    return table
