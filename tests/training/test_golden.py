"""What this version has saved must be read by every later one."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from small_agents import delayed

from belated import Agent, CheckpointError
from belated.training.checkpoint import FORMAT

GOLDEN = Path(__file__).with_name("golden")


def test_there_is_one_of_the_present_format() -> None:
    assert (GOLDEN / f"format-{FORMAT}" / "manifest.json").is_file()


@pytest.mark.parametrize("folder", sorted(GOLDEN.iterdir()), ids=lambda path: path.name)
def test_a_saved_agent_of_every_format_is_read_and_goes_on(folder: Path) -> None:
    agent = Agent.load(folder, delayed())
    assert agent.steps == 60
    observations = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)
    expected = [[-0.6576483], [-0.4804453], [-0.3376617]]
    np.testing.assert_allclose(agent.predict(observations)[0], expected, atol=1e-5)
    assert agent.learn(20).steps == 80


@pytest.mark.parametrize("version", [FORMAT + 1, 3, "4", None])
def test_another_format_is_told(version: object, tmp_path: Path) -> None:
    shutil.copytree(GOLDEN / f"format-{FORMAT}", tmp_path / "agent")
    manifest = tmp_path / "agent" / "manifest.json"
    document = json.loads(manifest.read_text()) | {"format": version}
    manifest.write_text(json.dumps(document))
    with pytest.raises(CheckpointError, match=f"has the format {version!r}; this version reads"):
        Agent.load(tmp_path / "agent")
