"""``belated demo``: what late rewards do to a learner, and what helps."""

from __future__ import annotations

import os
from pathlib import Path

from rich.console import Console

from belated.analysis.animation import animate
from belated.analysis.report import write_report
from belated.analysis.summary import Group, Summary
from belated.cli.credit import credit
from belated.cli.sweep import MOST_RANDOM_STEPS, Where, WhereOptions, stopped, tell
from belated.experiments.grid import Grid

TASK = "belated/HalfCheetah-sum-n20-v0"
METHODS = ("crossq-hc-singleton", "sac")
EVALUATIONS, EPISODES = 8, 3
"""How many evaluations a run has, and how many episodes each of them."""
SETTINGS = {"hidden": (128, 128)}
"""Half as wide as usual, which is quicker and enough for so few steps."""

STORY = """\
A robot learns to run. It is told only the sum of its rewards, every 20 steps.
  crossq-hc-singleton  remembers the steps since the last reward: Q = H(history) + C(state, action)
  sac                  plain SAC, which takes each sum for the reward of the step on which it came
Seeds for each method: {seeds}. With 4, on two free cores, it takes about 4 minutes.
"""
ENDING = """\
Curves: {out}/curves.png
What they do now: {film}
Next, on a task of yours: belated compare --env your_module:YourEnv-v0"""
NO_FILM = "no animation, for MuJoCo cannot draw here (belated doctor says more)"


def demo(
    steps: int = 16_000,
    seeds: int = 4,
    out: Path = Path("demo"),
    where: WhereOptions = Where(),  # noqa: B008 (it is frozen)
) -> int:
    """Learn to run from late rewards with two methods, and compare.

    They are the recommended method and plain SAC. Says which is better, and leaves a report page,
    learning curves, a chart of which steps earned the reward and, where MuJoCo can draw, an
    animation of both policies. The same command again goes on; Ctrl-C stops after saving.

    Examples:
        belated demo
        belated demo --steps 30000 --out runs/demo

    Args:
        steps: How many environment steps each run takes.
        seeds: How many seeds. With fewer than 4 no difference can be shown, however large.
        out: The folder for everything.
        where: Where the runs are done.
    """
    console = Console(highlight=False, soft_wrap=True)
    console.print(STORY.format(seeds=seeds))
    grid = Grid.of(
        tasks=[TASK],
        methods=METHODS,
        seeds=seeds,
        steps=steps,
        learning_starts=min(MOST_RANDOM_STEPS, steps // 3),
        eval_every=max(1, steps // EVALUATIONS),
        eval_episodes=EPISODES,
        set=SETTINGS,
    )
    # What one run has compiled, the next one need not.
    os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(out.resolve() / ".compiled"))
    try:
        outcome = where.run(grid, out)
        code = tell(outcome, console)
        if outcome.summary is not None and code == 0:
            _look_closer(outcome.summary, out, console)
    except KeyboardInterrupt:
        return stopped(out, console)
    return code


def _look_closer(summary: Summary, out: Path, console: Console) -> None:
    """Show which steps earned the reward, and what the policies do."""
    console.print("\nWhich steps earned the reward, says H, with the first interval as an example:")
    middle = {group.method: _middle_run(group) for group in summary.groups}
    credit(middle[METHODS[0]], intervals=1)
    write_report(summary, out / "report.html", title="Rewards that arrive late: a demo")
    with console.status("Drawing what the policies do now"):
        film = animate({name: middle[name] for name in METHODS}, out / "runs.gif")
    console.print(ENDING.format(out=out, film=film or NO_FILM))


def _middle_run(group: Group) -> Path:
    """The folder of the run whose score is in the middle: neither luck nor bad luck."""
    ranked = sorted(zip(group.scores, group.runs, strict=True), key=lambda pair: pair[0])
    return ranked[(len(ranked) - 1) // 2][1].folder
