"""``belated check-env``: is an environment ready for a learner?"""

from __future__ import annotations

from typing import Annotated

import tyro
from rich.console import Console
from rich.markup import escape

from belated.envs.check import check_delayed_env
from belated.envs.lateness import Lateness
from belated.envs.tasks import make_plain


def check_env(
    env_ids: Annotated[tuple[str, ...], tyro.conf.Positional, tyro.conf.arg(metavar="ID [ID ...]")],
    /,
    late: tyro.conf.OmitArgPrefixes[Lateness] = Lateness(),  # noqa: B008 (it is frozen)
    steps: int = 2_000,
    seed: int = 0,
) -> int:
    """Is an environment ready for a learner?

    Plays it with random actions and reports what a learner would trip over. Findings marked ✗ make
    an agent refuse the environment; those marked ! are worth a look. The exit code is 1 if an
    agent would refuse any of the environments.

    Examples:
        belated check-env belated/PointReach-v0
        belated check-env your_module:YourEnv-v0 --steps 10000
        belated check-env Pendulum-v1 --interval 15:20 --reward max

    Args:
        env_ids: Gymnasium ids; your_module:YourEnv-v0 imports your_module first.
        late: How the reward comes late.
        steps: How many steps to run each environment.
        seed: Seeds environments and actions.
    """
    if not env_ids:
        raise ValueError("Which environment? For example: belated check-env belated/PointReach-v0")
    console = Console(highlight=False, soft_wrap=True)
    healthy = True
    for env_id in env_ids:
        env = late.make(env_id) if late.given() else make_plain(env_id)
        report = check_delayed_env(env, steps=steps, seed=seed)
        env.close()
        healthy &= report.ok
        mark = "[green]✓[/green]" if report.ok else "[red]✗[/red]"
        console.print(f"{mark} {escape(env_id)}: {escape(str(report).splitlines()[0])}")
        for finding in report.findings:
            mark = "[red]✗[/red]" if finding.fatal else "[yellow]![/yellow]"
            console.print(f"  {mark} {escape(str(finding))}")
    return 0 if healthy else 1
