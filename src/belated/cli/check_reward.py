"""``belated check-reward``: does what the end of an interval earns depend on its beginning?"""

from __future__ import annotations

import json
from typing import Annotated

import tyro
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from belated.analysis.invariance import InvarianceReport, measure_invariance
from belated.analysis.recorded import RecordedReport, measure_recorded
from belated.envs.delay_reward import DelayReward
from belated.envs.lateness import Lateness
from belated.envs.layers import layers
from belated.ranges import positive_int


def check_reward(
    env_ids: Annotated[tuple[str, ...], tyro.conf.Positional, tyro.conf.arg(metavar="ID [ID ...]")],
    /,
    late: tyro.conf.OmitArgPrefixes[Lateness] = Lateness(),  # noqa: B008 (it is frozen)
    samples: int = 1_000,
    seed: int = 0,
    json_output: Annotated[bool, tyro.conf.arg(name="json")] = False,
) -> int:
    """Do the hc methods suit an interval reward?

    Their theory wants a reward that is strongly past-invariant: how much better one continuation
    of an interval is than another must not depend on the interval's beginning. (Without
    "strongly": which of the two is better.) Random actions measure how far a reward is from that.
    If the reward is late by itself, what recorded intervals tell of it is measured instead: how
    close it is to a sum of a term for each step. docs/environments.md explains the numbers. The
    exit code is 0 whatever the verdict.

    Examples:
        belated check-reward Pendulum-v1 --interval 20 --reward max
        belated check-reward belated/Hopper-square-n20-v0 --json

    Args:
        env_ids: Gymnasium ids; your_module:YourEnv-v0 imports your_module first.
        late: How the reward comes late.
        samples: How many times to compare two histories with two continuations, or how many
            intervals to record.
        seed: Seeds environments, actions and draws.
        json_output: Print JSON, one line per environment.
    """
    if not env_ids:
        raise ValueError(
            "Which environment? For example: belated check-reward Pendulum-v1 --interval 20"
        )
    console = Console(highlight=False, soft_wrap=True)
    for env_id in env_ids:
        env = late.make(env_id)
        positive_int(samples, "The number of samples")
        report: InvarianceReport | RecordedReport
        if any(isinstance(layer, DelayReward) for layer in layers(env)):
            report = measure_invariance(env, samples=samples, seed=seed)
        else:
            report = measure_recorded(env, intervals=samples, seed=seed)
        env.close()
        if json_output:
            print(json.dumps({"env": env_id} | report.as_dict()))
        else:
            _show(console, env_id, report)
    return 0


def _show(console: Console, env_id: str, report: InvarianceReport | RecordedReport) -> None:
    first, *others, advice = str(report).splitlines()
    colour = _colour(report.verdict)
    console.print(f"{escape(env_id)}, [{colour}]{escape(first)}[/{colour}]")
    for line in others:
        console.print(f"  {escape(line)}")
    if isinstance(report, InvarianceReport) and report.examples:
        table = Table("length", "split", "1 then 1", "1 then 2", "2 then 1", "2 then 2")
        table.title = "The worst cases: rewards of history then continuation"
        for example in report.examples:
            rewards = (*example.first_history, *example.second_history)
            cells = [str(example.length), str(example.split), *(f"{r:.4g}" for r in rewards)]
            table.add_row(*cells)
        console.print(table)
    console.print(escape(advice))


def _colour(verdict: str) -> str:
    if verdict.startswith("not "):
        return "red"
    return "yellow" if verdict.startswith("undecided") or "not strongly" in verdict else "green"
