from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from belated.analysis import figures
from belated.analysis.figures import aligned, draw_curves
from belated.analysis.frame import save, save_both
from belated.analysis.intervals import Estimate
from belated.analysis.looks import LOOKS
from belated.analysis.runs import Curve, Run


def run(
    method: str, seed: int, values: Sequence[float], every: int = 5_000, task: str = "Ant"
) -> Run:
    rows = tuple(
        {"step": every * (place + 1.0), "return_mean": value, "wall_time": place + seed + 1.0}
        for place, value in enumerate(values)
    )
    return Run(Path(f"{method}-{seed}"), {"task": task, "method": method, "seed": seed}, rows)


def lines(axes: Axes, *, bold: bool) -> list[Line2D]:
    return [line for line in axes.lines if (float(line.get_linewidth()) > 1) == bold]


def bands(axes: Axes) -> list[PolyCollection]:
    return [each for each in axes.collections if isinstance(each, PolyCollection)]


def legend(figure: Figure) -> list[str]:
    return [text.get_text() for text in figure.legends[0].get_texts()]


# Learning curves


def test_a_method_is_a_bold_line_a_band_and_a_thin_line_for_each_seed() -> None:
    runs = [run("sac", seed, [seed, 10.0 + seed, 20.0 + seed]) for seed in (0, 1, 2, 10)]
    figure = draw_curves([*runs, run("oracle", 0, [1.0, 2.0, 3.0])], statistic="mean")
    (axes,) = figure.axes
    assert len(lines(axes, bold=False)) == 4
    assert len(bands(axes)) == 1
    oracle, sac = lines(axes, bold=True)
    assert oracle.get_color() == LOOKS["oracle"].colour
    assert sac.get_xdata() == pytest.approx([5, 10, 15])
    assert sac.get_ydata() == pytest.approx([3.25, 13.25, 23.25])
    assert (axes.get_title(loc="left"), axes.get_xlabel()) == ("Ant", "steps (thousands)")
    assert legend(figure) == ["oracle", "sac"]


def test_the_interquartile_mean_leaves_out_the_seed_on_its_back() -> None:
    runs = [run("sac", seed, [value] * 3) for seed, value in enumerate((0.0, 9.0, 10.0, 11.0))]
    (bold,) = lines(draw_curves(runs).axes[0], bold=True)
    assert bold.get_ydata() == pytest.approx([9.5] * 3)


@pytest.mark.parametrize(("seeds", "thin", "band"), [(1, 0, 0), (3, 3, 0), (4, 4, 1)])
def test_one_seed_has_no_band_and_no_thin_line(seeds: int, thin: int, band: int) -> None:
    runs = [run("sac", seed, [0.0, 1.0 + seed]) for seed in range(seeds)]
    (axes,) = draw_curves(runs).axes
    assert (len(lines(axes, bold=False)), len(bands(axes))) == (thin, band)
    assert len(lines(axes, bold=True)) == 1


def test_seeds_with_other_steps_are_averaged_where_all_have_data() -> None:
    steps, values = aligned(
        [
            Curve(np.array([0.0, 10.0, 20.0]), np.array([0.0, 10.0, 20.0])),
            Curve(np.array([5.0, 15.0]), np.array([0.0, 1.0])),
        ]
    )
    assert steps.tolist() == [5, 10, 15]
    assert values.tolist() == [[5, 10, 15], [0, 0.5, 1]]


def test_a_run_that_stopped_early_ends_the_bold_line_but_not_the_others() -> None:
    runs = [run("sac", seed, [1.0] * length) for seed, length in enumerate((4, 10, 10))]
    (axes,) = draw_curves(runs).axes
    (bold,) = lines(axes, bold=True)
    assert np.max(bold.get_xdata()) == 20
    assert max(np.max(line.get_xdata()) for line in lines(axes, bold=False)) == 50


def test_runs_that_have_nothing_in_common_are_drawn_without_a_bold_line() -> None:
    late = Run(Path("late"), {"task": "Ant", "method": "sac", "seed": 1},
               ({"step": 90_000, "return_mean": 1.0},))  # fmt: skip
    (axes,) = draw_curves([run("sac", 0, [1.0, 2.0]), late, run("oracle", 0, [0.0, 1.0])]).axes
    assert len(lines(axes, bold=False)) == 2
    assert [len(np.asarray(line.get_xdata())) for line in lines(axes, bold=True)] == [2, 0]


def test_a_single_evaluation_is_a_point() -> None:
    (axes,) = draw_curves([run("sac", 0, [1.0])]).axes
    assert lines(axes, bold=True)[0].get_marker() == "o"


def test_a_value_that_is_not_a_number_is_left_out() -> None:
    (axes,) = draw_curves([run("sac", 0, [1.0, 2.0, float("nan")])]).axes
    assert lines(axes, bold=True)[0].get_xdata() == pytest.approx([5, 10])


