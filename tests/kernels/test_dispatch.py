"""Where a CPU computes does not change what it computes."""

from __future__ import annotations

import os
import subprocess
import sys

import jax
import pytest

from belated.kernels.dispatch import compute_in_place

SETTING = "JAX_CPU_ENABLE_ASYNC_DISPATCH"
LEARN = """
import os, resource
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
import numpy as np, belated
agent = belated.Agent("sac", belated.make("Pendulum-v1", interval=5), hidden=(64, 64), batch_size=8,
                      learning_starts=20)
agent.learn(40)
leaves = [np.asarray(leaf).tobytes() for leaf in agent.learner.leaves]
before = resource.getrusage(resource.RUSAGE_SELF).ru_nvcsw
for _ in range(200):
    agent.learner.act(np.zeros((1, 4), np.float32), np.zeros((1, 1), np.float32))
waits = resource.getrusage(resource.RUSAGE_SELF).ru_nvcsw - before
print(waits / 200, b"".join(leaves).hex())
"""


def learned(**environment: str) -> tuple[float, str]:
    """How often an action waited for another thread, and the parameters in the end."""
    env = {name: value for name, value in os.environ.items() if name != SETTING} | environment
    done = subprocess.run([sys.executable, "-c", LEARN], env=env, capture_output=True, check=True)
    waits, parameters = done.stdout.decode().split()
    return float(waits), parameters


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="cannot be kept to one core")
def test_on_one_core_the_same_is_learned_in_place() -> None:
    waits, here = learned()
    waits_by_default, there = learned(**{SETTING: "1"})
    assert waits < 0.2 * waits_by_default
    assert here == there


@pytest.mark.parametrize(
    ("cores", "said", "left_alone"), [(1, None, False), (2, None, True), (1, "1", True)]
)
def test_jax_is_left_alone_with_more_cores_or_where_the_user_says_so(
    monkeypatch: pytest.MonkeyPatch, cores: int, said: str | None, left_alone: bool
) -> None:
    changes: list[tuple[str, bool]] = []
    monkeypatch.setattr(jax.config, "update", lambda name, value: changes.append((name, value)))
    monkeypatch.delenv(SETTING, raising=False)
    if said is not None:
        monkeypatch.setenv(SETTING, said)
    assert compute_in_place(cores) is not left_alone
    assert changes == ([] if left_alone else [(SETTING.lower(), False)])
