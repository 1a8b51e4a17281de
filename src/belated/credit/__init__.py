"""Credit rules: what reward the TD target sees."""

from belated.credit.base import Credit
from belated.credit.dense import Dense
from belated.credit.revealed import Revealed

__all__ = ["Credit", "Dense", "Revealed"]
