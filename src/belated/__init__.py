"""Off-policy reinforcement learning for rewards that arrive late."""

from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

__version__ = version("belated")

from belated.envs import (
    TASKS,
    DelayReward,
    IntervalInfo,
    IntervalPhase,
    IntervalSpec,
    MarkIntervals,
    PhaseTracker,
    check_delayed_env,
    delay,
    make,
    mark,
    register_tasks,
)
from belated.parts import register

if TYPE_CHECKING:
    from belated.analysis.invariance import measure_invariance
    from belated.analysis.recorded import measure_recorded
    from belated.methods import METHODS, Method
    from belated.training.agent import Agent
    from belated.training.callbacks import Callback, Checkpoint, Evaluate, KeepBest, StopWhen
    from belated.training.checkpoint import CheckpointError
    from belated.training.learner import LearningError

__all__ = [
    "METHODS",
    "TASKS",
    "Agent",
    "Callback",
    "Checkpoint",
    "CheckpointError",
    "DelayReward",
    "Evaluate",
    "IntervalInfo",
    "IntervalPhase",
    "IntervalSpec",
    "KeepBest",
    "LearningError",
    "MarkIntervals",
    "Method",
    "PhaseTracker",
    "StopWhen",
    "check_delayed_env",
    "delay",
    "make",
    "mark",
    "measure_invariance",
    "measure_recorded",
    "register",
]

# What needs JAX, which takes a second or two to import, is imported when it is first asked for: an
# environment in a process of its own does without.
_PACKAGES = ("analysis", "backbones", "credit", "critics", "experience", "experiments", "methods",
             "networks", "tabular", "training")  # fmt: skip
_IMPORTED_LATER = {
    "measure_invariance": "analysis.invariance",
    "measure_recorded": "analysis.recorded",
    "METHODS": "methods",
    "Method": "methods",
    "Agent": "training.agent",
    "Callback": "training.callbacks",
    "Checkpoint": "training.callbacks",
    "Evaluate": "training.callbacks",
    "KeepBest": "training.callbacks",
    "StopWhen": "training.callbacks",
    "CheckpointError": "training.checkpoint",
    "LearningError": "training.learner",
}


if not TYPE_CHECKING:  # so that type checkers still find misspelt names

    def __getattr__(name: str) -> Any:
        if name in _PACKAGES:
            return import_module(f"belated.{name}")
        if name not in _IMPORTED_LATER:
            raise AttributeError(f"module 'belated' has no attribute {name!r}")
        value = getattr(import_module(f"belated.{_IMPORTED_LATER[name]}"), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_PACKAGES})


register_tasks()
