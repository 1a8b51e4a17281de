from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from belated.experiments.grid import Contender, Grid, LateTask, as_folder_name

PENDULUM = {"env": "Pendulum-v1", "interval": "20"}
SMALL: dict[str, Any] = {"tasks": [PENDULUM], "methods": ["hc-singleton", "sac"]}


def test_a_grid_is_every_combination_once() -> None:
    grid = Grid.of(
        tasks=[PENDULUM, "belated/Hopper-sum-n20-v0"],
        methods=["hc-singleton", {"method": "sac", "name": "fast", "set": {"learning_rate": 1e-3}}],
        variants={"": {}, "deep": {"hidden": [8, 8, 8]}},
        seeds=[3, 5],
        steps=100,
    )
    runs = grid.runs()
    assert len({run.place for run in runs}) == len(runs) == 2 * 2 * 2 * 2
    assert {run.settings.task for run in runs} == {"Pendulum-v1-n20", "Hopper-sum-n20"}
    assert [run.settings.seed for run in runs] == [3] * 8 + [5] * 8  # a seed of all comes first
    places = {run.name: run.settings for run in runs}
    settings = places["Hopper-sum-n20/fast-deep-s5"]
    assert settings.method == "sac"
    assert settings.overrides() == {"learning_rate": 1e-3, "hidden": [8, 8, 8]}
    assert grid.labels == ["hc-singleton", "hc-singleton-deep", "fast", "fast-deep"]


def test_a_variant_goes_before_a_method_and_a_method_before_the_grid() -> None:
    grid = Grid.of(
        **SMALL | {"methods": [{"method": "sac", "set": {"gamma": 0.5, "tau": 0.5}}]},
        set={"gamma": 0.1, "tau": 0.1, "batch_size": 7},
        variants={"v": {"gamma": 0.9}},
    )
    assert grid.runs()[0].settings.overrides() == {"gamma": 0.9, "tau": 0.5, "batch_size": 7}


def test_random_steps_are_for_methods_that_have_them() -> None:
    grid = Grid.of(**SMALL | {"methods": ["sac", "ppo", "sb3-sac"]}, learning_starts=50)
    random = {run.settings.label: run.settings.learning_starts for run in grid.runs()}
    assert random == {"sac": 50, "ppo": None, "sb3-sac": 50}


def test_steps_may_be_written_as_floats() -> None:
    methods = ["sac", {"method": "rrd", "steps": 2e4}]
    runs = Grid.of(**SMALL | {"methods": methods, "seeds": 1, "steps": 1e5}).runs()
    assert [repr(run.settings.steps) for run in runs] == ["100000", "20000"]


def test_a_contender_can_have_seeds_of_its_own() -> None:
    methods = ["sac", {"method": "rrd", "seeds": [7, 1]}, {"method": "ircr", "seeds": 1}]
    runs = Grid.of(**SMALL | {"methods": methods, "seeds": 2}).runs()
    found = [(run.settings.label, run.settings.seed) for run in runs]
    assert found == [("sac", 0), ("ircr", 0), ("sac", 1), ("rrd", 1), ("rrd", 7)]


def test_a_contender_can_be_kept_from_the_phase() -> None:
    methods = ["sac", {"method": "sac", "name": "blind", "phase": False}]
    told = {
        r.settings.label: r.settings.phase for r in Grid.of(**SMALL | {"methods": methods}).runs()
    }
    assert told == {"sac": True, "blind": False}


def test_a_file_says_the_same_as_python(tmp_path: Path) -> None:
    file = tmp_path / "grid.toml"
    file.write_text(
        """
        methods = ["hc-singleton", { method = "sac", set = { hidden = [8, 8] } }]
        seeds = 2
        steps = 300
        primary = ["sac", "hc-singleton"]

        [[tasks]]
        env = "Pendulum-v1"
        interval = "5:7"
        phase = false

        [set]
        precision = "bfloat16"
        """
    )
    grid = Grid(
        tasks=(LateTask("Pendulum-v1", "5:7", phase=False),),
        methods=(Contender("hc-singleton"), Contender("sac", set={"hidden": [8, 8]})),
        seeds=(0, 1),
        steps=300,
        primary=("sac", "hc-singleton"),
        set={"precision": "bfloat16"},
    )
    assert Grid.read(file) == grid
    assert grid.tasks[0].name == "Pendulum-v1-n5to7-nophase"
    assert grid.comparison == ("sac", "hc-singleton")
    assert dataclasses.replace(grid, primary=None).comparison == ("hc-singleton", "sac")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"tasks": []}, "needs tasks"),
        ({"tasks": "Pendulum-v1"}, "tasks must be a list"),
        ({"tasks": [{"enf": "Pendulum-v1"}]}, "has no enf; it can have env, interval"),
        ({"tasks": [PENDULUM, PENDULUM]}, "Two tasks are called Pendulum-v1-n20"),
        ({"methods": ["sac", "sac"]}, "Two methods are called sac"),
        ({"seeds": [1, 1]}, "Two seeds are called 1"),
        ({"seeds": 0}, "number of seeds must be at least 1"),
        ({"steps": 0}, "steps must be at least 1"),
        ({"metods": ["sac"], "methods": None}, "the grid has no metods"),
        ({"primary": ["sac", "rrd"]}, "between two of hc-singleton, sac; got sac, rrd"),
    ],
)
def test_a_bad_grid_is_refused(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        Grid.of(**SMALL | changes)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"tasks": ["Pendulum-v1"]}, "Give interval=20"),
        ({"tasks": ["no_such_module:Env-v0"]}, "Cannot make 'no_such_module:Env-v0'"),
        ({"methods": ["sax"]}, "There is no method 'sax'"),
        ({"methods": ["no_such_module:MINE"]}, "Cannot import the method"),
        ({"set": {"batchsize": 3}}, "no hyperparameter batchsize"),
        ({"steps": 800}, "hc-singleton would learn nothing"),
        ({"tasks": ["belated/PointReach-v0"], "methods": ["oracle"]}, "hidden per-step rewards"),
    ],
)
def test_mistakes_show_before_anything_runs(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        Grid.of(**SMALL | changes).check()


@given(st.text(min_size=1))
@example("0:=-:0")
def test_folder_names_are_safe(name: str) -> None:
    try:
        folder = as_folder_name(name)
    except ValueError:
        return
    assert Path(folder).name == folder
    assert not folder.startswith((".", "-"))
    assert as_folder_name(folder) == folder


def test_a_late_task_is_marked_and_named_after_it() -> None:
    marks: list[dict[str, Any]] = [
        {"period": 5},
        {"info_key": "lab_report", "max_length": 6},
        {"when": "late_envs:reported", "max_length": 6, "overlap": 2},
    ]
    grid = Grid.of(
        tasks=[{"env": "late_envs:Lab-v0", **how} for how in marks],
        methods=["hc-singleton"],
        seeds=1,
        steps=200,
        learning_starts=100,
    )
    grid.check()
    assert [task.name for task in grid.tasks] == [
        "Lab-v0-p5",
        "Lab-v0-lab_report-n6",
        "Lab-v0-late_envs-reported-n6-c2",
    ]
    specs = [run.settings.make_env().get_wrapper_attr("interval_spec") for run in grid.runs()]
    assert [(spec.max_length, spec.overlap) for spec in specs] == [(5, 0), (6, 0), (6, 2)]
