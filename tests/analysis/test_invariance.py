"""What is known about a reward on paper is what is measured on an environment."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from scripted_envs import RandomEnv, ScriptedEnv

import belated
from belated import DelayReward
from belated.analysis.invariance import InvarianceReport, measure_invariance
from belated.envs.rewards import WeightedSum

STRONG = "strongly past-invariant on all samples"
WEAK = "past-invariant on all samples, not strongly"
NOT = "not past-invariant"


class UniformEnv(gym.Env[Any, Any]):
    """Rewards are drawn from [low, high]; the observation is (episode, time), counted from 1."""

    def __init__(self, low: float = -1.0, high: float = 1.0, steps: int = 60) -> None:
        self.low, self.high, self.steps = low, high, steps
        self.observation_space = gym.spaces.Box(0, 1e6, (2,), np.float64)
        self.action_space = gym.spaces.Box(-1, 1, (1,), np.float64)
        self.episode = self.time = 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.episode, self.time = self.episode + 1, 1
        return np.array([self.episode, self.time]), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.time += 1
        reward = self.np_random.uniform(self.low, self.high)
        observation = np.array([self.episode, self.time])
        return observation, reward, self.time > self.steps, False, {}


class Recorder:
    """A reward function that keeps what it was given: (observations, rewards, mask)."""

    def __init__(self, function: Callable[[Any], float]) -> None:
        self.function = function
        self.windows: list[tuple[Any, Any, Any]] = []

    def __call__(self, observations: Any, actions: Any, rewards: Any, mask: Any) -> float:
        self.windows.append((observations, rewards, mask))
        return self.function(rewards)

    def quadruples(self, report: InvarianceReport) -> list[list[tuple[Any, Any, Any]]]:
        """The windows of each quadruple; before them are those of the intervals played."""
        spliced = self.windows[report.intervals :]
        assert len(spliced) == 4 * report.quadruples
        return [spliced[first : first + 4] for first in range(0, len(spliced), 4)]


def actions_disagree(observations: Any, actions: Any, rewards: Any) -> float:
    """A XOR: whether it is good to end with a positive action depends on the beginning."""
    return float((actions[0, 0] > 0) != (actions[-1, 0] > 0))


def rms(values: list[float]) -> float:
    return math.sqrt(sum(value**2 for value in values) / len(values))


def effort(observations: Any, actions: Any, rewards: Any) -> Any:
    return -np.square(actions).sum()


@pytest.mark.parametrize("overlap", [0, 3])
@pytest.mark.parametrize("weights", [None, (1, -2.5, 0.1, 3, 0, 7, 1e-3, 0.3, -1, 2)])
@pytest.mark.parametrize("make_inner", [RandomEnv, UniformEnv])
def test_sums_are_strongly_past_invariant(
    overlap: int, weights: tuple[float, ...] | None, make_inner: Callable[[], Any]
) -> None:
    reward = "sum" if weights is None else WeightedSum(weights[: 7 + overlap])
    env = belated.delay(make_inner(), interval="2:7", reward=reward, overlap=overlap)
    report = measure_invariance(env, samples=300)
    assert report.verdict == STRONG
    assert report.quadruples == 300
    assert report.differing > (150 if weights else 50)  # the sum leaves out the last c steps
    assert report.flips == report.interacting == 0
    assert report.interaction < 1e-12
    assert report.examples == ()


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [(-0.9, 0.9, STRONG), (-5, 5, WEAK), (2, 3, WEAK), (-3, -2, WEAK)],
)
def test_square_grows_with_the_mean_and_is_linear_up_to_one(
    low: float, high: float, verdict: str
) -> None:
    env = belated.delay(UniformEnv(low, high), interval="2:7", reward="square")
    report = measure_invariance(env, samples=500)
    assert report.verdict == verdict
    assert report.flips == 0
    assert (report.interaction > 0.01) == (verdict == WEAK)


def test_max_ties_continuations_after_a_good_history_but_never_reverses_them() -> None:
    report = measure_invariance(belated.delay(UniformEnv(), interval=6, reward="max"), samples=500)
    assert report.verdict == NOT
    assert report.flip_fraction > 0.1
    assert report.reversals == 0
    assert 0.1 < report.interaction < math.sqrt(2)


def test_a_xor_is_reversed_wherever_it_flips() -> None:
    env = belated.delay(UniformEnv(), interval=6, reward=actions_disagree)
    report = measure_invariance(env, samples=500)
    assert report.verdict == NOT
    assert report.flips == report.reversals > 0
    # Every difference is ±1 or 0, and half of the histories begin the other way.
    assert report.reversals / report.differing == pytest.approx(0.5, abs=0.1)
    assert report.interaction == pytest.approx(2 * math.sqrt(report.flips / report.differing))


def test_numbers_are_those_of_the_definition() -> None:
    recorder = Recorder(max)
    env = belated.delay(UniformEnv(), interval="2:7", reward=recorder)
    report = measure_invariance(env, samples=400)
    rewards = [[max(r) for _, r, _ in windows] for windows in recorder.quadruples(report)]
    flips: list[float] = []
    steady: list[float] = []
    for a, b, c, d in rewards:
        flip = (a > b) != (c > d) or (a < b) != (c < d)
        (flips if flip else steady).append(abs((a - b) - (c - d)))
    interactions = flips + steady
    differences = [x for a, b, c, d in rewards for x in (a - b, c - d)]
    assert report.flips == len(flips)
    assert report.interaction == pytest.approx(rms(interactions) / rms(differences))
    shown = [(*worst.first_history, *worst.second_history) for worst in report.examples]
    assert [abs(a - b - c + d) for a, b, c, d in shown] == sorted(flips, reverse=True)[:3]
    assert all(list(worst) in rewards for worst in shown)
    assert all(1 <= worst.split < worst.length <= 7 for worst in report.examples)


@pytest.mark.parametrize(
    ("interval", "overlap", "all_splits"),
    [
        ("2:7", 0, range(1, 7)),
        ("2:7", 4, range(-3, 7)),
        ("1", 2, range(-1, 1)),
        ("60", 5, range(1, 60)),  # each the first of its episode: the overlap is padding
    ],
)
def test_windows_are_two_histories_crossed_with_two_continuations(
    interval: str, overlap: int, all_splits: range
) -> None:
    recorder = Recorder(sum)
    env = belated.delay(UniformEnv(), interval=interval, reward=recorder, overlap=overlap)
    report = measure_invariance(env, samples=600)
    splits = set()
    for windows in recorder.quadruples(report):
        steps = [list(map(tuple, observations)) for observations, _, _ in windows]
        size = len(steps[0])
        assert {len(other) for other in steps} == {size}
        assert overlap < size <= overlap + env.get_wrapper_attr("interval_spec").max_length
        # The first of the four is a stretch of one episode: where the others leave it is the split.
        same = np.array(steps[0]) == np.array(steps[1])
        split = int(same.all(axis=1).argmin())
        splits.add(split - overlap)
        history, continuation = steps[0][:split], steps[0][split:]
        other_history, other_continuation = steps[2][:split], steps[1][split:]
        assert steps[1] == history + other_continuation
        assert steps[2] == other_history + continuation
        assert steps[3] == other_history + other_continuation
        assert not set(history) & set(other_history) - {(0, 0)}
        assert not set(continuation) & set(other_continuation)
        for piece in (history + continuation, other_history, other_continuation):
            played = [step for step in piece if step != (0, 0)]
            episode, start = played[0] if played else (0, 0)
            assert played == [(episode, start + time) for time in range(len(played))]
        for observations, _, mask in windows:
            assert (mask == observations.any(axis=1)).all()
            assert mask[overlap:].all()
            assert (np.diff(mask.astype(int)) >= 0).all()  # padding comes first
    assert splits == set(all_splits)


def entangled(observations: Any, actions: Any, rewards: Any, mask: Any) -> float:
    return float(rewards[0] * rewards[1] + rewards[2:].sum())


def test_steps_of_the_overlap_that_are_entangled_are_found() -> None:
    """After the overlap the reward separates; inside it does not."""
    env = belated.delay(UniformEnv(), interval=2, reward=entangled, overlap=2)
    report = measure_invariance(env, samples=300)
    assert report.verdict == NOT
    assert {example.split for example in report.examples} == {-1}


def test_a_reward_that_asks_for_padding_is_found() -> None:
    """At an episode's beginning another action is the better one."""

    def beginnings(observations: Any, actions: Any, rewards: Any, mask: Any) -> float:
        return float(rewards[-1] if mask[0] else -rewards[-1])

    env = belated.delay(UniformEnv(steps=8), interval=2, reward=beginnings, overlap=2)
    assert measure_invariance(env, samples=300).verdict == NOT


