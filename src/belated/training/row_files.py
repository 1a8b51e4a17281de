"""The replay's rows in a checkpoint: files that only grow, so that old rows cost nothing."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy.typing as npt

from belated.experience.base import Log
from belated.training.persistence import sync, sync_folder

ROWS_IN_A_FILE = 16_384


@dataclass
class RowFile:
    """Rows of one lane, one after another."""

    name: str
    lane: int
    first: int  # the number of its first row
    rows: int = 0
    size: int = 0  # in bytes
    hash: Any = field(default_factory=hashlib.sha256)

    @property
    def end(self) -> int:
        """The number of the row after its last one."""
        return self.first + self.rows

    def append(self, folder: Path, records: npt.NDArray[Any]) -> None:
        """Write more rows; what a crash may have left behind those that count is cut off."""
        data = records.tobytes()
        with (folder / self.name).open("r+b" if self.rows else "wb") as file:
            file.seek(self.size)
            file.truncate()
            file.write(data)
            sync(file)
        self.rows += len(records)
        self.size += len(data)
        self.hash.update(data)


def append(
    folder: Path, logs: Sequence[Log], earlier: Sequence[RowFile], generation: int
) -> tuple[RowFile, ...]:
    """Write the rows that were settled since; leave out files whose rows are needed no more."""
    kept: list[RowFile] = []
    for lane, log in enumerate(logs):
        own = [
            replace(each, hash=each.hash.copy())
            for each in earlier
            if each.lane == lane and each.end > log.oldest
        ]
        done = own[-1].end if own else log.oldest
        while done < log.settled:
            if not own or own[-1].rows == ROWS_IN_A_FILE:
                own.append(RowFile(f"replay.{generation}.{lane}.{done}.rows", lane, done))
            end = min(log.settled, own[-1].first + ROWS_IN_A_FILE)
            own[-1].append(folder, log.records(done, end))
            done = end
        kept += own
    sync_folder(folder)
    return tuple(kept)
