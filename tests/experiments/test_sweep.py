"""A sweep survives what can happen to it. Real processes are started and really killed."""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import signal
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from sweeps import checkpoints, curves, start, wait_until, workers_of

from belated import Agent
from belated.cli import main
from belated.experiments.execute import Status, is_finished, read_status, write_status
from belated.experiments.grid import Grid
from belated.experiments.sweep import Outcome, sweep
from belated.training import checkpoint
from belated.training import run as run_module
from belated.training.lock import locked

QUICK: dict[str, Any] = {
    "learning_starts": 60,
    "checkpoint_every": 100,
    "eval_every": 100,
    "eval_episodes": 1,
    "log_every": 100,
    "set": {"hidden": [8, 8], "batch_size": 8, "replay_size": 2000},
}


def test_killed_workers_and_a_killed_runner_change_no_number(
    undisturbed: tuple[Path, Path], tmp_path: Path
) -> None:
    grid, reference = undisturbed
    out = tmp_path / "out"
    runner = start(grid, out, "--workers", "2")
    wait_until(lambda: len(checkpoints(out)) > 0)
    second = start(grid, out)  # two sweeps in one folder
    os.kill(workers_of(runner.pid)[0], signal.SIGKILL)
    assert "Another sweep is at work" in second.communicate(timeout=60)[0]
    assert second.returncode == 2
    wait_until(lambda: sum(is_finished(p.parent.parent, 500) for p in checkpoints(out)) >= 2)
    runner.kill()
    output = runner.communicate(timeout=60)[0]
    assert "killed by signal 9 (once more, from its last checkpoint)" in output
    before = {p.parent.parent: p.stat().st_mtime_ns for p in checkpoints(out)}
    done = {folder for folder in before if is_finished(folder, 500)}

    again = start(grid, out, "--workers", "2")
    assert "Report:" in again.communicate(timeout=300)[0]
    assert again.returncode == 0
    assert curves(out) == curves(reference)
    assert len(curves(out)) == 4
    for folder in done:  # a finished run is never run again
        assert (folder / "checkpoint" / "manifest.json").stat().st_mtime_ns == before[folder]
    summaries = [json.loads((f / "summary.json").read_text()) for f in (out, reference)]
    for summary in summaries:
        for group in summary["groups"]:
            del group["steps_per_second"]
    assert summaries[0] == summaries[1]
    attempts = {read_status(folder).attempts for folder in before}  # type: ignore[union-attr]
    assert min(attempts) == 1 < max(attempts)  # (one may have been killed twice)

    all_done = start(grid, out)
    assert "All 4 runs" in all_done.communicate(timeout=60)[0]
    assert curves(out) == curves(reference)


def test_ctrl_c_saves_and_the_same_command_goes_on(
    undisturbed: tuple[Path, Path], tmp_path: Path
) -> None:
    grid, reference = undisturbed
    out = tmp_path / "out"
    runner = start(grid, out, "--workers", "1")
    wait_until(lambda: len(checkpoints(out)) > 0)
    runner.send_signal(signal.SIGINT)
    assert "Stopped; everything is saved" in runner.communicate(timeout=60)[0]
    assert runner.returncode == 130
    rows = [len(found) for found in curves(out).values()]
    assert rows == [rows[0]]
    assert not is_finished(checkpoints(out)[0].parent.parent, 500)
    runner = start(grid, out, "--workers", "2")
    assert "Report:" in runner.communicate(timeout=300)[0]
    assert curves(out) == curves(reference)


def quick_sweep(out: Path, console: Console | None = None, **changes: Any) -> Outcome:
    values = QUICK | {"tasks": [{"env": "Pendulum-v1", "interval": "5"}], "methods": ["sac"]}
    how = {name: changes.pop(name) for name in ("mixed", "keep_replay") if name in changes}
    grid = Grid.of(**values | {"seeds": 2, "steps": 150} | changes)
    quiet = console or Console(file=io.StringIO())
    return sweep(grid, out, on="here", console=quiet, **how)


