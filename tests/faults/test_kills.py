"""Killed with -9 at any moment, a run goes on as if nothing had been. Long form: make faults."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest
from faults.kills import assert_same, killed, outcome, undisturbed

KILLS = int(os.environ.get("BELATED_KILLS", "2"))
"""For each of the runs below."""


RUNS = [("crossq-hc-singleton", 1), ("ircr-original", 2)]
MORE = [("ppo", 1), ("rudder", 2), ("td3-hc-rnn", 1)] if KILLS > 2 else []


@pytest.mark.parametrize(("method", "envs"), RUNS + MORE)
def test_a_run_that_was_killed_ends_bit_equal(method: str, envs: int, tmp_path: Path) -> None:
    seconds = undisturbed(tmp_path / "whole", method, envs)
    rng = random.Random()  # another moment every time
    kills = killed(tmp_path / "killed", method, KILLS, seconds, rng, envs)
    assert kills > 0
    assert_same(outcome(tmp_path / "killed"), outcome(tmp_path / "whole"))
