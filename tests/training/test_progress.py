"""Somebody who waits is told how far it is."""

from __future__ import annotations

from typing import Any

import pytest
from small_agents import small_agent

from belated.training import progress

QUICK: dict[str, Any] = {"eval_every": 20, "eval_episodes": 1, "progress_bar": True}


@pytest.fixture(autouse=True)
def _no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("FORCE_COLOR", "TTY_COMPATIBLE"):
        monkeypatch.delenv(name, raising=False)


def test_without_a_terminal_there_are_lines(capsys: pytest.CaptureFixture[str]) -> None:
    # (Sizes that no other test has, so that there is something to compile.)
    agent = small_agent("sac", hidden=(7,)).learn(50, **QUICK)
    lines = capsys.readouterr().out.splitlines()
    first, second, last = (f", return {row['return_mean']:,.1f}" for row in agent.evaluations)
    assert lines[0].startswith("20 of 50 steps, ")
    assert lines[0].endswith(f" steps/s{first}")
    assert lines[1] == "compiling"
    assert lines[2].startswith("40 of 50 steps, ")
    assert lines[2].endswith(second)
    assert lines[3].endswith(last)
    assert len(lines) == 4
    agent.learn(10, progress_bar=True)
    assert capsys.readouterr().out.startswith("60 of 60 steps, ")  # nothing to compile any more


def test_a_line_comes_every_so_often(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "LINE_SECONDS", 0.0)
    small_agent().learn(3, progress_bar=True)
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(" steps")[0] for line in lines] == ["1 of 3", "2 of 3", "3 of 3"]


def test_a_terminal_has_a_bar_that_says_when_it_compiles(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    agent = small_agent("sac", hidden=(6,)).learn(40, **QUICK)
    shown = capsys.readouterr().out
    assert "compiling" in shown
    assert "40/40" in shown
    assert f"return {agent.evaluations[-1]['return_mean']:,.1f}" in shown
