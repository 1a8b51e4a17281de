from __future__ import annotations

import pkgutil
import subprocess
import sys

import pytest

import belated


def test_environments_do_without_jax() -> None:
    """Each process of an AsyncVectorEnv imports them."""
    code = (
        "import sys, belated, gymnasium as gym; "
        "gym.make('belated/PointReach-v0').reset(seed=0); sys.exit('jax' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_every_public_name_is_there() -> None:
    assert not {*belated.__all__} - {*dir(belated)}
    for name in belated.__all__:
        assert getattr(belated, name) is not None
    assert {each.name for each in pkgutil.iter_modules(belated.__path__)} <= {
        *belated._PACKAGES, "cli", "envs", "kernels", "parts", "ranges", "__main__"
    }  # fmt: skip
    with pytest.raises(AttributeError, match="no attribute 'agent'"):
        belated.agent  # type: ignore[attr-defined]  # noqa: B018
