"""How the process treats memory that was freed."""

from __future__ import annotations

import ctypes
import functools

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # of glibc's malloc.h
_MEGABYTE = 2**20


@functools.cache
def keep_freed_memory() -> bool:
    """Keep freed memory for the next update instead of giving it back to the system.

    An update needs some megabytes of scratch. By default glibc may give them back after each one,
    and the system then clears thousands of fresh pages for the next: up to a quarter of the time
    an update takes. Blocks of more than 64 MB, such as a replay's, still go back at once.

    Returns:
        Whether it worked; other C libraries than glibc are left as they are.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):  # not glibc, or not even POSIX
        return False
    return bool(
        mallopt(_M_MMAP_THRESHOLD, 64 * _MEGABYTE) and mallopt(_M_TRIM_THRESHOLD, 512 * _MEGABYTE)
    )
