"""What the theory says, claim by claim: a change here is a change of the documentation."""

import json

import pytest

from belated.cli import main
from belated.tabular import check_claims
from belated.tabular.claims.claim import EARLY, ENDING, EXACT, LITERAL

HOLDS = {
    ("Fact 1", "any reward; against one more step of memory"): True,
    ("Fact 1", "the example, γ = 0.99"): True,
    ("Fact 3", "past-invariant, as printed"): False,
    ("Fact 3", EXACT): True,
    ("Fact 3", EARLY): False,
    ("Fact 3", LITERAL): False,
    ("Fact 3", ENDING): False,
    ("Proposition 1", "past-invariant, as printed: A_b/A_l/B"): False,
    ("Proposition 1", EXACT): True,
    ("Proposition 1", EARLY): False,
    ("Proposition 1", LITERAL): False,
    ("Proposition 1", ENDING): False,
    ("Strong past-invariance", EXACT): True,
    ("Strong past-invariance", EARLY): False,
    ("Footnote on sums", "γ < 1"): False,
    ("Footnote on sums", "γ = 1, c = 0, every episode ends"): True,
}
ALWAYS = ("Fact 2", "Fixed-point bias", "Off-policy bias", "A_b/A_l/B", "Appendix, c' < c")
REWARDS = {  # past-invariant, strongly past-invariant
    "Sum": (True, True),
    "Sum with overlap (r_c)": (True, True),
    "Weighted sum": (True, True),
    "Max": (False, False),
    "Square": (True, False),
    "Point Reach (best column)": (False, False),
}


def test_every_claim_holds_or_fails_as_documented() -> None:
    claims = list(check_claims(problems=40, seed=1))
    found = {(claim.name, claim.condition): claim.holds for claim in claims}
    for key, holds in HOLDS.items():
        assert found[key] == holds, key
    for name in ALWAYS:
        assert all(claim.holds for claim in claims if claim.name == name), name
    for reward, (order, strong) in REWARDS.items():
        both = [claim.holds for claim in claims if claim.name == f"Reward {reward}"]
        assert both == [order, strong], reward
    assert all(claim.holds or claim.evidence for claim in claims)  # failures show an example


def test_the_command_prints_a_table_or_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["theory", "--problems", "2", "--json"]) == 0
    claims = json.loads(capsys.readouterr().out)
    assert {"name", "statement", "condition", "problems", "deviation", "holds", "evidence"} == set(
        claims[0]
    )
    assert main(["theory", "--problems", "2"]) == 0
    assert "Proposition 1" in capsys.readouterr().out
    assert main(["theory", "--problems", "0"]) == 2
