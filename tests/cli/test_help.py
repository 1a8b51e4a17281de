"""What the command line says of itself is there, true and quick."""

from __future__ import annotations

import functools
import inspect
import re
import shlex
import subprocess
import sys
from typing import Any

import pytest
import tyro

import belated
from belated import cli
from belated.cli import COMMANDS, main


def asked(*arguments: str, capsys: pytest.CaptureFixture[str]) -> str:
    with pytest.raises(SystemExit) as stop:
        main([*arguments])
    assert not stop.value.code
    return capsys.readouterr().out


def examples_in(text: str) -> list[list[str]]:
    lines = re.findall(r"^ +belated (.*)$", text.partition("Examples:\n")[2], re.MULTILINE)
    return [shlex.split(line.partition(" >")[0]) for line in lines]


def parse(name: str, arguments: list[str]) -> None:
    """Read a command's arguments as it would itself, without doing what it does."""
    function: Any = COMMANDS[name].load()

    @functools.wraps(function)
    def nothing(*given: Any, **named: Any) -> int:
        inspect.signature(function).bind(*given, **named)
        return 0

    assert tyro.cli(nothing, args=arguments) == 0


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_explains_itself_with_examples_that_parse(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    said = asked(name, "--help", capsys=capsys)
    assert said.startswith(COMMANDS[name].about), "the list of commands says something else"
    assert "--help" in said
    examples = examples_in(said)
    assert len(examples) >= 2
    for command, *arguments in examples:
        assert command == name
        parse(name, arguments)


def test_an_example_that_does_not_parse_is_noticed(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse("plot", ["runs", "--colour", "red"])
    assert "colour" in capsys.readouterr().err


def test_the_overview_has_a_line_for_each_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    said = capsys.readouterr().out
    for name, command in COMMANDS.items():
        assert re.search(rf"^  {name} +{re.escape(command.about)}$", said, re.MULTILINE)
    assert max(map(len, said.splitlines())) <= 82
    for command_name, *arguments in examples_in(said):
        parse(command_name, arguments)
    assert main([]) == 2
    assert capsys.readouterr().out == said


def test_the_version_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"belated {belated.__version__}\n"


def test_a_misspelt_command_is_put_right(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["trian"]) == 2
    assert "no command 'trian'. Did you mean train?" in capsys.readouterr().err


def test_help_waits_for_nothing_heavy() -> None:
    """JAX alone takes longer than all the rest; a command imports what it needs itself."""
    code = (
        "import sys; from belated.cli import main; main(['--help']); main(['--version']);"
        "sys.exit(any(name in sys.modules for name in ('jax', 'tyro', 'scipy', 'matplotlib')))"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


def test_no_command_waits_for_plots_and_statistics_before_it_needs_them() -> None:
    code = (
        "import sys; from belated.cli import COMMANDS; [c.load() for c in COMMANDS.values()];"
        "sys.exit(any(name in sys.modules for name in ('scipy', 'matplotlib')))"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_reader_that_has_seen_enough_is_no_error() -> None:
    command = f"unset PYTHONUNBUFFERED; {shlex.quote(sys.executable)} -m belated --version | true"
    result = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True)
    assert result.stderr == ""


def test_a_simulator_that_is_gone_is_an_error(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def die(arguments: list[str]) -> int:
        raise BrokenPipeError(32, "the simulator is gone")

    monkeypatch.setattr("belated.cli.run", die)
    assert main(["--version"]) == 2
    assert "the simulator is gone" in capsys.readouterr().err


def test_help_fits_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    said = cli.help_text(COMMANDS["check-reward"].load())
    prose = said.partition("Examples:")[0]
    assert 50 < max(map(len, prose.splitlines())) <= 60
