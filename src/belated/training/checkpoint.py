"""Saved agents: a folder of plain values that can be trusted to be whole.

``manifest.json`` says what the agent is and names every other file with its size and checksum:
``state.N.safetensors`` (what was learned), ``journal.N.json`` (what was logged) and, to go on,
``loop.N.safetensors`` (open episodes, counters) and ``replay.*.rows`` (the replay's settled rows).
Replacing the manifest is what makes a new checkpoint count: until then the old one is untouched,
since rows are only appended and the other files have new names. So a checkpoint costs as much as
what is new.

Loading runs no code: JSON, safetensors and raw numbers hold plain values only, and no environment
or function is made from what a file names. Everything is compared with what it should be before
memory is taken for it.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np
import numpy.typing as npt
import safetensors
import safetensors.numpy

from belated.experience.base import Log
from belated.training import row_files
from belated.training.persistence import write_whole
from belated.training.row_files import RowFile

FORMAT = 4
MANIFEST = "manifest.json"

Arrays = dict[str, npt.NDArray[Any]]

_NAME = re.compile(r"(state|loop)\.\d+\.safetensors|journal\.\d+\.json|replay\.\d+\.\d+\.\d+\.rows")
_OWN = re.compile(rf"{_NAME.pattern}|\..*\.new")
_LARGEST_MANIFEST = 2**26
_LARGEST_JOURNAL = 2**29
_LARGEST_LOOP = 2**30
_LARGEST_HEADER = 2**20


class CheckpointError(ValueError):
    """A saved agent that is damaged, of another version, or no saved agent at all."""


@dataclass(frozen=True)
class Checkpoint:
    """What a process knows of a checkpoint that it has written or read last."""

    folder: Path
    digest: str
    """Of the manifest: whether the folder still holds that checkpoint."""
    generation: int
    rows: tuple[RowFile, ...] = ()


def write(
    folder: Path,
    manifest: Mapping[str, Any],
    journal: Any,
    state: Any,
    loop: Arrays | None = None,
    logs: Sequence[Log] = (),
    last: Checkpoint | None = None,
) -> Checkpoint:
    """Write a checkpoint; an older one in the folder counts until the new one is whole.

    Args:
        folder: where to.
        manifest: what the agent is.
        journal: what was logged, as plain values.
        state: what was learned.
        loop: what going on needs, beside ``logs``; None if it is not to be saved.
        logs: what grows with experience.
        last: what this process has written or read last. If the folder still holds it, only the
            rows that are new are written.

    Raises:
        ValueError: if the folder holds anything else than a checkpoint.
        OSError: if the disk is full, or cannot be written to.
    """
    require_own(folder)
    folder.mkdir(parents=True, exist_ok=True)
    generation = 1 + max((_generation_of(path.name) for path in folder.iterdir()), default=-1)
    files: dict[str, dict[str, Any]] = {}

    def put(name: str, data: bytes, largest: int) -> None:
        if len(data) > largest:
            raise ValueError(f"{name} would have {len(data)} bytes, more than can be read again.")
        write_whole(folder / name, data)
        files[name] = {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}

    put(f"journal.{generation}.json", json.dumps(journal).encode(), _LARGEST_JOURNAL)
    leaves = safetensors.numpy.save(_contiguous(named_leaves(state)))
    put(f"state.{generation}.safetensors", leaves, len(leaves))
    rows: tuple[RowFile, ...] = ()
    if loop is not None:
        arrays = safetensors.numpy.save(_contiguous(loop))
        put(f"loop.{generation}.safetensors", arrays, _LARGEST_LOOP)
        earlier = last.rows if last is not None and _holds(folder, last) else ()
        rows = row_files.append(folder, logs, earlier, generation)
        for each in rows:
            files[each.name] = {"bytes": each.size, "sha256": each.hash.hexdigest()}
    document = {
        "format": FORMAT,
        "generation": generation,
        **manifest,
        "files": files,
        "rows": [
            {"file": each.name, "lane": each.lane, "first": each.first, "rows": each.rows}
            for each in rows
        ],
    }
    digest = _commit(folder, document)
    return Checkpoint(folder.resolve(), digest, generation, rows)


def require_own(folder: Path) -> None:
    """Refuse a folder that holds anything else than a checkpoint.

    Raises:
        ValueError: if it does.
    """
    if folder.exists() and not (folder / MANIFEST).is_file() and not _is_own(folder):
        raise ValueError(
            f"{folder} holds something else than a saved agent; choose another folder."
        )


def forget_replay(folder: Path) -> None:
    """Make a checkpoint smaller: it can be used from then on, but learning starts anew from it."""
    saved = Reader(find(folder))
    files = {
        name: file
        for name, file in saved.manifest["files"].items()
        if name[:5] in ("state", "journ")
    }
    _commit(saved.folder, saved.manifest | {"files": files, "rows": []})


def _commit(folder: Path, manifest: Mapping[str, Any]) -> str:
    """Make a checkpoint count, delete what it does not need, and return the manifest's digest."""
    text = json.dumps(manifest, indent=2).encode()
    write_whole(folder / MANIFEST, text)
    for path in folder.iterdir():
        if _OWN.fullmatch(path.name) and path.name not in manifest["files"]:
            path.unlink(missing_ok=True)
    return hashlib.sha256(text).hexdigest()


