"""Environments whose rewards arrive late."""

from belated.envs.check import CheckReport, check_delayed_env
from belated.envs.delay_reward import DelayReward, delay
from belated.envs.interval_phase import IntervalPhase
from belated.envs.intervals import IntervalInfo, IntervalSpec
from belated.envs.lengths import Choice, Fixed, IntervalLength, Uniform, parse_length
from belated.envs.mark_intervals import MarkIntervals, mark
from belated.envs.phase_tracker import PhaseTracker
from belated.envs.point_reach import PointReachEnv
from belated.envs.rewards import (
    IntervalReward,
    Max,
    Square,
    SquareSum,
    Sum,
    SumSquare,
    WeightedSum,
    parse_reward,
)
from belated.envs.rules import Finding
from belated.envs.tasks import TASKS, Task, make, register_tasks

__all__ = [
    "TASKS",
    "CheckReport",
    "Choice",
    "DelayReward",
    "Finding",
    "Fixed",
    "IntervalInfo",
    "IntervalLength",
    "IntervalPhase",
    "IntervalReward",
    "IntervalSpec",
    "MarkIntervals",
    "Max",
    "PhaseTracker",
    "PointReachEnv",
    "Square",
    "SquareSum",
    "Sum",
    "SumSquare",
    "Task",
    "Uniform",
    "WeightedSum",
    "check_delayed_env",
    "delay",
    "make",
    "mark",
    "parse_length",
    "parse_reward",
    "register_tasks",
]
