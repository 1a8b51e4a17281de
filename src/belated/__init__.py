"""Off-policy reinforcement learning for rewards that arrive late."""

from importlib.metadata import version

__version__ = version("belated")

from belated.analysis.invariance import measure_invariance
from belated.envs import (
    TASKS,
    DelayReward,
    IntervalInfo,
    IntervalPhase,
    IntervalSpec,
    MarkIntervals,
    check_delayed_env,
    delay,
    make,
    mark,
    register_tasks,
)
from belated.methods import METHODS, Method
from belated.parts import register
from belated.training.agent import Agent
from belated.training.callbacks import Callback, Checkpoint, Evaluate, StopWhen
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
    "LearningError",
    "MarkIntervals",
    "Method",
    "StopWhen",
    "check_delayed_env",
    "delay",
    "make",
    "mark",
    "measure_invariance",
    "register",
]

register_tasks()
