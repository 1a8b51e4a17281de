"""Where a run's numbers go: the agent's history, ``progress.csv``, TensorBoard, W&B."""

from __future__ import annotations

import csv
import hashlib
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

Row = Mapping[str, float]

FIRST_COLUMNS = (
    "step",
    "return_mean",
    "return_std",
    "revealed_return_mean",
    "discounted_return_mean",
    "length_mean",
    "train_return_mean",
    "train_revealed_return_mean",
    "train_length_mean",
    "train_episodes",
    "wall_time",
    "steps_per_second",
)
"""What comes first in ``progress.csv``, where there is any; docs/metrics.md defines them."""


class Writer(Protocol):
    """Takes a row of numbers."""

    def write(self, row: Row) -> None:
        """Write one row."""

    def close(self) -> None:
        """Write whatever is still held back."""


class CSVWriter:
    """Writes rows to a CSV file, each one on disk before the call returns.

    A number that no row had before becomes a new column, which is empty in the rows above; a column
    that no row has a number for is not there.

    Args:
        path: the file; if it is there already it is written anew.
        rows: what was logged before, when a run goes on.
    """

    def __init__(self, path: Path, rows: Sequence[Row] = ()) -> None:
        self.path = path
        self._columns = ["step"]
        self._rows = list(rows)
        for row in rows:
            self._grow(row)
        self._write_all()

    def _grow(self, row: Row) -> bool:
        new = [name for name in row if name not in self._columns]
        if not new:
            return False
        known = {*self._columns, *new}
        first = [name for name in FIRST_COLUMNS if name in known]
        self._columns = [*first, *(n for n in self._columns + new if n not in FIRST_COLUMNS)]
        return True

    def write(self, row: Row) -> None:
        """Write one row; columns that it lacks stay empty."""
        self._rows.append(row)
        if self._grow(row):
            self._write_all()
        else:
            with self.path.open("a", newline="") as file:
                csv.DictWriter(file, self._columns, restval="").writerow(row)

    def _write_all(self) -> None:
        fresh = self.path.with_name(f".{self.path.name}.new")
        with fresh.open("w", newline="") as file:
            writer = csv.DictWriter(file, self._columns, restval="")
            writer.writeheader()
            writer.writerows(self._rows)
        fresh.replace(self.path)

    def close(self) -> None:
        """Nothing is held back."""


def has_rows(path: Path) -> bool:
    """Whether a CSV file holds anything beside its header."""
    return path.exists() and len(path.read_text().splitlines()) > 1


class TensorBoardWriter:
    """Writes event files that TensorBoard shows."""

    def __init__(self, folder: Path) -> None:
        from tensorboardX import SummaryWriter

        self._writer = SummaryWriter(str(folder))

    def write(self, row: Row) -> None:
        """Write one row, each number as a scalar at its step."""
        for name, value in row.items():
            if name != "step":
                self._writer.add_scalar(name, value, int(row["step"]))

    def close(self) -> None:
        """Write whatever is still held back."""
        self._writer.close()


class WandbWriter:
    """Sends rows to Weights & Biases, as a run that goes on when the folder's run does.

    Args:
        folder: the run folder; its name becomes the run's.
        config: the settings to show beside the run.
    """

    def __init__(self, folder: Path, config: Mapping[str, Any]) -> None:
        try:
            import wandb
        except ImportError as error:
            raise ValueError("W&B is not installed: pip install 'belated[wandb]'.") from error
        path = folder.resolve()
        self._run = wandb.init(
            project="belated",
            name=path.name,
            id=hashlib.sha256(str(path).encode()).hexdigest()[:16],
            resume="allow",
            dir=path,
            config=dict(config),
        )

    def write(self, row: Row) -> None:
        """Send one row."""
        self._run.log(dict(row), step=int(row["step"]))

    def close(self) -> None:
        """Send whatever is still held back."""
        self._run.finish()


class Journal:
    """The rows that were logged, the clock of learning, and the writers of the moment."""

    def __init__(self) -> None:
        self.rows: list[dict[str, float]] = []
        self._writers: list[Writer] = []
        self._spent = 0.0  # seconds, before the clock was started
        self._started: float | None = None  # when it was, later by the time of evaluations

    def open(self, writers: list[Writer]) -> None:
        """Write rows to these from now on, and start the clock."""
        self._writers = writers
        self._started = time.monotonic()

    def close(self) -> None:
        """Stop the clock and close the writers."""
        self._spent, self._started = self.seconds, None
        for writer in self._writers:
            writer.close()
        self._writers = []

    @property
    def seconds(self) -> float:
        """The time spent learning so far, evaluations not included."""
        running = 0.0 if self._started is None else time.monotonic() - self._started
        return self._spent + running

    def leave_out(self, seconds: float) -> None:
        """Do not count some seconds just spent on something else than learning."""
        if self._started is not None:
            self._started += seconds

    def write(self, step: int, row: Mapping[str, Any]) -> None:
        """Log a row of numbers at a step, with the time."""
        seconds = self.seconds
        last = self.rows[-1] if self.rows else {"step": 0, "wall_time": 0}
        taken, since = step - last["step"], seconds - last["wall_time"]
        full = {name: _number(name, value) for name, value in row.items()} | {
            "step": step,
            "wall_time": seconds,
            "steps_per_second": taken / since if since > 0 else 0.0,
        }
        self.rows.append(full)
        for writer in self._writers:
            writer.write(full)

    def state(self) -> dict[str, Any]:
        """Everything there is to save, as plain values."""
        return {"rows": self.rows, "seconds": self.seconds}

    def restore(self, state: dict[str, Any]) -> None:
        """Take over what `state` returned."""
        rows, seconds = state["rows"], state["seconds"]
        numbers = [seconds, *(value for row in rows for value in row.values())]
        if not all(isinstance(number, (int, float)) for number in numbers):
            raise ValueError("the journal holds something else than numbers.")
        self.rows, self._spent = rows, seconds


def _number(name: str, value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError) as error:
        raise ValueError(f"Only numbers can be logged; {name} is {value!r}.") from error
