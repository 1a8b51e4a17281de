from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from made_runs import make_run

from belated.analysis.runs import compare_origins, find_runs, read_run


def test_runs_are_found_wherever_they_are(tmp_path: Path) -> None:
    for seed in (1, 0):
        make_run(tmp_path / "deep" / "er", [1, 2], seed=seed)
    make_run(tmp_path, [3], method="rrd")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "progress.csv").write_text("step\n1\n")  # no run: no settings
    runs = find_runs([tmp_path, tmp_path / "deep"])
    assert [run.name for run in runs] == ["Toy/rrd-s0", "Toy/sac-s0", "Toy/sac-s1"]
    with pytest.raises(ValueError, match="There are no runs in"):
        find_runs([tmp_path / "other"])


def test_a_curve_has_the_rows_that_have_a_value(tmp_path: Path) -> None:
    run = read_run(make_run(tmp_path, [5, 6, 7]))
    np.testing.assert_array_equal(run.curve().steps, [10, 20, 30])
    np.testing.assert_array_equal(run.curve().values, [5, 6, 7])
    np.testing.assert_array_equal(run.curve().at(np.array([5, 15, 30])), [np.nan, 5.5, 7])
    assert (run.steps, run.speed) == (30, 100)


@pytest.mark.parametrize(
    ("returns", "score"),
    [([7], 7), ([1, 2, 3, 4], 4), (range(10), 8.5), (range(20), 17.5), (range(21), 18)],
)
def test_a_score_is_the_mean_over_the_last_fifth(
    returns: Any, score: float, tmp_path: Path
) -> None:
    assert read_run(make_run(tmp_path, list(returns))).score() == pytest.approx(score)
    assert np.isnan(read_run(make_run(tmp_path, list(returns))).score("no_such_column"))


def test_runs_of_one_kind_are_comparable(tmp_path: Path) -> None:
    for method in ("sac", "rrd"):
        for seed in (0, 1):
            make_run(tmp_path, [1] * (1 + (method == "sac")), method=method, seed=seed)
    (note,) = compare_origins(find_runs([tmp_path]))
    assert note == "The methods on Toy have different numbers of steps: rrd 10, sac 20."


def test_unfinished_runs_and_runs_of_unknown_origin_are_said(tmp_path: Path) -> None:
    make_run(tmp_path, [1], steps=20)
    assert compare_origins(find_runs([tmp_path])) == ["Not finished: Toy/sac-s0."]
    make_run(tmp_path, [1], seed=1, steps=20, provenance={})
    with pytest.raises(ValueError, match="not known of what code Toy/sac-s1 are"):
        compare_origins(find_runs([tmp_path]))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"interval": "7"}, "seeds of sac on Toy differ in interval (7, null)"),
        ({"commit": "b" * 40}, "differ in the commit of belated: aaaaaaaaaaaa, bbbbbbbbbbbb"),
        (
            {"hyperparameters": {"gamma": 0.9}},
            "differ in hyperparameters.gamma (0.9, 0.99)",
        ),
        ({"steps": 7}, "seeds of sac on Toy differ in steps (10, 7)"),
        ({"eval_episodes": 5}, "differ in eval_episodes (1, 5)"),
        ({"provenance": {"versions": {"jax": "2"}}}, "differ in the version of jax: 1, 2"),
        ({"earlier": [{"versions": {"jax": "2"}}]}, "differ in the version of jax: 1, 2"),
    ],
)
def test_runs_of_different_kinds_are_refused_unless_asked_for(
    change: dict[str, Any], said: str, tmp_path: Path
) -> None:
    make_run(tmp_path, [1], seed=0)
    make_run(tmp_path, [1], seed=1, **change)
    runs = find_runs([tmp_path])
    with pytest.raises(ValueError, match=re.escape(said)):
        compare_origins(runs)
    notes = compare_origins(runs, mixed=True)
    assert any(said in note and note.startswith("Mixed: ") for note in notes)


def test_methods_may_differ_but_not_in_how_they_are_evaluated(tmp_path: Path) -> None:
    make_run(tmp_path, [1], method="sac")
    make_run(tmp_path, [1], method="rrd", hyperparameters={"gamma": 0.5})
    assert compare_origins(find_runs([tmp_path])) == []
    make_run(tmp_path, [1], method="rrd", interval="7")
    with pytest.raises(ValueError, match=r"The methods on Toy differ in interval \(7, null\)"):
        compare_origins(find_runs([tmp_path]))
    make_run(tmp_path, [1], method="rrd", period="7")
    with pytest.raises(ValueError, match=r"The methods on Toy differ in period \(7, null\)"):
        compare_origins(find_runs([tmp_path]))
    make_run(tmp_path, [1], method="rrd", eval_every=77)
    with pytest.raises(ValueError, match=r"The methods on Toy differ in eval_every \(10, 77\)"):
        compare_origins(find_runs([tmp_path]))


def test_two_runs_of_one_name_are_refused(tmp_path: Path) -> None:
    for place in ("a", "b"):
        make_run(tmp_path / place, [1])
    with pytest.raises(ValueError, match="more than one run called Toy/sac-s0"):
        compare_origins(find_runs([tmp_path]))


def test_uncommitted_changes_and_other_cpus_are_said(tmp_path: Path) -> None:
    place = make_run(tmp_path, [1])
    config = json.loads((place / "config.json").read_text())
    config["provenance"]["sources"]["belated"]["dirty"] = True
    (place / "config.json").write_text(json.dumps(config))
    make_run(tmp_path, [1], seed=1, provenance={"cpu": "slide rule"})
    notes = compare_origins(find_runs([tmp_path]))
    assert notes == [
        "One run was made with uncommitted changes in the code.",
        "The runs are from different CPUs: abacus, slide rule.",
    ]
