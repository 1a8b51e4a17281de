"""Where a CPU computes: in the thread that asks for it, or in another."""

from __future__ import annotations

import os

import jax


def compute_in_place(cores: int) -> bool:
    """Let a process that has one core compute in the thread that asks for it.

    By default JAX hands a computation to a thread and goes on, so that the next step of an
    environment can run beside an update. On one core nothing runs beside anything; all that is left
    are the switches between threads, a tenth of a small step.

    Args:
        cores: how many the process may use.

    Returns:
        Whether the setting was made. It counts from JAX's first computation on, and is left alone
        if ``JAX_CPU_ENABLE_ASYNC_DISPATCH`` is set.
    """
    if cores > 1 or "JAX_CPU_ENABLE_ASYNC_DISPATCH" in os.environ:
        return False
    jax.config.update("jax_cpu_enable_async_dispatch", False)  # type: ignore[no-untyped-call]
    return True
