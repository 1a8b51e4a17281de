"""Every figure of the paper and some of ours, each as one experiment in one module."""

from __future__ import annotations

from pathlib import Path

from belated.analysis.frame import save_both
from belated.analysis.summary import Summary
from belated.analysis.summary_files import write_curves
from belated.experiments.reproduce.base import Experiment, Scale, write_table
from belated.experiments.reproduce.clock import Clock
from belated.experiments.reproduce.comparison import Comparison
from belated.experiments.reproduce.credit import Credit
from belated.experiments.reproduce.design import Design
from belated.experiments.reproduce.intervals import Intervals
from belated.experiments.reproduce.lengths import Lengths
from belated.experiments.reproduce.non_sum import NonSum
from belated.experiments.reproduce.overlap import Overlap
from belated.experiments.reproduce.phase import Phase
from belated.experiments.reproduce.point_reach import PointReach
from belated.experiments.reproduce.regulariser import Regulariser
from belated.experiments.reproduce.td3 import TD3
from belated.experiments.reproduce.variance import Variance

__all__ = ["EXPERIMENTS", "Experiment", "Scale", "find_experiment", "write_results"]

EXPERIMENTS: dict[str, Experiment] = {
    experiment.name: experiment
    for experiment in (
        Design(),
        Regulariser(),
        Variance(),
        Comparison(),
        Overlap(),
        Intervals(),
        NonSum(),
        TD3(),
        PointReach(),
        Phase(),
        Lengths(),
        Credit(),
        Clock(),
    )
}
"""By name, the paper's first."""


def find_experiment(name: str) -> Experiment:
    """Return the experiment of a name.

    Raises:
        ValueError: if there is none.
    """
    if name not in EXPERIMENTS:
        raise ValueError(f"There is no experiment {name!r}. There are {', '.join(EXPERIMENTS)}.")
    return EXPERIMENTS[name]


def write_results(experiment: Experiment, summary: Summary, folder: Path) -> Path:
    """Draw the figure (PNG and SVG) and write the table (Markdown and CSV) and the curves."""
    stem = folder / experiment.name
    for more, figure in experiment.draw(summary).items():
        save_both(figure, stem.with_name(f"{stem.name}{more}"))
    write_table(experiment.table(summary), stem)
    write_curves(summary.runs, folder / "curves.csv", experiment.metric)
    return stem.with_suffix(".png")
