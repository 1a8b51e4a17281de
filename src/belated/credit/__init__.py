"""Credit rules: what reward the TD target sees."""

from belated.credit.base import Credit
from belated.credit.dense import Dense
from belated.credit.ircr import IRCR
from belated.credit.revealed import Revealed
from belated.credit.rrd import RRD

__all__ = ["IRCR", "RRD", "Credit", "Dense", "Revealed"]
