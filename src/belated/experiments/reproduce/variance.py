"""Figure 1 (c): the variance of the policy's gradient under two critics."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from belated.analysis.figures import bars
from belated.analysis.intervals import Estimate
from belated.analysis.runs import Run
from belated.analysis.statistics import estimate, mean
from belated.analysis.summary import Summary
from belated.analysis.wording import with_interval
from belated.experiments.grid import Contender
from belated.experiments.reproduce.base import LOCOMOTION, Cells, Experiment

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PROBE = "belated.experiments.gradient_variance:PROBE"
CRITICS = {"hc-singleton": "hc", "q-rnn": "rnn"}
"""What each critic's columns of progress.csv end with."""


class Variance(Experiment):
    """The variance of the policy's gradient through hc-singleton and through q-rnn (Figure 1c).

    One policy is trained with hc-singleton; two more critics, which never reach it, learn from the
    same batches. The paper: the gradient has less variance under H + C. The figure is the mean over
    the whole training.
    """

    name = "variance"
    tasks = LOCOMOTION
    interval = "15:20"
    methods = (PROBE,)

    def contend(self, method: str) -> Iterable[Contender]:
        """The method that measures both."""
        yield Contender(method, name="probe" if method == PROBE else "")

    def draw(self, summary: Summary) -> dict[str, Figure]:
        """The variances side by side."""
        variances = {
            task: {name: of_task(summary, task, f"gradient_variance_{end}") for name, end in _ENDS}
            for task in summary.tasks
        }
        return {"": bars(variances, label="variance of the policy's gradient")}

    def table(self, summary: Summary) -> Cells:
        """Variances, and variances relative to the squared mean gradient."""
        header = ["task", "critic", "seeds", "variance", "variance / squared mean gradient"]
        rows = []
        for task in summary.tasks:
            for name, end in _ENDS:
                runs = [run for run in summary.runs if run.task == task]
                noise = estimate([[_noise_to_signal(run, end) for run in runs]], mean)
                variance = of_task(summary, task, f"gradient_variance_{end}")
                cells = [with_interval(variance), with_interval(noise)]
                rows.append([task, name, str(len(runs)), *cells])
        return header, rows


_ENDS = tuple(CRITICS.items())


def of_task(summary: Summary, task: str, column: str) -> Estimate:
    """The mean of a column over the whole training, over the seeds of a task."""
    runs = [run for run in summary.runs if run.task == task]
    return estimate([[over_training(run, column) for run in runs]], mean)


def over_training(run: Run, column: str) -> float:
    """The mean of a column over all rows of a run."""
    values = run.curve(column).values
    if not len(values):
        raise ValueError(f"{run.name} has no {column}: {run.steps} steps are too few to learn.")
    return float(values.mean())


def _noise_to_signal(run: Run, end: str) -> float:
    return over_training(run, f"gradient_variance_{end}") / over_training(
        run, f"gradient_norm_{end}"
    )
