"""``belated completion``: the shell completes commands, options, methods and tasks."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterable
from contextlib import redirect_stdout, suppress
from typing import Annotated, Literal

import tyro

from belated.envs.tasks import POINT_REACH, TASKS
from belated.experiments.reproduce import EXPERIMENTS
from belated.methods import METHODS

IDS = (POINT_REACH, *TASKS)
OPTIONS: dict[str, Iterable[str]] = {"--method": METHODS, "--env": IDS}
"""What options take, where their type does not say it."""
FIRST: dict[str, Iterable[str]] = {
    "methods": METHODS,
    "check-env": IDS,
    "check-reward": IDS,
    "reproduce": ("list", *EXPERIMENTS),
    "completion": ("bash", "zsh"),
}
"""What commands take as their first word, where it is no file."""

SCRIPT = """\
# Completes the words of belated, in bash, and in zsh after bashcompinit.
_belated() {{
  local word="${{COMP_WORDS[COMP_CWORD]}}" before="${{COMP_WORDS[COMP_CWORD-1]}}" known=""
  if [ "$COMP_CWORD" -eq 1 ]; then
    known="{commands} --help --version"
  else
    case "${{COMP_WORDS[1]}} $before" in
{values}
    esac
    case "$word" in -*)
      case "${{COMP_WORDS[1]}}" in
{options}
      esac
    esac
  fi
  COMPREPLY=($(compgen -W "$known" -- "$word"))
}}
complete -o default -F _belated belated  # files, where there is nothing else"""


def completion(shell: Annotated[Literal["bash", "zsh"], tyro.conf.Positional], /) -> int:
    """Print what completes words in a shell.

    Write it to a file once, and have the shell read that file when it starts: put
    `source ~/.belated-completion` into ~/.bashrc; for zsh, put
    `autoload -Uz compinit bashcompinit; compinit; bashcompinit` before it, into ~/.zshrc.

    Examples:
        belated completion bash > ~/.belated-completion
        belated completion zsh > ~/.belated-completion

    Args:
        shell: Which shell. It is the same file for both.
    """
    from belated.cli import COMMANDS  # (which knows this module by name)

    functions: dict[str, Callable[..., int]] = {n: c.load() for n, c in COMMANDS.items()}
    values = {f"{name} {name}": words for name, words in FIRST.items()}
    options: dict[str, Iterable[str]] = {}
    for name, function in functions.items():
        choices = _options(function)
        options[name] = choices.keys()
        values |= {f"{name} {option}": words for option, words in choices.items() if words}
    print(
        SCRIPT.format(commands=" ".join(functions), values=_cases(values), options=_cases(options))
    )
    return 0


def _options(function: Callable[..., int]) -> dict[str, Iterable[str]]:
    """The options in a command's help, each with what it takes if there is a list of that."""
    said = io.StringIO()
    with redirect_stdout(said), suppress(SystemExit):
        tyro.cli(function, args=["--help"])
    rows = re.findall(
        r"^\W (-[-\w]+(?:, -[-\w]+)*)(?: \{([\w,]+)\}(?!\|))?", said.getvalue(), re.MULTILINE
    )
    return {
        option: OPTIONS.get(option, choices.split(",") if choices else ())
        for options, choices in rows
        for option in options.split(", ")
    }


def _cases(words: dict[str, Iterable[str]]) -> str:
    return "\n".join(f'      "{name}") known="{" ".join(each)}" ;;' for name, each in words.items())
