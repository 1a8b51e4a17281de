"""Settings for every test."""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

# What XLA compiles is kept on disk: the two workers, the examples' processes and the next run on
# this machine share it. It is keyed by the program, the versions and the kind of CPU.
CACHE = Path(__file__).parent.parent / ".pytest_cache" / "xla"
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(CACHE))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES", "-1")

# A shell's job in the background ignores Ctrl-C, and so would all that the tests start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# No deadlines: time is the benchmarks' business. On a build server the examples are always the
# same ones, so that a red build means a broken change.
settings.register_profile("default", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "default")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Start with the tests that take longest, so that no worker is left alone with one."""
    items.sort(key=lambda item: item.get_closest_marker("learning") is None)


@pytest.fixture(scope="module", autouse=True)
def _compilation(request: pytest.FixtureRequest) -> Iterator[None]:
    """Compile agents' updates quickly where they run a few times only, and forget them at the end.

    They are the same programs with fewer of the compiler's passes. What a module compiled is of no
    use to the next one, and would fill the memory.
    """
    import jax
    from references import quick_options

    from belated.training import learner

    learns = any(mark.name == "learning" for mark in request.node.iter_markers())
    with pytest.MonkeyPatch.context() as patch:
        if not learns:
            patch.setattr(learner, "compiler_options", quick_options)
        yield
    learner._compiled.cache_clear()
    jax.clear_caches()  # type: ignore[no-untyped-call]
    gc.collect()