def _is_own(folder: Path) -> bool:
    """Whether a folder holds nothing but what a first checkpoint leaves when it is cut off."""
    return all(_OWN.fullmatch(path.name) for path in folder.iterdir())


def _contiguous(arrays: Mapping[str, Any]) -> Arrays:
    return {name: np.asarray(array, order="C") for name, array in arrays.items()}


def _generation_of(name: str) -> int:
    number = re.match(r"(?:journal|state|loop|replay)\.(\d+)\.", name)
    return int(number[1]) if number else -1


def require_same(folder: Path, last: Checkpoint) -> None:
    """Refuse to go on from a checkpoint that another process has replaced meanwhile.

    Raises:
        ValueError: if that is what happened.
    """
    if folder.resolve() == last.folder and not _holds(folder, last):
        raise ValueError(f"{folder} was written by another process meanwhile: load it again.")


def _holds(folder: Path, last: Checkpoint) -> bool:
    """Whether a folder still holds the checkpoint that this process knows."""
    if last.folder != folder.resolve() or not (folder / MANIFEST).is_file():
        return False
    return hashlib.sha256((folder / MANIFEST).read_bytes()).hexdigest() == last.digest


def find(folder: Path) -> Path:
    """Return the checkpoint in a run folder, or the folder itself if it is a saved agent."""
    for candidate in (folder / "checkpoint", folder):
        if (candidate / MANIFEST).is_file():
            return candidate
    raise FileNotFoundError(f"There is no saved agent in {folder}: no {MANIFEST}.")


def exists(folder: Path) -> bool:
    """Whether `find` finds one."""
    try:
        return find(folder).is_dir()
    except FileNotFoundError:
        return False


@contextlib.contextmanager
def reading(folder: Path) -> Iterator[None]:
    """Say of whatever goes wrong with a file's content that the checkpoint is damaged.

    Raises:
        CheckpointError: instead of the errors that malformed values cause.
    """
    try:
        yield
    except CheckpointError:
        raise
    except (
        ArithmeticError, AttributeError, LookupError, MemoryError, RuntimeError, TypeError,
        ValueError, safetensors.SafetensorError,
    ) as error:  # fmt: skip
        what = str(error) or type(error).__name__
        raise CheckpointError(f"The saved agent in {folder} cannot be read: {what}") from error


