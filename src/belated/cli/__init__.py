"""The ``belated`` command: one module for each subcommand, imported when it is asked for."""

from __future__ import annotations

import difflib
import inspect
import os
import pkgutil
import shutil
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import belated


class Command(NamedTuple):
    """A subcommand."""

    place: str
    """Where its function is, in this package."""
    about: str
    """The first line of its help, here too so that the list of commands need import none."""

    def load(self) -> Callable[..., int]:
        """Import its function."""
        function: Callable[..., int] = pkgutil.resolve_name(f"{__name__}.{self.place}")
        return function


GROUPS: dict[str, dict[str, Command]] = {
    "Learn": {
        "train": Command("train:train", "Learn a task and leave a run folder behind."),
        "evaluate": Command("evaluate:evaluate", "Play episodes with a run's policy."),
        "credit": Command("credit:credit", "Say which steps of an episode earned the reward."),
        "export": Command("export:export", "Write a run's policy to a file that needs no JAX."),
        "demo": Command(
            "demo:demo", "Learn to run from late rewards with two methods, and compare."
        ),
    },
    "Compare": {
        "compare": Command("sweep:compare", "Run methods on a task and say which is better."),
        "sweep": Command("sweep:sweep_grid", "Do all runs of a grid and summarise them."),
        "reproduce": Command("reproduce:reproduce", "Make a figure of the paper again."),
        "plot": Command("plot:plot", "Draw learning curves of runs."),
        "report": Command("report:report", "Write all there is to see of some runs on one page."),
    },
    "Check": {
        "check-env": Command("check_env:check_env", "Is an environment ready for a learner?"),
        "check-reward": Command(
            "check_reward:check_reward", "Do the hc methods suit an interval reward?"
        ),
        "theory": Command("theory:theory", "Check the paper's claims on small exact problems."),
        "doctor": Command("doctor:doctor", "Is this installation in order?"),
    },
    "Look up": {
        "methods": Command("methods:methods", "List the methods, or a method's hyperparameters."),
        "tasks": Command("tasks:tasks", "List the tasks that come with the library."),
        "completion": Command("completion:completion", "Print what completes words in a shell."),
    },
}
COMMANDS = {name: command for group in GROUPS.values() for name, command in group.items()}


def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    if "" not in sys.path and str(Path.cwd()) not in sys.path:
        sys.path.append(str(Path.cwd()))  # where people keep environments of their own
    try:
        code = run(sys.argv[1:] if arguments is None else arguments)
        sys.stdout.flush()
    except (ValueError, OSError) as error:
        if isinstance(error, BrokenPipeError) and _nobody_reads():  # as in belated tasks | head
            return 141
        print("\n".join([f"belated: {error}", *getattr(error, "__notes__", ())]), file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    return code


def _nobody_reads() -> bool:
    """Whether what reads the output is gone; if so, nothing more is written to it."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return True
    return False


def run(arguments: list[str]) -> int:
    """Do what the arguments say and return the exit code."""
    name, *others = arguments or [""]
    if name in ("", "-h", "--help"):
        print(overview())
        return 0 if name else 2
    if name == "--version":
        print(f"belated {belated.__version__}")
        return 0
    if name not in COMMANDS:
        similar = difflib.get_close_matches(name, COMMANDS, n=1)
        hint = f"Did you mean {similar[0]}? " if similar else ""
        raise ValueError(f"There is no command {name!r}. {hint}belated --help lists all.")
    import tyro  # (the overview does without)

    from belated.cli import whole_numbers

    function: Any = COMMANDS[name].load()
    if {"-h", "--help"} & {*others}:
        print(help_text(function), end="\n\n")
    registry = whole_numbers.registry
    code: int = tyro.cli(
        function, prog=f"belated {name}", description="", args=others, registry=registry
    )
    return code


def help_text(function: Callable[..., int]) -> str:
    """What a command's help says above its options: its docstring, as wide as the terminal."""
    width = min(shutil.get_terminal_size().columns, 100)
    paragraphs = (inspect.getdoc(function) or "").partition("\n\nArgs:\n")[0].split("\n\n")
    return "\n\n".join(
        text if text.startswith("Examples:") else textwrap.fill(text, width, break_on_hyphens=False)
        for text in paragraphs
    )


def overview() -> str:
    """What ``belated --help`` prints.

    >>> print(overview().splitlines()[0])
    usage: belated COMMAND ...   (belated COMMAND --help explains one, with examples)
    """
    width = max(map(len, COMMANDS))
    lines = ["usage: belated COMMAND ...   (belated COMMAND --help explains one, with examples)"]
    lines += ["", str(belated.__doc__)]
    for title, group in GROUPS.items():
        lines += ["", f"{title}:", *(f"  {name:{width}}  {c.about}" for name, c in group.items())]
    lines += ["", "Examples:", *(f"  {line}" for line in EXAMPLES)]
    return "\n".join([*lines, "", EXIT_CODES])


EXIT_CODES = """\
belated --version prints the version. Exit codes: 0 all is well, 1 a check found
something or runs failed, 2 it cannot be done (the message says why), 130 Ctrl-C."""
EXAMPLES = (
    "belated train --env HalfCheetah-v5 --interval 15:20 --out run",
    "belated evaluate run",
    "belated compare --env belated/PointReach-v0 --methods crossq-hc-rnn,sac",
)
