"""Files that are there whole or not at all, also after a crash or a power cut."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any


def write_whole(path: Path, data: bytes) -> None:
    """Write a file and make sure that it is on the disk; an older one stays until then."""
    fresh = path.with_name(f".{path.name}.new")
    with fresh.open("wb") as file:
        file.write(data)
        sync(file)
    fresh.replace(path)
    sync_folder(path.parent)


def sync(file: Any) -> None:
    """Wait until what was written to an open file is on the disk."""
    file.flush()
    os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    """Wait until new names in a folder are on the disk, where the system can do that."""
    try:
        number = os.open(folder, os.O_RDONLY)
    except OSError:  # Windows opens no folders
        return
    try:
        os.fsync(number)
    except OSError:  # nor do some network file systems
        pass
    finally:
        os.close(number)


def write_json(path: Path, document: Any) -> None:
    """Write a JSON file, whole or not at all."""
    write_whole(path, (json.dumps(document, indent=2) + "\n").encode())


def read_json(path: Path) -> Any:
    """Read a JSON file.

    Raises:
        ValueError: if it is damaged.
    """
    try:
        return json.loads(path.read_text())
    except json.JSONDecodeError as error:
        raise ValueError(f"{path} is damaged: {error}.") from None
