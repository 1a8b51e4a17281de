"""``belated sweep`` and ``belated compare``: many runs, and what they say."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Annotated

import tyro
from rich.console import Console
from rich.table import Table
from rich.text import Text

from belated.analysis.summary import Summary
from belated.analysis.summary_files import score_table
from belated.envs.lateness import Lateness
from belated.experiments.grid import Grid
from belated.experiments.sweep import Backend, Outcome, sweep
from belated.training.run import as_overrides

MOST_RANDOM_STEPS = 5_000


@dataclass(frozen=True)
class Where:
    """Where runs are done."""

    workers: int | None = None
    """How many runs at a time, each pinned to a core. None: one for each core."""
    on: Backend = "local"
    """local: worker processes. here: this process, one run after another. ray: a cluster (pip
    install "belated[ray]")."""
    address: str | None = None
    """With --on ray: the cluster's address. None: one on this machine."""
    mixed: bool = False
    """Go on although earlier runs in the folder are of other code, versions or settings."""
    keep_replay: bool = False
    """Keep the replays of finished runs; they take most of the space."""

    def run(self, grid: Grid, out: Path) -> Outcome:
        """Do a grid's runs; SIGTERM stops them as Ctrl-C does."""
        with _terminated_like_interrupted():
            return sweep(
                grid,
                out,
                workers=self.workers,
                on=self.on,
                address=self.address,
                mixed=self.mixed,
                keep_replay=self.keep_replay,
            )


WhereOptions = tyro.conf.OmitArgPrefixes[Where]


def sweep_grid(
    grid: Annotated[Path, tyro.conf.Positional],
    /,
    out: Path,
    where: WhereOptions = Where(),  # noqa: B008 (it is frozen)
) -> int:
    """Do all runs of a grid and summarise them.

    A grid is every method on every task with every seed. Ctrl-C stops after saving; the same
    command again goes on, and finished runs are not done twice.

    Examples:
        belated sweep grid.toml --out runs/mine
        belated sweep grid.toml --out runs/mine --workers 1

    Args:
        grid: A TOML file with tasks, methods, seeds and steps; docs/experiments.md explains it.
        out: The folder for the runs, summary.json, summary.md, curves.png and report.html.
        where: Where the runs are done.
    """
    return _do(Grid.read(grid), out, where)


def compare(
    env: str,
    methods: str = "crossq-hc-singleton,crossq-rrd,sac",
    late: tyro.conf.OmitArgPrefixes[Lateness] = Lateness(),  # noqa: B008 (it is frozen)
    phase: bool = True,
    seeds: int = 5,
    steps: int = 20_000,
    out: Path | None = None,
    primary: str | None = None,
    learning_starts: int | None = None,
    eval_every: int | None = None,
    eval_episodes: int = 10,
    set: tuple[str, ...] = (),  # noqa: A002 (the option is called --set)
    where: WhereOptions = Where(),  # noqa: B008
) -> int:
    """Run methods on a task and say which is better.

    The verdict is about two of them (--primary) and comes with a confidence interval. The runs,
    summary.json, summary.md, curves.png and report.html are left in a folder. Ctrl-C stops after
    saving; the same command again goes on.

    Examples:
        belated compare --env belated/PointReach-v0 --methods hc-singleton,sac
        belated compare --env Pendulum-v1 --interval 20 --reward max --seeds 8
        belated compare --env your_module:YourEnv-v0 --steps 50000 --out runs/mine

    Args:
        env: A Gymnasium id; your_module:YourEnv-v0 imports your_module first.
        methods: Which methods, separated by commas; `belated methods` lists them.
        late: How the reward comes late.
        phase: Whether observations tell the position in the interval.
        seeds: How many seeds. With fewer than 4 no difference can be shown, however large.
        steps: How many steps each run takes.
        out: The folder. None: runs/compare-TASK.
        primary: The two methods whose comparison counts, A,B. None: the first and the last.
        learning_starts: How many random steps come first. None: a tenth of the steps, 5000 at most.
        eval_every: Steps between evaluations. None: a twentieth of the steps.
        eval_episodes: Episodes in each evaluation.
        set: Hyperparameters of all methods, as name=value, for example batch_size=256.
        where: Where the runs are done.
    """
    overrides = as_overrides(set)
    if learning_starts is None and "learning_starts" not in overrides:
        learning_starts = min(MOST_RANDOM_STEPS, steps // 10)
    grid = Grid.of(
        tasks=[{"env": env, "phase": phase, **late.given()}],
        methods=words(methods),
        seeds=seeds,
        steps=steps,
        set=overrides,
        primary=None if primary is None else words(primary),
        learning_starts=learning_starts,
        eval_every=eval_every,
        eval_episodes=eval_episodes,
    )
    return _do(grid, out or Path("runs") / f"compare-{grid.tasks[0].name}", where)


def words(text: str) -> list[str]:
    """Words separated by commas.

    >>> words("hc-singleton, sac")
    ['hc-singleton', 'sac']
    """
    return [word.strip() for word in text.split(",") if word.strip()]


def _do(grid: Grid, out: Path, where: Where) -> int:
    console = Console()
    try:
        outcome = where.run(grid, out)
    except KeyboardInterrupt:
        return stopped(out, console)
    return tell(outcome, console)


def stopped(out: Path, console: Console) -> int:
    """Say that a sweep was stopped and return the exit code."""
    console.print(f"Stopped; everything is saved in {out}. The same command goes on.")
    return 130


def tell(outcome: Outcome, console: Console) -> int:
    """Print what came of a sweep and return the exit code."""
    if outcome.summary is not None:
        print_summary(outcome.summary, console)
        console.print(f"Report: {outcome.folder / 'report.html'}", highlight=False)
    for name, error in outcome.failures.items():
        console.print(Text(f"✗ {name} failed: {error}"))
    return 1 if outcome.failures else 0


def print_summary(summary: Summary, console: Console) -> None:
    """Print tables of scores, the verdict and what to know of the runs."""
    for task in summary.tasks:
        header, rows = score_table(summary, task)
        shown = [place for place, name in enumerate(header) if name not in ("steps", "IQM")]
        table = Table(title=task, title_justify="left", box=None, pad_edge=False)
        for place in shown:
            table.add_column(header[place], no_wrap=True)
        for row in rows:
            table.add_row(*(row[place] for place in shown))
        console.print(table)
    for note in summary.notes:
        console.print(Text(f"! {note}"))
    for comparison in summary.comparisons:
        console.print(Text(f"{comparison.where}: {comparison.verdict}."))


@contextmanager
def _terminated_like_interrupted() -> Iterator[None]:
    """Have SIGTERM do what Ctrl-C does."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        if signal.getsignal(signal.SIGINT) in (signal.SIG_IGN, signal.SIG_DFL, None):
            raise KeyboardInterrupt  # (scripts start their background jobs deaf to Ctrl-C)
        signal.raise_signal(signal.SIGINT)

    previous = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, previous)
