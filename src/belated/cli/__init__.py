"""The ``belated`` command: one module for each subcommand."""

from __future__ import annotations

import sys
from typing import Any

import tyro

from belated.cli.check_env import check_env
from belated.cli.train import Train, train


def _train(config: tyro.conf.OmitArgPrefixes[Train]) -> int:
    return train(config)


_train.__doc__ = Train.__doc__
COMMANDS: dict[str, Any] = {"train": _train, "check-env": check_env}


def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    try:
        code: int = tyro.extras.subcommand_cli_from_dict(
            COMMANDS,
            prog="belated",
            description="Off-policy reinforcement learning for rewards that arrive late.",
            args=arguments,
        )
    except ValueError as error:
        print(f"belated: {error}", file=sys.stderr)
        return 2
    return code
