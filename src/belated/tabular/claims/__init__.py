"""Every claim of the paper's theory, checked: under which condition it holds, and where it fails.

- `check`: all the checks, in the order of the paper.
- `claim`: what a check returns, and the conditions that several claims share.
- `condition`: what is sufficient for the three central claims.
- `new_q`: the paper's Q. It is well defined, orders actions and improves policies.
- `biases`: the two biases of the ordinary Q.
- `optima`: which classes of policies contain an optimum.
- `rewards`: which of the paper's rewards are past-invariant.
"""

from belated.tabular.claims.check import check_claims
from belated.tabular.claims.claim import Claim

__all__ = ["Claim", "check_claims"]