def test_there_is_a_panel_for_each_task_and_one_legend() -> None:
    tasks = ("Hopper", "Ant", "Walker2d", "HalfCheetah", "Reacher")
    figure = draw_curves([run("sac", 0, [1.0, 2.0], task=task) for task in tasks])
    assert [axes.get_title(loc="left") for axes in figure.axes] == list(tasks)
    assert len(figure.legends) == 1
    assert all(axes.get_legend() is None for axes in figure.axes)
    # The lowest of each column and the first of each row have labels.
    assert [bool(axes.get_xlabel()) for axes in figure.axes] == [False, False, True, True, True]
    assert [bool(axes.get_ylabel()) for axes in figure.axes] == [True, False, False, True, False]


def test_smoothing_levels_and_time_are_named() -> None:
    runs = [run("sac", seed, [0.0, 30.0, 0.0]) for seed in range(2)]
    (axes,) = draw_curves(runs, smooth=3, x="wall_time", hline={"the oracle": 99.0}).axes
    assert "mean of 3 evaluations" in axes.get_ylabel()
    assert axes.get_xlabel() == "seconds of learning"
    assert "the oracle" in [text.get_text() for text in axes.texts]
    assert axes.get_ylim()[1] >= 99
    (unsmoothed,) = draw_curves(runs).axes
    assert "mean of" not in unsmoothed.get_ylabel()


def test_a_wide_band_does_not_squeeze_the_lines() -> None:
    runs = [run("sac", seed, [0.0, 100.0 * seed]) for seed in range(3)]
    (axes,) = draw_curves(runs).axes
    assert axes.get_ylim() == pytest.approx((-10, 210))


def test_nothing_to_draw_is_an_error() -> None:
    with pytest.raises(ValueError, match="No run has a speed"):
        draw_curves([run("sac", 0, [1.0])], column="speed")
    timeless = Run(Path("x"), {"method": "sac"}, ({"step": 1.0, "return_mean": 1.0},))
    with pytest.raises(ValueError, match="no wall_time"):
        draw_curves([timeless], x="wall_time")
    with pytest.raises(ValueError, match="odd"):
        draw_curves([run("sac", 0, [1.0, 2.0])], smooth=2)


def test_names_may_be_anything(tmp_path: Path) -> None:
    name = "_$\\frac{1}$ <b>\n" + 60 * "x"
    figure = draw_curves([run(name, 0, [1.0, 2.0], task=name)])
    save(figure, tmp_path / "curves.svg")
    assert len(legend(figure)[0]) == 40


def test_a_large_comparison_is_drawn_in_seconds(tmp_path: Path) -> None:
    values = np.random.default_rng(0).normal(size=20).tolist()
    runs = [
        run(method, seed, [value + seed for value in values], task=task)
        for task in "ABCDE"
        for method in list(LOOKS)[:8]
        for seed in range(4)
    ]
    start = time.process_time()
    figures.learning_curves(runs, tmp_path / "curves.png")
    assert time.process_time() - start < 8


# Other pictures


def test_pictures_are_written_twice_and_are_always_the_same(tmp_path: Path) -> None:
    figure = draw_curves([run("sac", 0, [1.0, 2.0])])
    png, svg = save_both(figure, tmp_path / "new" / "n1.5")
    assert [path.name for path in (png, svg)] == ["n1.5.png", "n1.5.svg"]
    same = draw_curves([run("sac", 0, [1.0, 2.0])])
    for path, again in zip((png, svg), save_both(same, tmp_path / "again"), strict=True):
        assert again.read_bytes() == path.read_bytes()


def test_bars_have_intervals_where_there_are_any() -> None:
    unknown = float("nan")
    values = {
        "Ant": {"sac": Estimate(1.0, 0.5, 2.0), "oracle": Estimate(3.0, unknown, unknown)},
        "Hopper": {"sac": Estimate(-1.0, -2.0, 0.0)},
    }
    figure = figures.bars(values, label="score")
    (axes,) = figure.axes
    assert sorted(patch.get_height() for patch in axes.patches) == [-1, 1, 3]  # type: ignore[attr-defined]
    assert [text.get_text() for text in axes.get_xticklabels()] == ["Ant", "Hopper"]
    assert legend(figure) == ["oracle", "sac"]


def test_scores_against_a_number() -> None:
    values = {
        name: {20.0: Estimate(1.0, 0.0, 2.0), 5.0: Estimate(2.0, 1.0, 3.0)}
        for name in ("sac", "rrd")
    }
    (axes,) = figures.points_against(values, x="interval length n").axes
    assert list(axes.get_xticks()) == [5, 20]
    assert axes.get_xlabel() == "interval length n"
    assert [np.asarray(line.get_ydata()).tolist() for line in axes.lines] == [[2, 1], [2, 1]]


def test_profiles_fall_from_one_to_none() -> None:
    scores = {"sac": [[1.0, 2.0], [3.0, 4.0]], "oracle": [[5.0, 6.0], [7.0, 8.0]]}
    (axes,) = figures.profiles(scores, label="score").axes
    for line in axes.lines:
        share = np.asarray(line.get_ydata(), float)
        assert (share[0], share[-1]) == (1, 0)
        assert (np.diff(share) <= 0).all()
