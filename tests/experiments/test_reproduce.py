"""Every figure can be made, from the runs to the picture, at toy size."""

from __future__ import annotations

import csv
import importlib.util
import json
from pathlib import Path

import pytest
from made_runs import make_run

from belated.analysis.runs import find_runs, read_run
from belated.analysis.summary import summarise
from belated.cli import main
from belated.experiments.reproduce import EXPERIMENTS, Scale, write_results
from belated.experiments.reproduce.clock import seconds_to, times_as_long
from belated.experiments.reproduce.comparison import shares_of_oracle
from belated.experiments.reproduce.overlap import relative_performances

TOY = ["--steps", "150", "--seeds", "2", "--learning-starts", "140", "--eval-every", "50",
       "--eval-episodes", "1", "--on", "here", "--set", "hidden=[8,8]"]  # fmt: skip

METHODS = {
    "design": "hc-singleton,q-rnn,sac",
    "regulariser": "hc-singleton",
    "variance": None,
    "comparison": "hc-pairwise-1,ircr,lirpg,rudder,oracle",
    "overlap": "hc-singleton,oracle",
    "intervals": "hc-singleton,sac",
    "non-sum": "hc-singleton",
    "td3": "hc-pairwise-1,td3-hc-pairwise-1",
    "point-reach": "hc-singleton,sac",
    "phase": "hc-singleton,sac",
    "lengths": "hc-singleton",
    "credit": "hc-singleton,rrd,ircr",
    "clock": "hc-singleton,sac",
}
"""Few of each experiment's methods: the others differ in nothing but their names."""

ON_POLICY = {"lirpg", "rudder"}
"""Their rollouts are longer than a toy run, as are intervals of 100 steps and more."""
MORE_FIGURES = {
    "point-reach": {"-heatmaps"},
    "phase": {"-scores"},
    "lengths": {"-Pendulum-sum"},
}


def test_all_experiments_are_tried() -> None:
    assert set(METHODS) == set(EXPERIMENTS)


@pytest.mark.parametrize("name", METHODS)
def test_an_experiment_gives_figure_table_and_curves(name: str, tmp_path: Path) -> None:
    out = tmp_path / name
    methods = METHODS[name]
    tasks = [] if name == "point-reach" else ["--tasks", "Pendulum-v1"]
    chosen = [] if methods is None else ["--methods", methods]
    assert main(["reproduce", name, "--out", str(out), *tasks, *chosen, *TOY]) == 0
    for more in {"", *MORE_FIGURES.get(name, ())}:
        assert (out / f"{name}{more}.png").stat().st_size > 5_000
        assert "</svg>" in (out / f"{name}{more}.svg").read_text()
    with (out / f"{name}.csv").open(newline="") as file:
        header, *rows = csv.reader(file)
    assert header[0] == "task"
    assert rows
    assert (out / f"{name}.md").read_text().count("\n") == len(rows) + 2
    assert (out / "curves.csv").read_text().count("\n") > 3
    assert "<svg" in (out / "report.html").read_text()
    for run in find_runs([out]):
        too_short = run.method in ON_POLICY or run.task.endswith(("n100", "n200"))
        assert too_short or len(run.curve("td_loss").values) > 0


@pytest.mark.parametrize("experiment", EXPERIMENTS.values(), ids=lambda each: each.name)
def test_experiments_as_they_are_in_the_paper_can_be_run(experiment: object) -> None:
    grid = experiment.grid(Scale())  # type: ignore[attr-defined]
    assert len({run.place for run in grid.runs()}) == len(grid.runs())
    if grid.primary is not None:
        assert set(grid.primary) <= set(grid.labels)
    for label in {run.settings.label: run.settings for run in grid.runs()}.values():
        if not label.method.startswith(("sb3", "sbx")):
            label.make_method()