def test_what_a_sweep_leaves_behind(tmp_path: Path) -> None:
    outcome = quick_sweep(tmp_path, methods=["sac", "hc-singleton"])
    assert outcome.failures == {}
    for name in ("summary.json", "summary.md", "curves.png", "curves.csv", "report.html"):
        assert (tmp_path / name).stat().st_size > 100, name
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert {group["method"] for group in summary["groups"]} == {"sac", "hc-singleton"}
    assert all(len(group["returns"]) == 2 for group in summary["groups"])
    assert summary["primary"] == ["sac", "hc-singleton"]
    assert "too few seeds" in summary["comparisons"][0]["verdict"]
    folder = tmp_path / "runs" / "Pendulum-v1-n5" / "sac-s1"
    assert list(folder.glob("checkpoint/state.*.safetensors"))
    assert not [*folder.glob("checkpoint/replay.*"), *folder.glob("checkpoint/loop.*")]
    assert (tmp_path / "curves.csv").read_text().startswith("exp_name,env_name,seed,metric,")


def test_a_run_that_crashes_goes_on_once_and_is_then_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    doomed = [0, 2, 2]  # seeds, once for each crash
    learn = run_module.RunSettings.learn

    taken: Counter[int] = Counter()

    def explode(agent: Any) -> None:
        taken[agent.seed] += 1
        if agent.steps >= 120 and agent.seed in doomed:
            doomed.remove(agent.seed)
            raise RuntimeError("the plant exploded")

    def fragile(self: Any, agent: Any, folder: Path, **how: Any) -> None:
        learn(self, agent, folder, callback=[*how["callback"], explode])

    monkeypatch.setattr(run_module.RunSettings, "learn", fragile)
    text = io.StringIO()
    outcome = quick_sweep(tmp_path, Console(file=text, width=200), seeds=3)
    assert outcome.failures == {"Pendulum-v1-n5/sac-s2": "RuntimeError: the plant exploded"}
    assert text.getvalue().count("once more, from its last checkpoint") == 2
    assert taken == {0: 150, 1: 150, 2: 121}  # no step was taken twice
    assert outcome.summary is not None
    assert len(outcome.summary.groups[0].scores) == 2
    left_out = "Not finished, and left out: Pendulum-v1-n5/sac-s2."
    assert left_out in (tmp_path / "summary.md").read_text()
    assert left_out in (tmp_path / "report.html").read_text()
    assert quick_sweep(tmp_path, seeds=3).failures == {}  # started again, it is tried again


def test_what_changed_is_said_or_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def notes(**changes: Any) -> str:
        text = io.StringIO()
        quick_sweep(tmp_path, Console(file=text, width=200), **changes)
        return text.getvalue()

    assert "Since" not in notes()
    assert "All 2 runs" in notes()
    assert "the grid's seeds changed" in notes(seeds=3)
    with pytest.raises(ValueError, match=r"holds another run than the grid asks for.*batch_size=4"):
        notes(set={"hidden": [8, 8], "batch_size": 4})

    other = {"sources": {"belated": {"commit": "f" * 40, "dirty": False}}, "versions": {}}
    for module in ("belated.experiments.sweep", "belated.training.settings"):
        monkeypatch.setattr(f"{module}.provenance", lambda modules: other | {"cpu": "abacus"})
    with pytest.raises(ValueError, match=r"was made by other code.*--mixed"):
        notes(seeds=4)
    assert not (tmp_path / "runs" / "Pendulum-v1-n5" / "sac-s3").exists()
    said = notes(seeds=4, mixed=True)
    assert "the code changed" in said
    assert "the CPU changed" in said
    summary = (tmp_path / "summary.md").read_text()
    assert "Mixed: The runs differ in the commit of belated" in summary
    assert "different CPUs" in summary


def test_a_change_of_an_environment_of_ones_own_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = (
        "import gymnasium as gym\n"
        "from gymnasium.envs.classic_control.pendulum import PendulumEnv\n"
        "gym.register('Mine-v0', entry_point='mine_env:PendulumEnv', max_episode_steps=40)\n"
    )
    (tmp_path / "mine_env.py").write_text(source)
    monkeypatch.syspath_prepend(tmp_path)
    mine = [{"env": "mine_env:Mine-v0", "interval": "5"}, {"env": "Pendulum-v1", "interval": "5"}]
    quick_sweep(tmp_path / "out", tasks=mine, seeds=1)
    quick_sweep(tmp_path / "out", tasks=mine, seeds=1)  # modules of one run are no news to others
    (tmp_path / "mine_env.py").write_text(source + "GRAVITY = 20\n")
    with pytest.raises(ValueError, match=r"other code: mine_env was .*digest"):
        quick_sweep(tmp_path / "out", tasks=mine, seeds=2)


