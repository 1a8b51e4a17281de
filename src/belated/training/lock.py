"""One process at a time."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def locked(path: Path, wait: bool = True) -> Iterator[None]:
    """Keep other processes out of a file or folder; the system lets go when this one dies.

    Where there are no such locks (Windows, some network file systems), nobody is kept out.

    Args:
        path: the file or folder; the lock is a hidden file beside it.
        wait: wait for another one to let go.

    Raises:
        BlockingIOError: if another process is in it, and ``wait`` is False.
    """
    try:
        import fcntl
    except ImportError:
        yield
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path.with_name(f".{path.name}.lock"), os.O_RDWR | os.O_CREAT)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            raise
        except OSError:  # some network file systems have no locks
            pass
        yield
    finally:
        os.close(descriptor)
