from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.parametrize("package", ["matplotlib", "scipy"])
def test_commands_wait_only_for_what_they_need(package: str) -> None:
    """These two take longer to import than all the rest but JAX."""
    code = f"import sys, belated.cli; sys.exit({package!r} in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