def test_pieces_meet_at_similar_observations() -> None:
    recorder = Recorder(sum)
    env = belated.delay(UniformEnv(), interval=20, reward=recorder)
    report = measure_invariance(env, samples=200)
    gaps = []
    for (real, _, _), (crossed, _, _), (other, _, _), _ in recorder.quadruples(report):
        split = int((real == crossed).all(axis=1).argmin())
        at_the_joint = real[split, 1]
        gaps.append((crossed[split, 1] - at_the_joint, other[split - 1, 1] + 1 - at_the_joint))
    # Times are uniform in 1 to 60: two random ones are 20 apart on average.
    assert np.abs(gaps).mean(axis=0).max() < 8


def test_rounding_to_single_precision_is_no_interaction() -> None:
    env = belated.delay(gym.make("Pendulum-v1"), interval=20, reward=effort)
    report = measure_invariance(env, samples=300)
    assert 0 < report.interaction < 1e-5
    assert report.verdict == STRONG


def test_a_large_constant_hides_nothing() -> None:
    env = belated.delay(
        UniformEnv(), interval=6, reward=lambda *steps: 1e6 + actions_disagree(*steps)
    )
    assert measure_invariance(env, samples=100).verdict == NOT


def test_intervals_that_episodes_cut_short_count_as_they_are() -> None:
    report = measure_invariance(belated.delay(RandomEnv(), interval=1000, reward="max"))
    assert report.verdict == NOT
    assert all(example.length <= 30 for example in report.examples)


