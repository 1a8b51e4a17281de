from __future__ import annotations

import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from belated.cli import COMMANDS, main
from belated.methods import METHODS


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("completion") / "belated"
    with pytest.MonkeyPatch.context() as patch, file.open("w") as out:
        patch.setattr("sys.stdout", out)
        assert main(["completion", "bash"]) == 0
    return file


@pytest.fixture
def offered(script: Path) -> Offered:
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("there is no bash here")
    return Offered(bash, script)


class Offered:
    """What bash offers for the last of some words."""

    def __init__(self, bash: str, script: Path) -> None:
        self.bash = bash
        self.script = script

    def __call__(self, *words: str) -> list[str]:
        line = " ".join(shlex.quote(word) for word in ("belated", *words))
        code = (
            f"set -u; source {shlex.quote(str(self.script))}; COMP_WORDS=({line}); "
            f"COMP_CWORD={len(words)}; [[ $(complete -p belated) =~ -F\\ ([^ ]+) ]]; "
            'COMPREPLY=(); "${BASH_REMATCH[1]}"; [ ${#COMPREPLY[@]} -eq 0 ] || '
            'printf "%s\\n" "${COMPREPLY[@]}"'
        )
        done = subprocess.run([self.bash, "-c", code], capture_output=True, text=True, check=True)
        return done.stdout.split()


def test_bash_completes_commands_and_options(offered: Offered) -> None:
    assert {*offered("")} == {*COMMANDS, "--help", "--version"}
    assert offered("tr") == ["train"]
    assert offered("train", "--interv") == ["--interval"]
    assert offered("train", "--env", "x", "--learn") == ["--learning-starts"]
    assert offered("plot", "runs", "--statistic", "") == ["iqm", "mean"]
    assert offered("evaluate", "--learn") == []


def test_bash_completes_methods_and_tasks(offered: Offered) -> None:
    assert {*offered("train", "--method", "")} == METHODS.keys()
    assert offered("methods", "crossq-hc-s") == ["crossq-hc-singleton"]
    assert "belated/Ant-sum-n20-v0" in offered("compare", "--env", "belated/Ant")
    assert offered("completion", "") == ["bash", "zsh"]


def test_files_are_offered_where_there_is_nothing_else(offered: Offered, script: Path) -> None:
    assert offered("evaluate", "run") == []
    assert "complete -o default" in script.read_text()  # bash then offers files
