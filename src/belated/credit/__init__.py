"""Credit rules: what reward a learner sees."""

from belated.credit.base import Credit
from belated.credit.dense import Dense
from belated.credit.revealed import Revealed
from belated.credit.rollouts import RolloutCredit

__all__ = ["Credit", "Dense", "Revealed", "RolloutCredit"]
