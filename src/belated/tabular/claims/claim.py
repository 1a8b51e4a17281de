"""What a check returns, and the conditions that several claims are checked under.

The conditions are exact where they can be. "Strongly past-invariant at every split" means that the
reward separates into a part for the history and a part for what follows, wherever the window is
cut, its overlap included.
"""

from __future__ import annotations

from dataclasses import dataclass

EXACT = (
    "strongly past-invariant at every split; episodes end only where intervals do, for c ≥ 2 never"
)
EARLY = "strongly past-invariant (a plain sum), but an episode may end inside an interval, γ < 1"
LITERAL = "c = 2, strongly past-invariant as printed (histories of at least c steps)"
ENDING = "c = 2, strongly past-invariant at every split (r_c), but an episode may end"


@dataclass(frozen=True)
class Claim:
    """What was found about a claim.

    Attributes:
        name: where it is in the paper.
        statement: what it says.
        condition: the kind of problems it was checked on.
        problems: how many there were.
        deviation: the largest deviation from what is claimed.
        holds: whether the claim held on all of them.
        evidence: the figures, or the counterexample.
    """

    name: str
    statement: str
    condition: str
    problems: int
    deviation: float
    holds: bool
    evidence: str = ""
