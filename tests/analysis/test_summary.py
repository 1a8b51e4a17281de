from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from made_runs import make_run

from belated.analysis.runs import find_runs
from belated.analysis.summary import Summary, summarise
from belated.analysis.summary_files import as_json, as_markdown, write_curves

SAC = [100.0, 110.0, 120.0, 130.0]
RRD = [500.0, 510.0, 520.0, 530.0]


def summary_of(folder: Path, primary: tuple[str, str] | None = None, **scores: Any) -> Summary:
    for name, values in scores.items():
        task, method = name.split("_")
        for seed, value in enumerate(values):
            make_run(
                folder, [0.0] * 8 + [value - 5, value + 5], task=task, method=method, seed=seed
            )
    return summarise(find_runs([folder]), primary)


def test_scores_are_gathered_by_task_and_method(tmp_path: Path) -> None:
    summary = summary_of(tmp_path, A_sac=SAC, A_rrd=RRD, B_sac=[1.0])
    assert [(g.task, g.method) for g in summary.groups] == [
        ("A", "rrd"),
        ("A", "sac"),
        ("B", "sac"),
    ]
    group = summary.group("A", "sac")
    assert group is not None
    assert group.scores == tuple(SAC)
    assert group.mean.value == pytest.approx(115)
    assert group.iqm.value == pytest.approx(115)
    assert group.mean.low < 115 < group.mean.high
    assert group.area.value == pytest.approx((115 - 5 + (115 + 5) / 2) / 9)  # trapezoids
    assert group.speed == pytest.approx(100)


def test_a_clear_difference_is_a_verdict(tmp_path: Path) -> None:
    summary = summary_of(tmp_path, ("rrd", "sac"), A_sac=SAC, A_rrd=RRD)
    (comparison,) = summary.comparisons
    assert comparison.difference is not None
    assert comparison.difference.value == pytest.approx(400)
    assert comparison.p == pytest.approx(2 / 70)
    assert comparison.improvement.value == 1
    assert comparison.verdict.startswith("rrd is above sac: +400 (+")
    other = summarise(summary.runs, ("sac", "rrd")).comparisons[0]
    assert other.verdict.startswith("sac is below rrd: -400 (-")


def test_no_difference_says_what_would_have_been_missed(tmp_path: Path) -> None:
    summary = summary_of(tmp_path, ("rrd", "sac"), A_sac=SAC, A_rrd=[105.0, 108.0, 121.0, 128.0])
    (comparison,) = summary.comparisons
    assert "no difference shown" in comparison.verdict
    assert comparison.smallest is not None
    assert f"less than about {comparison.smallest:.3g} " in comparison.verdict


def test_too_few_seeds_are_no_verdict_however_large_the_difference(tmp_path: Path) -> None:
    summary = summary_of(
        tmp_path, ("rrd", "sac"), A_sac=SAC[:3], A_rrd=RRD[:3], B_sac=[1.0], B_rrd=[99.0]
    )
    three, one, both = summary.comparisons
    assert three.verdict.startswith("too few seeds for a verdict")
    assert "p cannot be below 0.1" in three.verdict
    assert one.verdict.startswith("one seed cannot tell rrd from sac")
    assert both.where == "all tasks"


def test_tasks_together_can_show_what_one_cannot(tmp_path: Path) -> None:
    tasks = {f"{task}_{m}": v[:3] for task in "ABC" for m, v in (("sac", SAC), ("rrd", RRD))}
    summary = summary_of(tmp_path, ("rrd", "sac"), **tasks)
    *single, overall = summary.comparisons
    assert all(each.p == pytest.approx(0.1) for each in single)
    assert overall.p == pytest.approx(2 / 20**3)
    assert overall.verdict.startswith("over all 3 tasks rrd is above sac, p = 0.00025")


def test_returns_are_shares_of_the_oracles(tmp_path: Path) -> None:
    reacher: dict[str, Any] = {"Reacher-sum_oracle": [-10.0], "Reacher-sum_sac": [-30.0]}
    others = {"A_oracle": [200.0, 400.0], "A_sac": [150.0], "B_oracle": [-5.0], "B_sac": [1.0]}
    summary = summary_of(tmp_path, None, **reacher | others)
    shares = {(g.task, g.method): g.relative for g in summary.groups}
    assert shares["A", "sac"] == pytest.approx(0.5)
    assert shares["A", "oracle"] == pytest.approx(1)
    assert shares["Reacher-sum", "sac"] == pytest.approx(20 / 40)  # 50 are added to both
    assert shares["B", "sac"] is None  # a share of a loss means nothing


def test_a_summary_is_plain_json_and_readable_markdown(tmp_path: Path) -> None:
    summary = summary_of(tmp_path, ("rrd", "sac"), A_sac=[1.0], A_rrd=RRD)
    text = json.dumps(as_json(summary), allow_nan=False)
    assert json.loads(text)["groups"][0]["returns"] == RRD
    page = as_markdown(summary)
    assert "| rrd | 4 | 100 | 515 (" in page
    assert "- A: one seed cannot tell" in page


def test_a_column_that_no_run_has_is_refused(tmp_path: Path) -> None:
    make_run(tmp_path, [1])
    with pytest.raises(ValueError, match="No run has a speed; the columns are return_mean, step"):
        summarise(find_runs([tmp_path]), column="speed")


def test_curves_are_written_in_long_form(tmp_path: Path) -> None:
    make_run(tmp_path, [1.5, 2.5], seed=3)
    path = write_curves(find_runs([tmp_path]), tmp_path / "x" / "curves.csv", "return_mean")
    assert list(csv.reader(path.read_text().splitlines())) == [
        ["exp_name", "env_name", "seed", "metric", "env_step", "value"],
        ["sac", "Toy", "3", "return_mean", "10", "1.5"],
        ["sac", "Toy", "3", "return_mean", "20", "2.5"],
    ]