class Reader:
    """A saved agent in a folder, read piece by piece."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        with reading(folder):
            text = _read(folder / MANIFEST, _LARGEST_MANIFEST)
            self.manifest: dict[str, Any] = _as(dict, json.loads(text.decode()))
            version = self.manifest.get("format")
            if version != FORMAT:
                raise CheckpointError(
                    f"{folder} has the format {version!r}; this version reads {FORMAT}."
                )
            self._files = _as(dict, self.manifest["files"])
            self._digest = hashlib.sha256(text).hexdigest()
            self._generation = _as(int, self.manifest["generation"])
            for name in self._files:
                if not _NAME.fullmatch(name):
                    raise CheckpointError(f"{folder} names a file that is none of its own.")

    def _data(self, name: str, largest: int) -> bytes:
        """Read a file that the manifest names, and compare its checksum."""
        if name not in self._files:
            raise CheckpointError(f"{self.folder} does not name its {name}.")
        size, checksum = _as(int, self._files[name]["bytes"]), self._files[name]["sha256"]
        if not 0 <= size <= largest:
            raise CheckpointError(f"{self.folder / name} is said to have {size} bytes.")
        data = _read(self.folder / name, size, more=name.endswith(".rows"))
        if len(data) != size or hashlib.sha256(data).hexdigest() != checksum:
            raise CheckpointError(
                f"{self.folder / name} is damaged: it is not what was written there."
            )
        return data

    @property
    def state_size(self) -> int:
        """How many bytes the learned state is said to have."""
        with reading(self.folder):
            size: int = _as(int, self._files[self._name("state")]["bytes"])
            return size

    def _name(self, kind: str) -> str:
        return f"{kind}.{self._generation}.safetensors"

    def journal(self) -> Any:
        """Read what was logged."""
        with reading(self.folder):
            data = self._data(f"journal.{self._generation}.json", _LARGEST_JOURNAL)
            return json.loads(data.decode())

    def state(self, like: Any) -> list[jax.Array]:
        """Read the leaves of a state that has the structure of ``like``."""
        with reading(self.folder):
            wanted = named_leaves(like)
            room = sum(leaf.nbytes for leaf in wanted.values()) + _LARGEST_HEADER
            saved = safetensors.numpy.load(self._data(self._name("state"), room))
            for name, leaf in wanted.items():
                if name not in saved or saved[name].shape != leaf.shape:
                    raise CheckpointError(
                        f"{self.folder} does not fit its own manifest: {name} is missing or odd."
                    )
                if saved[name].dtype != leaf.dtype:
                    raise CheckpointError(f"{self.folder}: {name} has another type.")
            return [jax.device_put(saved[name]) for name in wanted]

    @property
    def holds_loop(self) -> bool:
        """Whether learning can go on where it stopped."""
        return self._name("loop") in self._files

    def loop(self) -> Arrays:
        """Read what going on needs beside the logs."""
        with reading(self.folder):
            data = self._data(self._name("loop"), _LARGEST_LOOP)
            arrays: Arrays = safetensors.numpy.load(data)
            return {name: array.copy() for name, array in arrays.items()}  # (they are read-only)

    def fill(self, logs: Sequence[Log]) -> Checkpoint:
        """Put the saved rows into logs; return what there is to append to."""
        rows = []
        with reading(self.folder):
            for row in _as(list, self.manifest["rows"]):
                file = RowFile(*(row[key] for key in ("file", "lane", "first", "rows")))
                numbers = [_as(int, getattr(file, name)) for name in ("lane", "first", "rows")]
                if (
                    min(numbers) < 0
                    or file.lane >= len(logs)
                    or file.rows > row_files.ROWS_IN_A_FILE
                ):
                    raise CheckpointError(f"{self.folder} has rows that cannot be: {row}.")
                log = logs[file.lane]
                file.size = file.rows * log.record_type.itemsize
                data = self._data(file.name, file.size)
                file.hash.update(data)
                log.put(file.first, np.frombuffer(data, log.record_type))
                rows.append(file)
        return Checkpoint(self.folder.resolve(), self._digest, self._generation, tuple(rows))


def _as(kind: type[Any], value: Any) -> Any:
    if not isinstance(value, kind) or isinstance(value, bool):
        raise CheckpointError(f"Expected {kind.__name__}, found {value!r:.80}.")
    return value


def _read(path: Path, largest: int, more: bool = False) -> bytes:
    """Read at most so many bytes of a file; unless ``more`` may follow, refuse a larger one."""
    if not path.is_file():
        raise CheckpointError(f"{path} is missing, or no plain file.")
    with path.open("rb") as file:
        data = file.read(largest + (not more))
    if len(data) > largest:
        raise CheckpointError(f"{path} is larger than it may be.")
    return data


def named_leaves(state: Any) -> dict[str, Any]:
    """The leaves of a pytree by their paths."""
    paths, _ = jax.tree_util.tree_flatten_with_path(state)
    return {jax.tree_util.keystr(path, simple=True, separator="."): leaf for path, leaf in paths}
