"""``belated completion``: the shell completes commands and options."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import tyro


def completion(
    shell: Annotated[Literal["bash", "zsh", "fish"], tyro.conf.Positional], /
) -> int:
    """Print what completes words in a shell.

    Write it once to where the shell looks for such files, and open a new shell. For zsh the folder
    must be in its fpath: fpath+=~/.zfunc before compinit in ~/.zshrc.

    Examples:
        belated completion bash > ~/.local/share/bash-completion/completions/belated
        belated completion zsh > ~/.zfunc/_belated
        belated completion fish > ~/.config/fish/completions/belated.fish

    Args:
        shell: Which shell.
    """
    from belated.cli import COMMANDS  # (which knows this module by name)

    commands: dict[str, Any] = {name: command.load() for name, command in COMMANDS.items()}
    try:
        tyro.extras.subcommand_cli_from_dict(
            commands, prog="belated", args=["--tyro-print-completion", shell]
        )
    except SystemExit as done:
        return int(done.code or 0)
    raise AssertionError("tyro ends with an exit after it has printed the script.")
