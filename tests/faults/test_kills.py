"""Killed with -9 at any moment, a run goes on as if nothing had been. Long form: make faults."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest
from faults.kills import assert_same, killed, outcome, undisturbed

KILLS = int(os.environ.get("BELATED_KILLS", "2"))
"""For each of the runs below."""


@pytest.mark.parametrize(
    ("method", "envs"), [("crossq-hc-singleton", 1), ("ppo", 1), ("ircr-original", 2)]
)
def test_a_run_that_was_killed_ends_bit_equal(method: str, envs: int, tmp_path: Path) -> None:
    seconds = undisturbed(tmp_path / "whole", method, envs)
    rng = random.Random()  # another moment every time
    kills = killed(tmp_path / "killed", method, KILLS, seconds, rng, envs)
    assert kills > 0
    assert_same(outcome(tmp_path / "killed"), outcome(tmp_path / "whole"))
