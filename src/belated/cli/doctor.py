"""``belated doctor``: is this installation in order?

What may crash (JAX on a CPU that is too old, a broken driver) runs in processes of its own.
"""

from __future__ import annotations

import importlib.metadata
import json as json_module
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, NamedTuple

from packaging.requirements import Requirement
from rich.console import Console
from rich.text import Text

from belated.training.provenance import cores, cpu_model

LEAST_SPACE, LITTLE_SPACE = 0.2, 2.0
"""In GB: a checkpoint may not fit; a few long runs may not fit."""
PATIENCE = 120.0
"""How many seconds a process has. It needs a few, but the machine may be busy."""


class Finding(NamedTuple):
    """One thing that was looked at."""

    what: str
    state: Literal["fine", "note", "broken"]
    said: str
    advice: str = ""


def doctor(json: bool = False) -> int:
    """Is this installation in order?

    Looks at versions, cores and threads, bfloat16, rendering and free disk, and has a tiny agent
    learn, be saved and be loaded. ✓: fine. !: something is missing that learning does without.
    ✗: broken; the exit code is then 1. Takes a few seconds.

    Examples:
        belated doctor
        belated doctor --json

    Args:
        json: Print JSON instead.
    """
    console = Console(highlight=False, soft_wrap=True)
    findings = []
    for finding in examine():
        findings.append(finding)
        if not json:
            mark, style = MARKS[finding.state]
            console.print(Text.assemble((mark, style), f" {finding.what}: {finding.said}"))
            if finding.advice:
                console.print(Text(f"    {finding.advice}"))
    if json:
        print(json_module.dumps([finding._asdict() for finding in findings], indent=2))
    return 1 if any(finding.state == "broken" for finding in findings) else 0


MARKS = {"fine": ("✓", "green"), "note": ("!", "yellow"), "broken": ("✗", "red")}


def examine() -> Iterator[Finding]:
    """Look at everything, the quick things first."""
    learning = start("from belated.cli.doctor import self_test; self_test()")
    pictures = {name: start(PICTURE, MUJOCO_GL=name) for name in ("egl", "osmesa")}
    yield versions([*(importlib.metadata.requires("belated") or []), "jaxlib"])
    yield extras()
    yield threads(len(cores()), os.environ.get("NPROC"))
    yield bfloat16(cpu_flags())
    yield disk(shutil.disk_usage(Path.cwd()).free / 1e9)
    yield rendering({name: outcome(process) for name, process in pictures.items()})
    yield learned(*outcome(learning))


def versions(requirements: list[str]) -> Finding:
    """Whether the packages that belated needs are there, in versions that it works with."""
    said, missing = [f"Python {platform.python_version()}"], []
    for line in requirements:
        needed = Requirement(line)
        if needed.marker is not None and not needed.marker.evaluate({"extra": ""}):
            continue
        try:
            version = importlib.metadata.version(needed.name)
        except importlib.metadata.PackageNotFoundError:
            version = "missing"
        said.append(f"{needed.name} {version}")
        if version == "missing" or not needed.specifier.contains(version, prereleases=True):
            missing.append(f'"{needed.name}{needed.specifier}"')
    advice = f"Install what fits: pip install {' '.join(missing)}" if missing else ""
    own = f"belated {importlib.metadata.version('belated')}"
    return Finding(
        "versions", "broken" if missing else "fine", ", ".join([own, *said]) + ".", advice
    )


def extras() -> Finding:
    """Which of the packages are there that only some things need."""
    uses = {"onnx": "belated export policy.onnx", "ray": "--on ray", "wandb": "--wandb"}
    there = {name: _is_installed(name) for name in uses}
    said = ", ".join(f"{name} {'yes' if found else 'no'}" for name, found in there.items())
    lacking = [f'{uses[name]}: pip install "belated[{name}]"' for name in uses if not there[name]]
    return Finding("extras", "fine", f"{said}.", "; ".join(lacking))


def _is_installed(package: str) -> bool:
    try:
        importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


def threads(cores: int, wanted: str | None) -> Finding:
    """How many threads JAX will use: as many as there are cores, unless NPROC says otherwise."""
    number = int(wanted) if wanted is not None and wanted.isdigit() else cores
    said = f"{cores} of {os.cpu_count()} cores may be used, JAX will use {number} threads."
    if number > cores:
        advice = f"They get in each other's way: unset NPROC, or set it to {cores} at most."
        return Finding("cores", "note", said, advice)
    if number == 1:
        return Finding("cores", "fine", said)
    advice = (
        "For one small network one thread is faster, and leaves cores to other runs: taskset -c 0 "
        "belated train ... (belated compare and sweep do that by themselves)."
    )
    return Finding("cores", "fine", said, advice)