def forge_journal(saved: checkpoint.Reader, journal: Any) -> None:
    """Put another journal into a checkpoint."""
    (name,) = (name for name in saved.manifest["files"] if name.startswith("journal"))
    data = json.dumps(journal).encode()
    (saved.folder / name).write_bytes(data)
    saved.manifest["files"][name] = {
        "bytes": len(data),
        "sha256": hashlib.sha256(data).hexdigest(),
    }
    (saved.folder / "manifest.json").write_text(json.dumps(saved.manifest))


@pytest.mark.parametrize("loses", ["the replay", "the last evaluation"])
def test_a_kill_at_the_very_end_loses_nothing(loses: str, tmp_path: Path) -> None:
    quick_sweep(tmp_path / "whole", seeds=1, eval_every=40, keep_replay=True)
    quick_sweep(tmp_path / "cut", seeds=1, eval_every=40, keep_replay=True)
    (folder,) = tmp_path.glob("cut/runs/*/sac-s0")
    if loses == "the replay":  # killed while it was being deleted
        next(folder.glob("checkpoint/replay.*")).unlink()
    else:  # killed after the checkpoint at the last step, before the evaluation there
        write_status(folder, Status("running"))
        agent = Agent.load(folder)
        saved = checkpoint.Reader(folder / "checkpoint")
        assert agent.journal.rows.pop()["step"] == 150
        forge_journal(saved, agent.journal.state())
        rows = (folder / "progress.csv").read_text().splitlines(keepends=True)
        (folder / "progress.csv").write_text("".join(rows[:-1]))
    quick_sweep(tmp_path / "cut", seeds=1, eval_every=40, keep_replay=True)
    assert curves(tmp_path / "cut") == curves(tmp_path / "whole")


def test_only_one_process_works_in_a_folder(tmp_path: Path) -> None:
    with locked(tmp_path / "x"), pytest.raises(BlockingIOError), locked(tmp_path / "x", wait=False):
        raise AssertionError
    with locked(tmp_path / "x", wait=False):
        pass


def test_a_copied_run_without_a_status_is_judged_by_its_curve(tmp_path: Path) -> None:
    quick_sweep(tmp_path, seeds=1)
    (folder,) = tmp_path.glob("runs/*/sac-s0")
    for name in ("status.json", "checkpoint/manifest.json"):
        (folder / name).unlink()
    assert is_finished(folder, 150)
    assert not is_finished(folder, 151)


def test_compare_says_which_is_better(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "my_plant.py").write_text(
        "import gymnasium as gym\n"
        "from gymnasium.envs.classic_control.pendulum import PendulumEnv\n"
        "gym.register('MyPlant-v0', entry_point='my_plant:PendulumEnv', max_episode_steps=40)\n"
    )
    monkeypatch.chdir(tmp_path)
    command = ["compare", "--env", "my_plant:MyPlant-v0", "--interval", "5", "--methods", "sac,rrd",
               "--seeds", "2", "--steps", "150", "--out", "out", "--on", "here",
               "--set", "hidden=[8,8]", "batch_size=8"]  # fmt: skip
    assert main(command) == 0
    said = re.sub(r"\s+", " ", capsys.readouterr().out)
    assert "too few seeds for a verdict" in said
    assert "report.html" in said
    config = json.loads(Path("out/runs/MyPlant-v0-n5/rrd-s1/config.json").read_text())
    assert config["learning_starts"] == 15
    assert main(["compare", "--env", "my_plant:MyPlant-v0", "--interval", "5", "--methods", "zac",
                 "--out", "out2"]) == 2  # fmt: skip
    assert "There is no method 'zac'" in capsys.readouterr().err
    assert not Path("out2").exists()
