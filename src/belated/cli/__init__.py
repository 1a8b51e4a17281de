"""The ``belated`` command: one module for each subcommand."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import tyro

from belated.cli import whole_numbers
from belated.cli.check_env import check_env
from belated.cli.check_reward import check_reward
from belated.cli.credit import credit
from belated.cli.demo import demo
from belated.cli.evaluate import evaluate
from belated.cli.export import export
from belated.cli.plot import plot
from belated.cli.report import report
from belated.cli.reproduce import reproduce
from belated.cli.sweep import compare, sweep_grid
from belated.cli.theory import theory
from belated.cli.train import Train, train


def _train(config: tyro.conf.OmitArgPrefixes[Train]) -> int:
    return train(config)


_train.__doc__ = Train.__doc__

COMMANDS: dict[str, Any] = {
    "train": _train,
    "evaluate": evaluate,
    "credit": credit,
    "export": export,
    "compare": compare,
    "sweep": sweep_grid,
    "reproduce": reproduce,
    "plot": plot,
    "report": report,
    "demo": demo,
    "check-env": check_env,
    "check-reward": check_reward,
    "theory": theory,
}


def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    if "" not in sys.path and str(Path.cwd()) not in sys.path:
        sys.path.append(str(Path.cwd()))  # where people keep environments of their own
    try:
        code: int = tyro.extras.subcommand_cli_from_dict(
            COMMANDS,
            prog="belated",
            description="Off-policy reinforcement learning for rewards that arrive late.",
            args=arguments,
            registry=whole_numbers.registry,
        )
    except (ValueError, OSError) as error:
        print("\n".join([f"belated: {error}", *getattr(error, "__notes__", ())]), file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    return code
