"""``belated reproduce``: the paper's figures, and some of ours."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console

from belated.cli.sweep import Where, WhereOptions, stopped, tell, words
from belated.experiments.reproduce import EXPERIMENTS, Scale, find_experiment, write_results
from belated.training.run import as_overrides


def reproduce(
    name: Annotated[str, tyro.conf.Positional] = "list",
    /,
    out: Path | None = None,
    steps: int | None = None,
    seeds: int | None = None,
    tasks: str | None = None,
    methods: str | None = None,
    learning_starts: int | None = None,
    eval_every: int | None = None,
    eval_episodes: int = 10,
    set: tuple[str, ...] = (),  # noqa: A002 (the option is called --set)
    where: WhereOptions = Where(),  # noqa: B008 (it is frozen)
) -> int:
    """Make a figure of the paper again.

    Does the runs and leaves the figure, its table and the curves in a folder. The defaults are the
    paper's, which take weeks on two cores: scale them down as in the second example. Ctrl-C stops
    after saving; the same command again goes on.

    Examples:
        belated reproduce list
        belated reproduce comparison --tasks Hopper --seeds 2 --steps 100000
        belated reproduce point-reach --out figures/point-reach

    Args:
        name: Which one: design, regulariser, variance, comparison, overlap, intervals, non-sum,
            td3, point-reach; ours: phase, lengths, credit, clock. list: say what each shows.
        out: The folder. None: runs/NAME.
        steps: Steps of each run. None: as many as in the paper.
        seeds: How many seeds. None: as many as in the paper.
        tasks: Environments separated by commas: Hopper, HalfCheetah, Walker2d, Ant, Reacher, or
            any Gymnasium ids. None: those of the figure.
        methods: Methods separated by commas; `belated methods` lists them. None: the figure's.
        learning_starts: How many random steps come first. None: the methods' own, 5000.
        eval_every: Steps between evaluations. None: a twentieth of the steps, 10000 at most.
        eval_episodes: Episodes in each evaluation.
        set: Hyperparameters of all runs, as name=value, for example precision=bfloat16.
        where: Where the runs are done.
    """
    console = Console()
    if name == "list":
        _list(console)
        return 0
    experiment = find_experiment(name)
    scale = Scale(
        steps=steps,
        seeds=seeds,
        tasks=None if tasks is None else words(tasks),
        methods=None if methods is None else words(methods),
        learning_starts=learning_starts,
        eval_every=eval_every,
        eval_episodes=eval_episodes,
        set=as_overrides(set),
    )
    folder = out or Path("runs") / name
    try:
        outcome = where.run(experiment.grid(scale), folder)
    except KeyboardInterrupt:
        return stopped(folder, console)
    if outcome.summary is not None:
        figure = write_results(experiment, outcome.summary, folder)
        console.print(f"Figure: {figure}; table: {figure.with_suffix('.md')}", highlight=False)
    return tell(outcome, console)


def _list(console: Console) -> None:
    for experiment in EXPERIMENTS.values():
        grid = experiment.grid(Scale())
        about = (inspect.getdoc(experiment) or "").split("\n\n")
        text = "\n".join(" ".join(part.split()) for part in about)
        console.print(f"[bold]{experiment.name}[/bold]: {text}", highlight=False)
        console.print(
            f"  {len(grid.runs())} runs of {grid.steps:,} steps: {len(grid.tasks)} tasks, "
            f"{len(grid.labels)} methods, {len(grid.seeds)} seeds\n",
            highlight=False,
        )
