from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from belated.envs.lengths import Choice, Fixed, IntervalLength, Uniform, parse_length

lengths = st.integers(1, 200)


@st.composite
def choices(draw: st.DrawFn) -> Choice:
    support = draw(st.lists(lengths, min_size=1, max_size=6, unique=True))
    weights = draw(st.lists(st.integers(1, 50), min_size=len(support), max_size=len(support)))
    return Choice(dict(zip(support, np.array(weights) / sum(weights), strict=True)))


distributions: st.SearchStrategy[IntervalLength] = st.one_of(
    lengths.map(Fixed),
    st.tuples(lengths, lengths).map(lambda pair: Uniform(min(pair), max(pair))),
    choices(),
)


@given(distributions)
def test_text_is_read_back_as_the_same_distribution(distribution: IntervalLength) -> None:
    assert parse_length(str(distribution)) == distribution


@given(distributions, st.integers(0, 2**32))
def test_pmf_is_a_distribution_and_covers_every_sample(
    distribution: IntervalLength, seed: int
) -> None:
    pmf = distribution.pmf
    assert math.isclose(math.fsum(pmf.values()), 1)
    assert distribution.max_length == max(pmf)
    assert math.isclose(distribution.mean, math.fsum(n * p for n, p in pmf.items()))
    generator = np.random.default_rng(seed)
    assert all(distribution.sample(generator) in pmf for _ in range(20))


@pytest.mark.parametrize("distribution", [Uniform(3, 6), Choice({2: 0.1, 5: 0.6, 9: 0.3})])
def test_samples_follow_the_pmf(distribution: IntervalLength) -> None:
    generator = np.random.default_rng(0)
    count = 20_000
    samples = [distribution.sample(generator) for _ in range(count)]
    for length, probability in distribution.pmf.items():
        error = abs(samples.count(length) / count - probability)
        assert error < 5 * math.sqrt(probability * (1 - probability) / count)


def test_ends_of_a_uniform_range_are_included() -> None:
    assert Uniform(15, 20).pmf == dict.fromkeys([15, 16, 17, 18, 19, 20], 1 / 6)


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (20, Fixed(20)),
        (np.int64(20), Fixed(20)),
        ("20", Fixed(20)),
        ("15:20", Uniform(15, 20)),
        ((15, 20), Uniform(15, 20)),
        ([15, 20], Uniform(15, 20)),
        ("5=0.2,10=0.8", Choice({5: 0.2, 10: 0.8})),
        ({10: 0.8, 5: 0.2}, Choice({5: 0.2, 10: 0.8})),
        (Fixed(3), Fixed(3)),
    ],
)
def test_everything_a_person_would_write_is_read(spec: Any, expected: IntervalLength) -> None:
    assert parse_length(spec) == expected


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        (0, "at least 1"),
        (-3, "at least 1"),
        (True, "whole number"),
        (2.5, "whole number"),
        (None, "whole number"),
        ("0", "at least 1"),
        ("0:5", "at least 1"),
        ("20:15", "15:20"),
        ("twenty", "Write 20"),
        ("5:10:15", "Write 20"),
        ("5=0.2,5=0.8", "twice"),
        ("5=0.2,10", "Write 20"),
        ((1, 2, 3), "shortest, longest"),
        ({}, "at least one length"),
        ({5: 0.2, 10: 0.7}, "sum to 0.9"),
        ({5: -0.2, 10: 1.2}, r"in \(0, 1\]"),
        ({5: float("nan")}, r"in \(0, 1\]"),
        ({0: 1.0}, "at least 1"),
    ],
)
def test_bad_lengths_are_refused(spec: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        parse_length(spec)
