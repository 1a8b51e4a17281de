"""Killed with -9 at any moment, a run goes on as if nothing had been. Long form: make faults."""

from __future__ import annotations

import os
import random
import signal
from pathlib import Path

import pytest
from faults.kills import asked_twice, assert_same, killed, outcome, undisturbed

KILLS = int(os.environ.get("BELATED_KILLS", "2"))
"""For each of the runs below."""


RUNS = [("crossq-hc-singleton", 1), ("ircr-original", 2)]
SIGNALS = [signal.SIGTERM]
if KILLS > 2:
    RUNS += [("ppo", 1), ("rudder", 2), ("td3-hc-rnn", 1)]
    SIGNALS += [signal.SIGINT]


@pytest.mark.parametrize(("method", "envs"), RUNS)
def test_a_run_that_was_killed_ends_bit_equal(method: str, envs: int, tmp_path: Path) -> None:
    seconds = undisturbed(tmp_path / "whole", method, envs)
    rng = random.Random()  # another moment every time
    kills = killed(tmp_path / "killed", method, KILLS, seconds, rng, envs)
    assert kills >= 0.8 * KILLS  # (a run may be through before)
    assert_same(outcome(tmp_path / "killed"), outcome(tmp_path / "whole"))


@pytest.mark.parametrize("number", SIGNALS)
def test_a_second_signal_ends_a_run_at_once_and_harms_nothing(
    number: signal.Signals, tmp_path: Path
) -> None:
    seconds = undisturbed(tmp_path / "whole", "sac")
    left = asked_twice(tmp_path / "asked", "sac", number, KILLS, seconds)
    assert {code for code, _ in left} <= {-number, 128 + number, 0}  # (0: it was through)
    assert max(took for _, took in left) < 20
    assert_same(outcome(tmp_path / "asked"), outcome(tmp_path / "whole"))
