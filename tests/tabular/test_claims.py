"""What the theory says, claim by claim: a change here is a change of the documentation."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from belated.cli import main
from belated.cli.theory import as_markdown
from belated.tabular import Claim, check_claims, examples

PAGE = (Path(__file__).parents[2] / "docs" / "theory.md").read_text()


@pytest.fixture(scope="module")
def claims() -> list[Claim]:
    return list(check_claims(problems=40, seed=1))


def test_every_claim_holds_or_fails_as_expected(claims: list[Claim]) -> None:
    for claim in claims:
        assert claim.holds == claim.expected, claim
        assert claim.holds or claim.evidence  # failures show an example
        assert (claim.deviation < 1e-9) == claim.holds or claim.example


def test_the_page_shows_what_was_found(claims: list[Claim]) -> None:
    assert as_markdown(claims) in PAGE


def test_every_example_that_the_page_names_is_there() -> None:
    for name in ("early_end", "early_end_of_a_mean", "entangled_overlap", "entangled_state",
                 "end_after_overlap", "counted_twice"):  # fmt: skip
        assert f"`{name}`" in PAGE
        assert hasattr(examples, name)


def test_the_command_is_quiet_about_what_is_as_it_should_be(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """With its default seed, and on problems whose values are large: γ may be close to 1."""
    assert main(["theory", "--problems", "60"]) == 0
    said = capsys.readouterr()
    assert "all as expected" in said.err
    assert "✗ past-invariant, as printed: for example, after A_b: 10 for B +1" in said.out
    assert "docs/theory.md" in said.out
    assert "deviation" not in said.out


def test_the_command_prints_json_and_more(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["theory", "--problems", "2", "--json"]) == 0
    claims = json.loads(capsys.readouterr().out)
    assert {*claims[0]} == {each.name for each in dataclasses.fields(Claim)}
    assert main(["theory", "--problems", "2", "--verbose"]) == 0
    assert "[2 problems, deviation" in capsys.readouterr().out
    assert main(["theory", "--problems", "0"]) == 2


def test_a_claim_that_comes_out_otherwise_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def harmless(**how: Any) -> Any:
        return early_end(gamma=0.999999, **how)  # nothing is gained by stopping sooner

    early_end = examples.early_end
    monkeypatch.setattr(examples, "early_end", harmless)
    assert main(["theory", "--problems", "2"]) == 1
    said = capsys.readouterr().err
    assert "3 not as expected" in said
    assert "Fact 3, a plain sum" in said
    assert "It holds; the deviation is" in said


def test_problems_are_drawn(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["theory", "--problems", "2", "--draw", str(tmp_path / "figures")]) == 0
    made = {path.name for path in (tmp_path / "figures").iterdir()}
    assert {"early_end.svg", "early_end.tex", "xor.svg", "entangled_state.tex"} <= made
    tikz = (tmp_path / "figures" / "big_and_little.tex").read_text()
    assert tikz.count(r"\node[") == 5
    assert r"\path (s2) edge[] node {$+1$} (s4);" in tikz
    assert "<svg" in (tmp_path / "figures" / "early_end.svg").read_text()
