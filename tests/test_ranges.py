"""Every hyperparameter of every part is checked on construction, by name, value and range."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import pytest

from belated import Agent
from belated.methods import METHODS, RRD, SAC, TD3, Method, find_method
from belated.parts import override, to_json
from belated.ranges import fraction, layers, optional, positive


def settings_of(part: Any) -> list[str]:
    """The names of all numbers, words and layers of a method."""
    found = []
    for f in dataclasses.fields(part):
        value = getattr(part, f.name)
        found += settings_of(value) if dataclasses.is_dataclass(value) else [f.name]
    return found


NAMES = ["hc-pairwise-1", "hc-rnn", "td3-q-rnn", "ircr", "rrd", "rudder", "lirpg"]


@pytest.mark.parametrize("name", NAMES)
def test_no_setting_takes_what_is_no_value(name: str) -> None:
    for setting in settings_of(METHODS[name]):
        for value in (math.nan, math.inf, "many", object()):
            with pytest.raises(ValueError, match=f"{setting} must "):
                override(METHODS[name], {setting: value})


@pytest.mark.parametrize(
    ("setting", "value", "said"),
    [
        ("gamma", 1.5, "gamma must be a number from 0 to 1, got 1.5"),
        ("gamma", -0.1, "from 0 to 1"),
        ("learning_rate", -1, "learning_rate must be a number of at least 0, got -1"),
        ("tau", 2, "tau must be a number from 0 to 1"),
        ("regularizer", -1, "regularizer must be a number of at least 0"),
        ("hidden", (), r"hidden must list the sizes of hidden layers.*got \(\)"),
        ("hidden", 64, r"for example \(256, 256\), got 64"),
        ("hidden", (8, 0), "Every layer of hidden must be at least 1, got 0"),
        ("num_critics", 0, "num_critics must be at least 1, got 0"),
        ("num_critics", True, "num_critics must be a whole number, got True"),
        ("initial_temperature", -1, "initial_temperature must be a number above 0"),
        ("smooth_l1", 0.5, "smooth_l1 must be True or False"),
        ("precision", "half", "precision must be one of float32, bfloat16, got 'half'"),
        ("batch_size", 1.5, "batch_size must be a whole number, got 1.5"),
    ],
)
def test_values_out_of_range_are_refused(setting: str, value: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        override(find_method("hc-singleton"), {setting: value})


def test_other_libraries_word_for_the_default_entropy_is_understood() -> None:
    assert SAC(target_entropy="auto").target_entropy is None  # type: ignore[arg-type]
    assert SAC(target_entropy=-3).target_entropy == -3.0


def test_numpys_numbers_become_plain_ones() -> None:
    backbone = TD3(gamma=np.float32(0.5), num_critics=np.int64(3), hidden=[8, np.int32(4)])  # type: ignore[arg-type]
    assert to_json(Method(backbone))["backbone"]["gamma"] == 0.5
    assert (type(backbone.num_critics), backbone.hidden) == (int, (8, 4))
    assert RRD(unbiased=np.bool_(False)).unbiased is False  # type: ignore[arg-type]


@pytest.mark.parametrize("value", [1e5, np.float32(1e5), np.int64(100_000), 100_000])
def test_whole_numbers_may_be_written_as_floats(value: Any) -> None:
    size = override(find_method("sac"), {"replay_size": value}).training.replay_size  # type: ignore[attr-defined]
    assert (type(size), size) == (int, 100_000)


def test_a_hyperparameters_name_is_guessed() -> None:
    with pytest.raises(ValueError, match=r"Did you mean learning_rate\?"):
        override(find_method("sac"), {"lerning_rate": 1})


def test_checks_return_plain_values() -> None:
    assert fraction(1, "x") == 1.0
    assert layers([3], "x") == (3,)
    assert optional(positive)(None, "x") is None
    with pytest.raises(ValueError, match=r"x must be a number above 0, got 'auto'"):
        optional(positive)("auto", "x")


def test_an_agent_refuses_before_anything_is_made() -> None:
    with pytest.raises(ValueError, match="gamma must be"):
        Agent("sac", None, gamma=2.0)  # type: ignore[arg-type]
