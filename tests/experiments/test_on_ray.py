"""The same grid on a cluster gives the same numbers, also when a node dies."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from sweeps import checkpoints, curves, start, wait_until

from belated.experiments.execute import Progress
from belated.experiments.grid import Grid
from belated.experiments.on_ray import attempt_elsewhere
from belated.experiments.worker import Job, Worker, wait_for_reports

pytest.importorskip("ray", reason="needs the extra ray")

CLUSTER = """
import sys
from ray.cluster_utils import Cluster
cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
nodes = [cluster.add_node(num_cpus=1) for _ in range(2)]
print(cluster.address, flush=True)
sys.stdin.readline()
cluster.remove_node(nodes[0], allow_graceful=False)
print("killed", flush=True)
sys.stdin.readline()
cluster.shutdown()
"""
"""A head and two nodes, each with its processes; a line of input kills one of the nodes."""


def test_a_cluster_gives_the_same_numbers_although_a_node_dies(
    undisturbed: tuple[Path, Path], tmp_path: Path
) -> None:
    grid, reference = undisturbed
    out = tmp_path / "out"
    with subprocess.Popen(
        [sys.executable, "-c", CLUSTER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as cluster:
        assert cluster.stdin is not None
        assert cluster.stdout is not None
        address = cluster.stdout.readline().strip()
        runner = start(grid, out, "--on", "ray", "--address", address)
        wait_until(lambda: len(checkpoints(out)) == 2)
        cluster.stdin.write("\n")
        cluster.stdin.flush()
        assert cluster.stdout.readline() == "killed\n"
        output, _ = runner.communicate(timeout=300)
        cluster.communicate("\n", timeout=60)
    assert runner.returncode == 0, output
    assert output.count("✓") == 4
    assert curves(out) == curves(reference)


def test_where_no_folder_is_shared_the_files_are_sent_back(
    undisturbed: tuple[Path, Path], tmp_path: Path
) -> None:
    grid, reference = undisturbed
    run = Grid.read(grid).runs()[0]
    job = Job(run, tmp_path / "elsewhere" / run.place)
    told: list[Progress | None] = []
    error, files = attempt_elsewhere(job, told.append)
    assert error is None
    assert not job.folder.exists()
    made = tmp_path / "runs" / run.place
    for name, content in files.items():
        (made / name).parent.mkdir(parents=True, exist_ok=True)
        (made / name).write_bytes(content)
    assert curves(tmp_path)[run.place.name] == curves(reference)[run.place.name]
    assert list(made.glob("checkpoint/state.*.safetensors"))
    assert told[0] is None
    assert told[-1] is not None
    assert told[-1].steps == 500


def test_a_worker_of_a_deaf_owner_saves_and_stops(
    undisturbed: tuple[Path, Path], tmp_path: Path
) -> None:
    run = Grid.read(undisturbed[0]).runs()[0]
    run = replace(run, settings=replace(run.settings, steps=100_000, checkpoint_every=100_000))
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # as in Ray's workers
    try:
        worker = Worker(Job(run, tmp_path / "run"), core=None)
        told: list[Progress] = []
        while len(told) < 2:
            wait_for_reports([worker])
            told += worker.read()
        worker.close()
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    assert worker.poll() == 130
    steps = json.loads((tmp_path / "run" / "checkpoint" / "manifest.json").read_text())["steps"]
    assert steps >= told[-1].steps


def test_no_cluster_at_an_address_is_said(undisturbed: tuple[Path, Path], tmp_path: Path) -> None:
    runner = start(undisturbed[0], tmp_path, "--on", "ray", "--address", "127.0.0.1:1")
    output, _ = runner.communicate(timeout=120)
    assert "There is no Ray cluster at 127.0.0.1:1" in output
    assert runner.returncode == 2
