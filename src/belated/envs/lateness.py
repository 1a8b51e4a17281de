"""How the reward of an environment comes late: options of commands, settings of runs."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

from belated.envs.intervals import AnyEnv
from belated.envs.tasks import make


@dataclass(frozen=True)
class Lateness:
    """How a reward comes late, unless the environment says so itself."""

    interval: str | None = None
    """For a reward at every step: delay it, with intervals of this length: 20, 15:20 (uniform)
    or 5=0.2,10=0.8 (length=probability)."""
    reward: str | None = None
    """With --interval: the interval reward: sum (that is None too), max, square, sum-square,
    square-sum, weighted:w0,w1,... or package.module:function."""
    overlap: int | None = None
    """How many steps before the interval its reward also depends on. None: 0."""
    info_key: str | None = None
    """For a reward that is late already: it is revealed on the steps whose info has a true value
    for this key."""
    period: str | None = None
    """The same: it is revealed every so many steps, or at the end of the episode ("episode")."""
    when: str | None = None
    """The same: it is revealed when package.module:function(reward, info) says so."""
    max_length: int | None = None
    """The most steps between two revealed rewards; --period 20 needs none."""

    def given(self) -> dict[str, Any]:
        """What was given, by name."""
        names = [field.name for field in dataclasses.fields(Lateness)]
        return {name: getattr(self, name) for name in names if getattr(self, name) is not None}

    def make(self, env_id: str, **kwargs: Any) -> AnyEnv:
        """Make an environment whose reward is late like this, as `belated.make` does."""
        try:
            return make(env_id, **self.given(), **kwargs)
        except ValueError as error:
            if not self.given() and "interval=" in str(error):
                error.add_note(
                    "On the command line: --interval 20; --period 20; --info-key lab_report "
                    "--max-length 30."
                )
            raise
