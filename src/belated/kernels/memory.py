"""How the process handles the scratch memory of an update, on a CPU.

Both settings are for XLA's CPU backend and glibc; neither changes results. The environment variable
``BELATED_KEEP_MEMORY=0`` turns off the one that affects the whole process.
"""

from __future__ import annotations

import ctypes
import functools
import os

import jax

_M_TRIM_THRESHOLD, _M_TOP_PAD, _M_MMAP_THRESHOLD = -1, -2, -3  # of glibc's malloc.h
_MEGABYTE = 2**20


def on_cpu() -> bool:
    """Whether JAX computes on the CPU."""
    return jax.default_backend() == "cpu"


def compiler_options() -> dict[str, int] | None:
    """Compiler options for functions that need much scratch: ask for pieces that glibc can keep.

    XLA asks for all of a function's scratch at once, on a thread of its own. There glibc keeps
    nothing above 64 MB, whatever its settings. (A single array above the limit gets its own piece,
    and XLA warns about it.)
    """
    return {"xla_multiheap_size_constraint_per_heap": 56 * _MEGABYTE} if on_cpu() else None


@functools.cache
def keep_freed_memory() -> bool:
    """Keep freed memory for the next update instead of giving it back to the system.

    By default glibc may return the scratch after each update, and the system then clears thousands
    of fresh pages for the next: a quarter of the time an update takes, or half where intervals are
    long. Blocks above 64 MB, such as a replay's, still go back at once. The setting affects the
    whole process and is made once, with the first learner.

    Returns:
        Whether it was made. C libraries other than glibc, and processes that use an accelerator,
        are left as they are.
    """
    if os.environ.get("BELATED_KEEP_MEMORY") == "0" or not on_cpu():
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):  # not glibc, or not even POSIX
        return False

    def set_to(parameter: int, *megabytes: int) -> bool:  # to the first that is accepted
        return any(mallopt(parameter, size * _MEGABYTE) for size in megabytes)

    done = [
        set_to(_M_MMAP_THRESHOLD, 64, 32),  # older versions accept no more than 32
        set_to(_M_TRIM_THRESHOLD, 512),
        set_to(_M_TOP_PAD, 128),  # beyond a thread's heap size, so none is given back
    ]
    return all(done)
