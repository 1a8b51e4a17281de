"""Settings for every test."""

from __future__ import annotations

import os

from hypothesis import settings

# No deadlines: time is the benchmarks' business. On a build server the examples are always the
# same ones, so that a red build means a broken change.
settings.register_profile("default", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "default")