def test_an_unknown_experiment_lists_all(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reproduce", "sesign"]) == 2
    assert "There are design, regulariser, variance" in capsys.readouterr().err
    assert main(["reproduce"]) == 0
    said = capsys.readouterr().out
    assert all(f"{name}:" in said for name in EXPERIMENTS)


def test_relative_performance_is_averaged_over_tasks(tmp_path: Path) -> None:
    for task, oracle, own in (("A-sum-n20-c5", 200, 100), ("B-sum-n20-c5", 10, 10)):
        make_run(tmp_path, [oracle], task=task, method="oracle")
        make_run(tmp_path, [own], task=task, method="sac")
    make_run(tmp_path, [5], task="A-sum-n20", method="oracle")
    make_run(tmp_path, [10], task="A-sum-n20", method="sac")
    summary = summarise(find_runs([tmp_path]))
    points = relative_performances(summary)
    assert points.keys() == {"sac"}
    assert {c: each.value for c, each in points["sac"].items()} == {0: 2.0, 5: 0.75}
    write_results(EXPERIMENTS["overlap"], summary, tmp_path)
    assert (tmp_path / "overlap-rap.png").is_file()


def test_profiles_are_of_shares_of_the_oracle(tmp_path: Path) -> None:
    for task, oracle, own in (("A", 200, 100), ("Reacher", -10, -30), ("B", -1, 7)):
        make_run(tmp_path, [oracle], task=task, method="oracle")
        make_run(tmp_path, [own], task=task, method="sac")
    summary = summarise(find_runs([tmp_path]))
    assert shares_of_oracle(summary) == {"oracle": [[1.0], [1.0]], "sac": [[0.5], [0.5]]}
    write_results(EXPERIMENTS["comparison"], summary, tmp_path)
    assert (tmp_path / "comparison-profiles.png").is_file()


def test_the_time_to_a_return_is_that_of_the_first_evaluation_there(tmp_path: Path) -> None:
    run = read_run(make_run(tmp_path, [1, 5, 3, 9], every=100))
    assert seconds_to(run, 4) == 2.0
    assert seconds_to(run, 9) == 4.0
    assert seconds_to(run, 10) == float("inf")


def test_how_many_times_as_long_the_peer_takes(tmp_path: Path) -> None:
    """A run that never gets there would have taken longer than it ran for."""
    for seed, returns in enumerate(([1, 2_500, 1], [2_500, 1, 1], [1, 2_500, 1])):
        make_run(tmp_path, returns, method="crossq-hc-singleton", seed=seed, every=100)
        make_run(tmp_path, [1] * 5 + [2_500, 1, 1], method="sb3-sac", seed=seed, every=100)
        make_run(tmp_path, [1], method="sac", seed=seed, every=100)
    summary = summarise(find_runs([tmp_path]))
    group = {each.method: each for each in summary.groups}
    ours, peer, never = (group[name] for name in ("crossq-hc-singleton", "sb3-sac", "sac"))
    assert times_as_long(peer, ours, 2_000) == "3.0 times as long"
    assert times_as_long(peer, ours, 2_500) == "3.0 times as long"
    assert times_as_long(never, ours, 2_000) == "more than 0.5 times as long"
    assert [times_as_long(*pair, 3_000) for pair in ((peer, ours), (ours, ours))] == ["", ""]
    header, rows = EXPERIMENTS["clock"].table(summary)
    assert {len(row) for row in rows} == {len(header)} == {8}
    without = summarise(list(ours.runs))
    assert len(EXPERIMENTS["clock"].table(without)[0]) == 6


@pytest.mark.skipif(
    importlib.util.find_spec("stable_baselines3") is None, reason="needs the extra bench"
)
@pytest.mark.parametrize("peer", ["sb3-sac", "sbx-sac"])
def test_another_library_runs_on_the_same_task(peer: str, tmp_path: Path) -> None:
    toy = [word for word in TOY if word not in ("--set", "hidden=[8,8]")]
    command = ["reproduce", "clock", "--out", str(tmp_path), "--tasks", "Pendulum-v1", *toy]
    assert main([*command, "--methods", f"sac,{peer}"]) == 0
    (folder,) = tmp_path.glob(f"runs/*/{peer}-s0")
    run = read_run(folder)
    assert json.loads((folder / "config.json").read_text())["phase"] is False
    assert run.curve().steps.tolist() == [50, 100, 150]
    assert run.speed > 0
