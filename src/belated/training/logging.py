"""Where a run's numbers go: ``progress.csv`` always, TensorBoard on request."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

COLUMNS = (
    "step",
    "return_mean",
    "return_std",
    "revealed_return_mean",
    "length_mean",
    "wall_time",
    "steps_per_second",
    "td_loss",
    "auxiliary_loss",
    "value_mean",
    "target_mean",
    "actor_loss",
    "entropy",
    "temperature",
    "reward_loss",
    "reward_sum_error",
    "value_loss",
    "kl",
    "clip_fraction",
    "rudder_error",
    "rudder_quality",
    "meta_actor_loss",
    "meta_value_loss",
    "intrinsic_reward_mean",
)
"""The columns of ``progress.csv``; docs/metrics.md defines them."""


class Writer(Protocol):
    """Takes a row of numbers."""

    def write(self, row: Mapping[str, float]) -> None:
        """Write one row."""

    def close(self) -> None:
        """Write whatever is still held back."""


class CSVWriter:
    """Writes rows to a CSV file, each one on disk before the call returns.

    Args:
        path: the file; if it is there already it is written anew.
        rows: what was logged before, when a run goes on.
    """

    def __init__(self, path: Path, rows: Sequence[Mapping[str, float]] = ()) -> None:
        self.path = path
        with path.open("w", newline="") as file:
            writer = csv.DictWriter(file, COLUMNS, restval="", extrasaction="ignore")
            writer.writeheader()
            writer.writerows(rows)

    def write(self, row: Mapping[str, float]) -> None:
        """Write one row; columns that it lacks stay empty, and other numbers are left out."""
        with self.path.open("a", newline="") as file:
            csv.DictWriter(file, COLUMNS, restval="", extrasaction="ignore").writerow(row)

    def close(self) -> None:
        """Nothing is held back."""


class TensorBoardWriter:
    """Writes event files that TensorBoard shows."""

    def __init__(self, folder: Path) -> None:
        from tensorboardX import SummaryWriter

        self._writer = SummaryWriter(str(folder))

    def write(self, row: Mapping[str, float]) -> None:
        """Write one row, each number as a scalar at its step."""
        for name, value in row.items():
            if name != "step":
                self._writer.add_scalar(name, value, int(row["step"]))

    def close(self) -> None:
        """Write whatever is still held back."""
        self._writer.close()
