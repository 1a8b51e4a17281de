"""Credit rules: what reward a learner sees."""

from belated.credit.base import Advance, Credit, RolloutCredit
from belated.credit.dense import Dense
from belated.credit.ircr import IRCR
from belated.credit.revealed import Revealed
from belated.credit.rrd import RRD
from belated.credit.rudder import Rudder

__all__ = ["IRCR", "RRD", "Advance", "Credit", "Dense", "Revealed", "RolloutCredit", "Rudder"]
