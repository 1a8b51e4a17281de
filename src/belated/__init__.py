"""Off-policy reinforcement learning for rewards that arrive late."""

from importlib.metadata import version

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

__version__ = version("belated")

__all__ = [
    "TASKS",
    "DelayReward",
    "IntervalInfo",
    "IntervalPhase",
    "IntervalSpec",
    "MarkIntervals",
    "check_delayed_env",
    "delay",
    "make",
    "mark",
]

register_tasks()
