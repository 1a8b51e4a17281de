from __future__ import annotations

import importlib.metadata
import json
from pathlib import Path

import pytest

from belated.cli import main
from belated.cli.doctor import bfloat16, disk, outcome, rendering, start, threads, versions


def test_this_installation_is_in_order(capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["doctor", "--json"])
    findings = {row["what"]: row for row in json.loads(capsys.readouterr().out)}
    assert code == 0, findings
    assert {*findings} == {
        "versions", "extras", "cores", "bfloat16", "disk", "rendering", "learning"
    }  # fmt: skip
    assert f"jaxlib {importlib.metadata.version('jaxlib')}" in findings["versions"]["said"]
    assert "was saved and loaded" in findings["learning"]["said"]
    assert findings["rendering"]["advice"]


def test_a_crash_is_survived_and_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As on a CPU that lacks an instruction which JAX was built with; MuJoCo as without drivers."""
    (tmp_path / "jax.py").write_text("import os; os.abort()")
    (tmp_path / "mujoco.py").write_text("raise ImportError('no library libEGL')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert main(["doctor"]) == 1
    said = capsys.readouterr().out
    assert "✗ learning: crashed with signal 6." in said
    assert "Install belated anew" in said
    assert "! rendering: egl fails, osmesa fails (egl: ImportError: no library libEGL" in said
    assert "✓ versions" in said


def test_versions_that_do_not_fit_are_named_with_what_to_install() -> None:
    found = versions(["numpy>=1", "rich>=999", "no-such-package<2", 'onnx>=999; extra == "onnx"'])
    assert found.state == "broken"
    assert "no-such-package missing" in found.said
    assert found.advice == 'Install what fits: pip install "rich>=999" "no-such-package<2"'
    assert versions(["numpy>=1"]).state == "fine"


def test_threads_are_those_that_jax_takes() -> None:
    assert "JAX will use 2 threads" in threads(2, None).said
    assert "taskset" in threads(2, None).advice
    assert not threads(1, None).advice
    assert threads(4, "1").state == "fine"
    assert threads(2, "8").state == "note"
    code = (
        "import jax, os; jax.jit(lambda x: x @ x)(jax.numpy.ones((9, 9))); print(sum('XLA' in "
        "open(f'/proc/self/task/{t}/comm').read() for t in os.listdir('/proc/self/task')))"
    )
    if Path("/proc/self/task").exists():
        assert outcome(start(code, NPROC="3")) == (True, "3")


def test_bfloat16_says_what_it_means() -> None:
    assert "--set precision=bfloat16" in bfloat16({"sse", "amx_bf16"}).advice
    assert "(amx_bf16)" in bfloat16({"sse", "amx_bf16"}).said
    assert "Leave precision=float32" in bfloat16({"sse"}).advice
    assert "does not say" in bfloat16(set()).said


def test_a_full_disk_stops_learning_and_a_missing_driver_does_not() -> None:
    assert [disk(free).state for free in (100.0, 1.0, 0.1)] == ["fine", "note", "broken"]
    assert "--out" in disk(0.1).advice
    works = rendering({"egl": (False, "no driver"), "osmesa": (True, "")})
    assert (works.state, works.advice.split()[-1]) == ("fine", "MUJOCO_GL=osmesa")
    assert rendering({"egl": (False, "no driver")}).state == "note"


def test_a_process_that_fails_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    assert outcome(start("raise ValueError('no')")) == (False, "ValueError: no")
    monkeypatch.setattr("belated.cli.doctor.PATIENCE", 0.1)
    works, said = outcome(start("import time; time.sleep(60)"))
    assert not works
    assert said.startswith("not done after")
