"""Distributions over discrete actions, against SciPy and against counting."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from discrete import random_mask
from references import quick_jit
from scipy.special import log_softmax

from belated.experience.choices import decode, encode, joint_codes, number_of_joint
from belated.networks import categorical as typed

categorical: Any = typed  # its functions take NumPy arrays too
ALL = [(3,), (2, 2), (3, 2, 4), (1, 5)]


def parts_of(x: Any, choices: tuple[int, ...]) -> list[Any]:
    return np.split(x, np.cumsum(choices)[:-1], axis=-1)


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("choices", ALL, ids=str)
def test_probabilities_are_those_of_each_component(choices: tuple[int, ...], masked: bool) -> None:
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(20, sum(choices)))
    allowed = np.stack([random_mask(rng, choices) for _ in logits])
    said = quick_jit(lambda x, a: categorical.log_probabilities(x, choices, a))(
        logits, allowed if masked else None
    )
    wanted = np.where(allowed > 0, logits, -np.inf) if masked else logits
    parts = [log_softmax(part, axis=-1) for part in parts_of(wanted, choices)]
    expected = np.concatenate(parts, axis=-1)
    np.testing.assert_allclose(np.exp(said), np.exp(expected), atol=1e-6)
    entropy = -(np.exp(expected) * np.maximum(expected, -1e9)).sum() / 20
    assert categorical.entropy(said).mean() == pytest.approx(entropy, rel=1e-5)
    joint = np.asarray(categorical.joint(said, choices))
    assert joint.shape == (number_of_joint(choices), 20)
    np.testing.assert_allclose(np.exp(joint).sum(axis=0), 1, rtol=1e-5)
    for row, code in zip(joint, joint_codes(choices), strict=True):
        np.testing.assert_allclose(np.exp(row), np.exp(np.asarray(said) @ code), atol=1e-6)


@pytest.mark.parametrize("choices", ALL, ids=str)
def test_the_largest_entropy_is_that_of_equal_chances(choices: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    allowed = np.stack([random_mask(rng, choices) for _ in range(20)])
    for mask in (None, allowed):
        equal = categorical.log_probabilities(np.zeros_like(allowed), choices, mask)
        largest = categorical.largest_entropy(choices, mask)
        np.testing.assert_allclose(categorical.entropy(equal), largest, atol=1e-5)


@pytest.mark.parametrize("choices", ALL, ids=str)
def test_actions_are_drawn_as_often_as_they_should(choices: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    count = 40_000
    logits = rng.normal(size=sum(choices)).astype(np.float32)
    allowed = random_mask(rng, choices)
    log_p = categorical.log_probabilities(logits, choices, allowed)
    noise = rng.normal(size=(count, sum(choices))).astype(np.float32)
    actions = np.asarray(quick_jit(lambda n: categorical.drawn(log_p, n, choices))(noise))
    assert all((part.sum(axis=1) == 1).all() for part in parts_of(actions, choices))
    expected = np.exp(log_p)
    spread = np.sqrt(expected * (1 - expected) / count)
    assert (np.abs(actions.mean(axis=0) - expected) <= 5 * spread).all()
    assert (actions <= allowed).all()
    # Which joint action it was, out of all of them:
    joint = np.asarray(categorical.joint_one_hot(actions, choices))
    np.testing.assert_array_equal(joint @ joint_codes(choices), actions)


def test_extreme_noise_is_harmless() -> None:
    noise = np.array([[-12.0, 12.0], [12.0, -12.0], [0, 0]], np.float32)
    drawn = categorical.drawn(np.log([[0.5, 0.5]]), noise, (2,))
    np.testing.assert_array_equal(drawn[:2], [[0, 1], [1, 0]])


@pytest.mark.parametrize("choices", ALL, ids=str)
def test_vectors_and_numbers_are_the_same(choices: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    picks = np.stack([rng.integers(size, size=30) for size in choices], axis=-1)
    np.testing.assert_array_equal(decode(encode(picks, choices), choices), picks)
    everything = decode(joint_codes(choices), choices).tolist()
    assert everything == sorted(everything)
    assert len({tuple(each) for each in everything}) == np.prod(choices)


def test_too_many_joint_actions_are_refused() -> None:
    assert number_of_joint((2,) * 10) == 1_024
    with pytest.raises(ValueError, match=r"2,048 joint actions of 11 components.*ppo"):
        number_of_joint((2,) * 11)
