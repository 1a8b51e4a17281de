"""What a check returns, and the conditions that several claims are checked under.

"Strongly past-invariant at every split" means that the reward separates into a part for the history
and a part for what follows, wherever the window is cut, its overlap included.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

from belated.tabular.drmdp import Ends

SUFFICIENT: dict[Ends, str] = {
    "reveal": "γ < 1, strongly past-invariant at every split, and episodes end only where "
    "intervals do, for c ≥ 2 never",
    "absorb": "γ < 1, strongly past-invariant at every split",
}
PRINTED = "past-invariant, as printed"
EARLY = "a plain sum, γ < 1, and an episode may end inside an interval"
MEAN = "a mean, γ = 1, and an episode may end inside an interval"
LITERAL = "strongly past-invariant as printed (histories of at least c steps), c = 2, no ends"
ENDING = "the paper's r_c, c = 2, and an episode may end with an interval"


@dataclass(frozen=True)
class Claim:
    """What was found about a claim.

    Attributes:
        name: where it is in the paper.
        statement: what it says.
        condition: the kind of problems it was checked on.
        ends: for which reading of an episode's end this is: "reveal", "absorb", or "either".
        problems: how many there were.
        deviation: the largest deviation from what is claimed, as a share of the largest value
            where values are compared.
        holds: whether the claim held on all of them.
        expected: whether it should, by `docs/theory.md`.
        evidence: the figures, or the counterexample.
        example: which of `belated.tabular.examples` the evidence is from, if it is one.
    """

    name: str
    statement: str
    condition: str
    ends: Ends | Literal["either"]
    problems: int
    deviation: float
    holds: bool
    expected: bool
    evidence: str = ""
    example: str = ""


Check = Callable[[Ends], Claim]


def under_both(check: Check) -> Iterator[Claim]:
    """Check a claim under both readings of an end; one row if they agree, else two."""
    reveal, absorb = check("reveal"), check("absorb")
    alike = ("condition", "holds", "expected")
    if any(getattr(reveal, name) != getattr(absorb, name) for name in alike):
        yield from (reveal, absorb)
        return
    evidence = reveal.evidence
    if absorb.evidence != evidence:
        evidence = f"{evidence} (if ends absorb: {absorb.evidence})"
    yield dataclasses.replace(
        reveal,
        ends="either",
        problems=reveal.problems + absorb.problems,
        deviation=max(reveal.deviation, absorb.deviation),
        evidence=evidence,
    )
