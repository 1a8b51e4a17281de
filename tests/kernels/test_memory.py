"""The scratch of updates is kept from one to the next."""

from __future__ import annotations

import resource
import statistics

import jax
import jax.numpy as jnp
import pytest

from belated.kernels.memory import compiler_options, keep_freed_memory


def gradient_with_much_scratch(x: jax.Array) -> jax.Array:
    """Keeps five layers of 25 MB each on its way."""

    def total(x: jax.Array) -> jax.Array:
        layer = jnp.zeros((100_000, 64)) + x
        for _ in range(5):
            layer = jnp.tanh(layer @ (jnp.eye(64) + x))
        return jnp.sum(layer)

    gradient: jax.Array = jax.grad(total)(x)
    return gradient


# The tests keep what is compiled on disk, but this program cannot be written down.
@pytest.mark.filterwarnings("ignore:Error writing persistent compilation cache")
def test_much_scratch_is_kept_from_call_to_call() -> None:
    if not keep_freed_memory():
        pytest.skip("not glibc")
    call = jax.jit(gradient_with_much_scratch, compiler_options=compiler_options())

    def fresh_pages() -> int:
        """How many pages the system had to clear during a call."""
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        call(jnp.ones(64)).block_until_ready()
        return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

    scratch_pages = 100 * 2**20 / resource.getpagesize()
    if fresh_pages() < scratch_pages:
        pytest.skip("pages are huge here, so that few of them are fresh")
    for _ in range(10):  # until each of XLA's threads has its share
        fresh_pages()
    assert statistics.median(fresh_pages() for _ in range(5)) < 0.1 * scratch_pages


def test_settings_for_a_cpu_are_made_on_a_cpu_only(monkeypatch: pytest.MonkeyPatch) -> None:
    assert compiler_options()
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    assert compiler_options() is None
    assert not keep_freed_memory.__wrapped__()


def test_the_setting_of_the_whole_process_can_be_turned_off(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("BELATED_KEEP_MEMORY", "0")
    assert not keep_freed_memory.__wrapped__()
