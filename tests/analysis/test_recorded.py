"""What recorded intervals tell of rewards that are known here."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest
from late_envs import LENGTH, LabEnv, MaskedLabEnv

import belated
from belated.analysis.random_play import record_intervals
from belated.analysis.recorded import RecordedReport, _left_out


def measured(kind: str, intervals: int = 200) -> RecordedReport:
    return belated.measure_recorded(belated.mark(LabEnv(kind), period=LENGTH), intervals=intervals)


def test_a_sum_is_recognised() -> None:
    report = measured("sum")
    assert report.verdict == "close to a sum of a term for each step"
    assert report.explained > 0.99
    assert not report.place.is_real
    assert not report.pairs.is_real
    assert "take crossq-hc-singleton" in report.advice
    assert (report.intervals, report.steps) == (200, 200 * LENGTH)


def test_a_sum_whose_terms_depend_on_the_place_is_recognised() -> None:
    report = measured("place")
    assert report.verdict.endswith("which depend on its place in the interval")
    assert report.explained < 0.1 < 0.9 < report.place.share
    assert not report.pairs.is_real


def test_steps_that_depend_on_one_another_are_recognised() -> None:
    report = measured("neighbours", 400)
    assert report.verdict.startswith("not a sum of per-step terms")
    assert report.pairs.share > 4 * report.pairs.error > 0
    assert "hc-rnn" in report.advice


def test_noise_is_not_taken_for_a_history() -> None:
    report = measured("noise")
    assert report.verdict.startswith("undecided: the best fit leaves 100%")
    assert not report.place.is_real
    assert not report.pairs.is_real
    assert "belated compare" in report.advice


def test_a_constant_reward_decides_nothing() -> None:
    report = measured("same", 20)
    assert report.verdict == "undecided: all rewards were the same"
    assert str(report).splitlines()[-1] == report.advice
    assert "look at the reward first" in report.advice


def test_without_a_history_there_is_nothing_to_depend_on() -> None:
    report = belated.measure_recorded(belated.delay(LabEnv(), interval=1), intervals=60)
    assert report.verdict.startswith("trivially past-invariant")
    assert "is not late" in report.advice


def test_the_report_says_what_cannot_be_known() -> None:
    text = str(measured("sum", 60))
    assert "What cannot be known" in text
    assert "60 intervals of 300 random steps" in text


def test_the_errors_are_those_of_fits_that_never_saw_the_interval() -> None:
    """The formula is a shortcut for leaving out each fold and fitting to the rest."""
    rng = np.random.default_rng(0)
    sums, target = rng.normal(size=(50, 4)), rng.normal(size=50)
    similarity = sums @ sums.T
    by_hand = []
    for penalty in (1e-5, 1e-3, 1e-1, 1e1, 1e3):
        row = []
        for out in np.split(np.arange(50), 5):
            kept = np.setdiff1d(np.arange(50), out)
            known = (similarity + 1)[np.ix_(kept, kept)] + penalty * np.eye(len(kept))
            weights = np.linalg.solve(known, target[kept])
            row.append(target[out] - (similarity + 1)[np.ix_(out, kept)] @ weights)
        by_hand.append(np.square(np.concatenate(row)))
    best = min(by_hand, key=np.mean)
    np.testing.assert_allclose(_left_out(similarity, target), best, rtol=1e-6)


def test_windows_hold_the_overlap_and_the_places() -> None:
    env = belated.mark(MaskedLabEnv(), period=LENGTH, overlap=2, action_masks=True)
    recorded, steps = record_intervals(env, 8, seed=0)
    assert steps == 8 * LENGTH
    first, second = recorded[:2]
    assert [len(each.steps) for each in (first, second)] == [LENGTH, LENGTH + 2]
    np.testing.assert_allclose(first.steps[:, -1], np.arange(LENGTH) / LENGTH, rtol=1e-6)
    np.testing.assert_allclose(second.steps[:, -1], np.arange(-2, LENGTH) / LENGTH, rtol=1e-6)
    np.testing.assert_array_equal(first.steps[-2:, :-1], second.steps[:2, :-1])
    assert first.steps.shape[1] == 2 + 2 + 2 + 1  # numbers, mask, action, place


def test_what_cannot_be_measured_is_refused() -> None:
    env = belated.mark(LabEnv(), period=LENGTH)
    with pytest.raises(ValueError, match=r"Only 20 rewards were revealed.*--samples"):
        belated.measure_recorded(env, intervals=20)
    with pytest.raises(ValueError, match="does not say when its rewards are revealed"):
        belated.measure_recorded(LabEnv())
    with pytest.raises(TypeError, match=r"one gymnasium\.Env"):
        belated.measure_recorded(gym.make_vec("Lab-v0", num_envs=2))  # type: ignore[arg-type]