def test_the_same_seed_gives_the_same_report() -> None:
    def measure(seed: int) -> InvarianceReport:
        env = belated.delay(RandomEnv(), interval="2:7", reward="max")
        return measure_invariance(env, samples=100, seed=seed)

    assert measure(3) == measure(3)
    assert measure(3) != measure(4)


@pytest.mark.parametrize(("steps", "interval", "overlap"), [(60, 1, 0), (1, 5, 0), (1, 5, 2)])
def test_without_a_history_there_is_nothing_to_depend_on(
    steps: int, interval: int, overlap: int
) -> None:
    env = belated.delay(UniformEnv(steps=steps), interval=interval, overlap=overlap)
    report = measure_invariance(env)
    assert report.verdict.startswith("trivially past-invariant: intervals of one step")
    assert report.quadruples == 0
    assert report.flip_fraction == report.interaction == 0


def test_a_constant_reward_decides_nothing() -> None:
    env = belated.delay(UniformEnv(), interval=5, reward=lambda observations, *others: 0.1)
    report = measure_invariance(env, samples=50)
    assert report.verdict.startswith("undecided")
    assert report.interaction == 0


def test_observations_need_not_be_arrays() -> None:
    env = DelayReward(gym.make("FrozenLake-v1"), interval=4)
    assert measure_invariance(env, samples=100).quadruples == 100


def test_the_report_says_what_it_rests_on() -> None:
    text = str(measure_invariance(belated.delay(UniformEnv(), interval=5), samples=50))
    assert f"sum reward: {STRONG}" in text
    assert "0.0% of 50 quadruples" in text
    assert "5000 random steps" in text
    assert "dynamics may not allow" in text


def test_the_environment_is_left_ready_for_use() -> None:
    env = belated.delay(ScriptedEnv([1.0] * 30), interval=7)
    measure_invariance(env, samples=10)
    env.reset(seed=0)  # would warn of an interval left open
    assert env.step(np.zeros(1))[-1]["interval"]["step"] == 0


@pytest.mark.parametrize(
    ("env", "said"),
    [
        (belated.mark(ScriptedEnv([1.0] * 30), period=3), "late by itself"),
        (gym.make("belated/PointReach-v0"), "late by itself"),
        (ScriptedEnv([1.0] * 30), "belated.delay"),
    ],
)
def test_an_environment_without_a_reward_function_is_refused(env: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        measure_invariance(env)


@pytest.mark.parametrize(
    ("arguments", "said"), [({"samples": 0}, "number of samples"), ({"seed": -1}, "seed")]
)
def test_numbers_out_of_range_are_refused(arguments: dict[str, int], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        measure_invariance(belated.delay(UniformEnv(), interval=5), **arguments)


def test_a_reward_that_is_not_finite_on_a_splice_is_refused() -> None:
    def nan_where_spliced(observations: Any, actions: Any, rewards: Any) -> float:
        return 1.0 if len(set(observations[:, 0])) == 1 else math.nan

    with pytest.raises(
        ValueError, match="returned nan for an interval of 5 steps that was spliced"
    ):
        measure_invariance(belated.delay(UniformEnv(), interval=5, reward=nan_where_spliced))


def test_a_history_without_a_second_one_is_refused() -> None:
    class OnceLonger(UniformEnv):
        def reset(self, **kwargs: Any) -> tuple[Any, dict[str, Any]]:
            self.steps = 1 if self.episode else 2
            return super().reset(**kwargs)

    with pytest.raises(ValueError, match="no two histories"):
        measure_invariance(belated.delay(OnceLonger(), interval=2), samples=1)


def test_a_vector_environment_is_refused() -> None:
    envs = gym.make_vec("belated/PointReach-v0", num_envs=2)
    with pytest.raises(TypeError, match="one environment of a vector environment"):
        measure_invariance(envs)  # type: ignore[arg-type]
