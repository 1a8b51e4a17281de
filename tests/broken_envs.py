"""Environments that have exactly one defect each."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
from scripted_envs import ScriptedEnv

import belated


class Broken(gym.Wrapper[Any, Any, Any, Any]):
    """Spoils the results of a well-formed environment."""

    def __init__(self, spoil: Callable[[list[Any], int], Any]) -> None:
        super().__init__(belated.delay(ScriptedEnv([1.0] * 30), interval=4))
        self.spoil = spoil
        self.time = 0

    def reset(self, **kwargs: Any) -> tuple[Any, dict[str, Any]]:
        self.time = 0
        return super().reset(**kwargs)

    def step(self, action: Any) -> Any:
        result = list(super().step(action))
        self.spoil(result, self.time)
        self.time += 1
        return tuple(result)


def assign(index: int, value: Any) -> Callable[[list[Any], int], None]:
    def spoil(result: list[Any], time: int) -> None:
        if time == 5:
            result[index] = value

    return spoil


def flag(key: str, value: Any) -> Callable[[list[Any], int], None]:
    def spoil(result: list[Any], time: int) -> None:
        if time == 5:
            result[4]["interval"][key] = value

    return spoil


def no_flag(result: list[Any], time: int) -> None:
    del result[4]["interval"]


def half_a_flag(result: list[Any], time: int) -> None:
    del result[4]["interval"]["revealed"]


def never_revealed(result: list[Any], time: int) -> None:
    result[1] = 0.0
    result[4]["interval"]["revealed"] = False


def nan_observation(result: list[Any], time: int) -> None:
    result[0][1] = math.nan


def outside_the_space(result: list[Any], time: int) -> None:
    result[0][1] = 1e6


def phase(value: float) -> Callable[[list[Any], int], None]:
    def spoil(result: list[Any], time: int) -> None:
        result[0][-1] = value

    return spoil


def unreproducible(result: list[Any], time: int) -> None:
    result[0][1] = np.random.default_rng().random()


def raises(result: list[Any], time: int) -> None:
    raise RuntimeError("the simulator crashed")


DEFECTS: list[tuple[Callable[[list[Any], int], Any], str, str]] = [
    (no_flag, "no-interval-flag", r"step 1: info\[\"interval\"\] is missing"),
    (half_a_flag, "interval-flag", "lacks revealed"),
    (flag("step", 0), "interval-flag", r"step 6: .*\"step\"\] is 0; .* should be 1"),
    (flag("index", 7), "interval-flag", "should be 1"),
    (flag("length", 2), "interval-flag", "should be -1"),
    (flag("revealed", True), "interval-flag", "the interval goes on"),
    (never_revealed, "never-revealed", "None of the .* intervals"),
    (assign(1, 2.5), "early-reward", "step 6: a reward of 2.5 inside an interval"),
    (assign(1, math.inf), "not-finite", "the reward is inf"),
    (assign(1, None), "reward-type", "the reward is None"),
    (nan_observation, "not-finite", "NaN"),
    (outside_the_space, "bounds", "is not in Box"),
    (phase(1.5), "phase", r"ends with 1.5, out of the range \[0, 1\)"),
    (phase(0.9), "phase", "ends with 0.9; the phase is 0.25"),
    (unreproducible, "seed", "another observation"),
    (raises, "error", "RuntimeError: the simulator crashed"),
]
"""How to spoil an environment, the code of the finding, and what its message says."""
NOT_FATAL = ("never-revealed", "bounds", "seed")
