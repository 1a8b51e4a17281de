"""How the process treats the memory that an update needs for its own use, on a CPU.

Both settings here are made for XLA's CPU backend and glibc. They leave results as they are. The
environment variable ``BELATED_KEEP_MEMORY=0`` turns off the one that concerns the whole process.
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
    """Compiler options of functions that need much scratch: in pieces that glibc is able to keep.

    XLA asks for all of a function's scratch at once, on a thread of its own. There glibc keeps
    nothing of more than 64 MB, whatever it is told. (A single array above the limit gets a piece of
    its own, and XLA warns of it.)
    """
    return {"xla_multiheap_size_constraint_per_heap": 56 * _MEGABYTE} if on_cpu() else None


@functools.cache
def keep_freed_memory() -> bool:
    """Keep freed memory for the next update instead of giving it back to the system.

    By default glibc may give an update's scratch back after each one, and the system then clears
    thousands of fresh pages for the next: a quarter of the time an update takes, or half of it
    where intervals are long. Blocks of more than 64 MB, such as a replay's, still go back at once.
    It is a setting of the whole process, made once, when the first learner is.

    Returns:
        Whether it was made; other C libraries than glibc, and processes that use an accelerator,
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
        set_to(_M_TOP_PAD, 128),  # beyond the size of a thread's heap none is ever given back
    ]
    return all(done)
