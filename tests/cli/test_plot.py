from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import tyro

from belated.cli.plot import plot
from belated.cli.report import report


def command(*arguments: str) -> int:
    commands: dict[str, Any] = {"plot": plot, "report": report}
    code: int = tyro.extras.subcommand_cli_from_dict(commands, args=arguments)
    return code


def write_run(folder: Path, method: str, seed: int, values: Sequence[float], **more: int) -> None:
    folder.mkdir(parents=True)
    config = {"env": "belated/Ant-v0", "method": method, "seed": seed, "eval_every": 5, **more}
    (folder / "config.json").write_text(json.dumps(config))
    with (folder / "progress.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["step", "return_mean", "wall_time"])
        writer.writerows([5 * step, value, step] for step, value in enumerate(values, 1))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for method, height in (("sac", 1.0), ("oracle", 9.0)):
        for seed in range(2):
            values = [0.0, height, height + seed]
            write_run(tmp_path / "runs" / f"{method}-s{seed}", method, seed, values)
    return tmp_path


def test_curves_are_drawn_and_written(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    picture, table = folder / "new" / "curves.svg", folder / "new" / "curves.csv"
    code = command(
        "plot", str(folder / "runs"), "--out", str(picture), "--csv", str(table),
        "--statistic", "mean", "--x", "wall_time", "--smooth", "3",
    )  # fmt: skip
    assert code == 0
    assert picture.read_text().rstrip().endswith("</svg>")
    assert len(table.read_text().splitlines()) == 1 + 4 * 3
    printed = capsys.readouterr().out
    assert f"Picture of 4 runs: {picture}" in printed
    assert str(table) in printed


def test_several_places_are_read(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    places = [str(folder / "runs" / name) for name in ("sac-s0", "oracle-s1")]
    assert command("plot", *places, "--out", str(folder / "curves.png")) == 0
    assert "Picture of 2 runs" in capsys.readouterr().out


def test_a_page_is_written(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = folder / "page.html"
    runs = str(folder / "runs")
    assert command("report", runs, "--out", str(page), "--primary", "oracle,sac") == 0
    printed = capsys.readouterr().out
    assert f"Report of 4 runs: {page}" in printed
    assert "oracle" in printed
    assert "<h1>2 methods on Ant-v0</h1>" in page.read_text()
    assert command("report", runs, "--out", str(page), "--title", "Ants & co") == 0
    assert "<h1>Ants &amp; co</h1>" in page.read_text()


@pytest.mark.parametrize("name", ["plot", "report"])
def test_runs_that_differ_are_mixed_only_on_request(
    folder: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    write_run(folder / "runs" / "other", "sac", 7, [0.0, 1.0], eval_every=99)
    arguments = [name, str(folder / "runs"), "--out", str(folder / "out.svg")]
    with pytest.raises(ValueError, match="--mixed"):
        command(*arguments)
    assert command(*arguments, "--mixed") == 0
    assert "Note: Mixed: " in capsys.readouterr().out


@pytest.mark.parametrize("primary", ["sac", "sac,sac", "sac,", "a,b,c"])
def test_a_comparison_is_between_two(folder: Path, primary: str) -> None:
    with pytest.raises(ValueError, match="two methods"):
        command("report", str(folder / "runs"), "--primary", primary)


def test_a_folder_without_runs_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="There are no runs"):
        command("plot", str(tmp_path))
