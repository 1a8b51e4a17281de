"""Saved agents that were tampered with are refused, and nothing of them is run."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from small_agents import delayed, small_agent

from belated import Agent, CheckpointError

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
    assert outcome["megabytes"] < 400, f"the most at seed {outcome['hungriest']}"
    assert outcome["refused"] > outcome["accepted"]


def forged(folder: Path, name: str, data: bytes) -> None:
    """Put content into a file of a saved agent, with a checksum that fits."""
    manifest = json.loads((folder / "manifest.json").read_text())
    (full,) = [each for each in manifest["files"] if each.startswith(name)]
    (folder / full).write_bytes(data)
    digest = hashlib.sha256(data).hexdigest()
    manifest["files"][full] = {"bytes": len(data), "sha256": digest}
    (folder / "manifest.json").write_text(json.dumps(manifest))


def tensors(header: bytes, size: int | None = None) -> bytes:
    """A safetensors file with this header, and any size in front of it."""
    return (len(header) if size is None else size).to_bytes(8, "little") + header


HUGE = json.dumps({"log_alpha": {"dtype": "F32", "shape": [2**40], "data_offsets": [0, 2**42]}})
PICKLE = b"cos\nsystem\n(S'touch was-here'\ntR."


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("state", PICKLE),
        ("state", tensors(b"{}", size=2**62)),
        ("state", tensors(b"{}", size=2**40)),
        ("state", tensors(HUGE.encode())),
        ("state", tensors(b"[" * 50_000)),
        ("loop", tensors(HUGE.encode())),
        ("loop", PICKLE),
        ("journal", PICKLE),
        ("journal", b"[" * 50_000),
        ("journal", b'{"rows": 1e999}'),
    ],
)
def test_hand_made_files_are_refused(
    name: str, data: bytes, tmp_path: Path, saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(saved, tmp_path / "agent")
    monkeypatch.chdir(tmp_path)
    forged(tmp_path / "agent", name, data)
    with pytest.raises(CheckpointError):
        Agent.load(tmp_path / "agent", delayed())
    assert not (tmp_path / "was-here").exists()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"state.', '"../state.'),
        ('"state.', '"/etc/state.'),
        ('"num_envs": 1', '"num_envs": 1000000000'),
        ('"hidden": [\n        8,', '"hidden": [\n        1000000000,'),
        ('"format": 4', '"format": 5'),
        ('"replay_size": 500', '"replay_size": 1000000000000000'),
    ],
)
def test_hand_made_manifests_are_refused(old: str, new: str, tmp_path: Path, saved: Path) -> None:
    shutil.copytree(saved, tmp_path / "agent")
    manifest = tmp_path / "agent" / "manifest.json"
    text = re.sub(r"\[\s+8,", "[\n        8,", manifest.read_text())
    assert old in text
    manifest.write_text(text.replace(old, new))
    with pytest.raises(CheckpointError):
        Agent.load(tmp_path / "agent", delayed())


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("saved") / "agent"
    small_agent("sac").learn(40).save(folder, replay=True)
    return folder
