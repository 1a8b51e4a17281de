"""Saved agents that were tampered with are refused, and nothing of them is run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from small_agents import small_agent

MUTATIONS = int(os.environ.get("BELATED_MUTATIONS", "60"))
"""For each of the methods below."""


@pytest.mark.parametrize("method", ["crossq-hc-singleton", "rudder"])
def test_a_saved_agent_that_was_tampered_with(method: str, tmp_path: Path) -> None:
    small_agent(method, num_envs=2).learn(80).save(tmp_path / "agent", replay=True)
    seed = int.from_bytes(os.urandom(4), "little")
    script = Path(__file__).with_name("fuzz.py")
    command = [sys.executable, str(script), str(tmp_path / "agent"), str(MUTATIONS), str(seed)]
    quiet = os.environ | {"JAX_ENABLE_COMPILATION_CACHE": "0"}  # it writes files of its own
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=quiet)
    assert done.returncode == 0, done.stderr
    outcome = json.loads(done.stdout)
    assert not outcome["failures"], "\n\n".join(outcome["failures"])
    assert not outcome["forbidden"], outcome["forbidden"]
    assert outcome["megabytes"] < 400
    assert outcome["refused"] > outcome["accepted"]