def cpu_flags() -> set[str]:
    """What the system says that the CPU can do; nothing where it does not say."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return set()
    known = [line for line in lines if line.startswith(("flags", "Features"))]
    return set(known[0].partition(":")[2].split()) if known else set()


def bfloat16(flags: set[str]) -> Finding:
    """Whether the CPU has instructions for bfloat16, and what that means."""
    own = sorted(flags & {"amx_bf16", "avx512_bf16", "bf16"})
    if own:
        return Finding(
            "bfloat16",
            "fine",
            f"{cpu_model()} has instructions for it ({', '.join(own)}).",
            "--set precision=bfloat16 makes updates faster, with slightly different numbers.",
        )
    said = "knows no instructions for it" if flags else "does not say whether it has instructions"
    advice = "Leave precision=float32, the default: bfloat16 was not tried without them."
    return Finding("bfloat16", "fine", f"{cpu_model()} {said}.", advice)


def disk(free: float) -> Finding:
    """Whether there is room for run folders here, in GB."""
    said = f"{free:.1f} GB free in {Path.cwd()}."
    if free >= LITTLE_SPACE:
        return Finding("disk", "fine", said)
    state: Literal["note", "broken"] = "broken" if free < LEAST_SPACE else "note"
    advice = "Make room, or choose another place with --out: a checkpoint holds the whole replay."
    return Finding("disk", state, said, advice)


def start(code: str, **variables: str) -> subprocess.Popen[str]:
    """Start Python code in a process of its own."""
    return subprocess.Popen(
        [sys.executable, "-P", "-c", code],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | variables,
    )


def outcome(process: subprocess.Popen[str]) -> tuple[bool, str]:
    """Whether a process did what it should, and the last line that it said."""
    try:
        out, errors = process.communicate(timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        return False, f"not done after {PATIENCE:.0f} seconds"
    if process.returncode < 0:
        return False, f"crashed with signal {-process.returncode}"
    lines = (out if process.returncode == 0 else errors).strip().splitlines()
    return process.returncode == 0, lines[-1] if lines else ""


PICTURE = """
import mujoco
scene = "<mujoco><worldbody><light pos='0 0 3'/><geom size='.3'/></worldbody></mujoco>"
model = mujoco.MjModel.from_xml_string(scene)
data = mujoco.MjData(model)
mujoco.mj_forward(model, data)
with mujoco.Renderer(model, 32, 32) as renderer:
    renderer.update_scene(data)
    picture = renderer.render()
assert picture.max() > picture.min(), "the picture is empty"
"""


def rendering(tried: dict[str, tuple[bool, str]]) -> Finding:
    """Whether MuJoCo can draw without a screen; learning does without."""
    said = ", ".join(
        f"{name} {'works' if works else 'fails'}" for name, (works, _) in tried.items()
    )
    for name, (works, _) in tried.items():
        if works:
            advice = f"For pictures on a machine without a screen: export MUJOCO_GL={name}"
            return Finding("rendering", "fine", f"{said}.", advice)
    reasons = "; ".join(f"{name}: {reason}" for name, (_, reason) in tried.items())
    advice = "For pictures: apt install libosmesa6 (or libegl1 with a driver). Learning needs none."
    return Finding("rendering", "note", f"{said} ({reasons}).", advice)


def self_test() -> None:
    """A tiny agent learns, is saved and loaded, and then does the same as before."""
    import gymnasium as gym
    import jax
    import numpy as np

    import belated

    began = time.perf_counter()
    env = belated.delay(gym.make("Pendulum-v1"), interval=5)
    small: dict[str, Any] = {
        "hidden": (8, 8),
        "units": (8, 8),
        "batch_size": 8,
        "learning_starts": 20,
    }
    agent = belated.Agent("hc-singleton", env, seed=0, **small)
    env.observation_space.seed(0)
    seen = np.stack([env.observation_space.sample() for _ in range(4)])
    before = agent.predict(seen)[0]
    agent.learn(60)
    learned = agent.predict(seen)[0]
    if not np.isfinite(learned).all() or np.array_equal(before, learned):
        raise RuntimeError("the agent has learned nothing")
    with tempfile.TemporaryDirectory() as folder:
        agent.save(folder)
        if not np.array_equal(belated.Agent.load(folder).predict(seen)[0], learned):
            raise RuntimeError("the loaded agent predicts something else than the saved one")
    seconds = time.perf_counter() - began
    print(
        f"a tiny agent has learned on {jax.devices()[0]}, was saved and loaded, in {seconds:.0f} s"
    )


def learned(works: bool, said: str) -> Finding:
    """What came of the self-test."""
    if works:
        return Finding("learning", "fine", f"{said}.")
    advice = (
        "Install belated anew in a fresh environment: python -m venv .venv, then .venv/bin/pip "
        "install belated. If that does not help, run the test by itself to see all of the error: "
        f'{sys.executable} -c "from belated.cli.doctor import self_test; self_test()"'
    )
    return Finding("learning", "broken", f"{said.rstrip('.')}.", advice)
