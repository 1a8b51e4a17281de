"""A disk that is full, or cannot be written to: an error, and the last checkpoint as it was."""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from small_agents import assert_same_weights, delayed, small_agent

from belated import Agent


@contextlib.contextmanager
def files_of_at_most(size: int) -> Iterator[None]:
    """Have the system refuse to write larger files, as it does when a quota is used up."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)


@pytest.mark.parametrize("size", [0, 300, 3_000, 10_000])
def test_the_last_checkpoint_stays_when_there_is_no_room_for_another(
    size: int, tmp_path: Path
) -> None:
    agent = small_agent().learn(40)
    agent.save(tmp_path / "agent", replay=True)
    agent.learn(20)
    with files_of_at_most(size), pytest.raises(OSError, match="File too large"):
        agent.save(tmp_path / "agent", replay=True)
    resumed = Agent.load(tmp_path / "agent", delayed())
    assert resumed.steps == 40
    agent.save(tmp_path / "agent", replay=True)  # there is room again
    assert Agent.load(tmp_path / "agent", delayed()).steps == 60
    assert_same_weights(resumed.learn(20), agent)


def test_a_run_that_finds_the_disk_full_says_so(tmp_path: Path) -> None:
    settings = ["--env", "Pendulum-v1", "--interval", "5", "--method", "sac", "--steps", "60"]
    settings += ["--learning-starts", "30", "--checkpoint-every", "20", "--no-progress"]
    settings += ["--set", "hidden=[4]", "batch_size=8", "--eval-episodes", "1"]
    command = [sys.executable, "-m", "belated", "train", *settings, "--out", str(tmp_path / "run")]
    quiet = os.environ | {"JAX_ENABLE_COMPILATION_CACHE": "0"}  # it would write half a file, too
    with files_of_at_most(3_000):
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=quiet)
    assert done.returncode == 2
    assert "belated: [Errno 27] File too large" in done.stderr


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(NotADirectoryError):
        small_agent().save(tmp_path / "file" / "agent")
