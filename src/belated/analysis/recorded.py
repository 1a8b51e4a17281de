"""What recorded intervals tell of a reward that is late by itself.

There is no reward function to evaluate on other steps, only intervals and what they were paid. How
well does a sum of per-step terms explain that, and how much better do terms of two steps?
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import gymnasium as gym
import numpy as np
import numpy.typing as npt

from belated.analysis.random_play import RecordedInterval, record_intervals
from belated.envs.intervals import AnyEnv
from belated.envs.rules import refuse, unfit
from belated.ranges import non_negative_int, positive_int

Floats = npt.NDArray[np.float64]

_STREAM = 0x4EC0
"""Keeps the draws apart from the environment's own, which are derived from the same seed."""
_FEWEST = 50
"""How many intervals a fit needs."""
_WAVES = 100
"""How many random cosines stand for an arbitrary function of a step."""
_PENALTIES = (1e-5, 1e-3, 1e-1, 1e1, 1e3)
_FOLDS = 5
_WORTH_TELLING = 0.02
"""A fit is better than a simpler one if it explains this share of the variance more."""
_CLOSE = 0.9


@dataclass(frozen=True)
class Gain:
    """What a richer fit explains beyond a simpler one.

    Attributes:
        share: of the variance of intervals that were left out; negative if it explains less.
        error: the standard error of that.
    """

    share: float
    error: float

    @property
    def is_real(self) -> bool:
        """Whether it is large enough to tell, and not by chance."""
        return self.share > max(_WORTH_TELLING, 2 * self.error)


@dataclass(frozen=True)
class RecordedReport:
    """What `measure_recorded` found. Shares are of the variance of intervals that were left out.

    Attributes:
        explained: the share that a sum of per-step terms b(s, a) explains.
        place: what terms explain beyond it that also depend on the place in the interval, so that
            the order of steps matters.
        pairs: what terms of two steps explain beyond both, so that what a step earns depends on
            the others.
        spread: the standard deviation of the rewards.
        steps: how many steps were played with random actions.
        intervals: how many intervals with a revealed reward these make.
        longest: how many steps a reward depends on at most.
    """

    explained: float
    place: Gain
    pairs: Gain
    spread: float
    steps: int
    intervals: int
    longest: int

    @property
    def verdict(self) -> str:
        """The report in a few words."""
        if self.longest == 1:
            return "trivially past-invariant: intervals of one step without overlap have no history"
        if self.spread == 0:
            return "undecided: all rewards were the same"
        if self.pairs.is_real:
            return "not a sum of per-step terms: what a step earns depends on other steps"
        best = self.explained + max(self.place.share, 0)
        if best >= _CLOSE:
            more = ", which depend on its place in the interval" if self.place.is_real else ""
            return f"close to a sum of a term for each step{more}"
        return f"undecided: the best fit leaves {1 - max(best, 0):.0%} of the variance unexplained"

    @property
    def advice(self) -> str:
        """What to do with the verdict."""
        if self.longest == 1:
            return ADVICE["not late"]
        if self.spread == 0:
            return ADVICE["constant"]
        if self.pairs.is_real:
            return ADVICE["not a sum"]
        return ADVICE["undecided" if self.verdict.startswith("undecided") else "sum"]

    def as_dict(self) -> dict[str, Any]:
        """Return everything in a form that can be written as JSON."""
        return {"verdict": self.verdict, "advice": self.advice} | asdict(self)

    def __str__(self) -> str:
        lines = [f"recorded reward: {self.verdict}"]
        if self.longest > 1 and self.spread > 0:
            lines += [
                f"a term for each step: explains {_percent(self.explained)} of the variance",
                f"terms that also depend on the place in the interval: {_more(self.place)}",
                f"terms of two steps, wherever they are: {_more(self.pairs)}",
                f"Fitted to {self.intervals} intervals of {self.steps} random steps, and judged on "
                "intervals that were left out. What cannot be known: what steps earn that always "
                "come together, what other policies would see, and whether the rest is noise, a "
                "hidden state or a reward that such fits are too simple for.",
            ]
        return "\n".join([*lines, self.advice])


ADVICE = {
    "sum": "What to do: take crossq-hc-singleton, the default, or rrd: both give each step a term "
    "of its own and add them up, which is what this reward seems to do.",
    "not a sum": "What to do: try hc-pairwise-1 and hc-rnn, which look at more than one step at a "
    "time, beside hc-singleton (belated compare); and let observations tell what matters of the "
    "interval so far, such as the best value, because policies see only those and the phase.",
    "undecided": "What to do: let belated compare decide: hc-singleton if each step earns its own "
    "share, hc-rnn if order or combinations count, sac if the reward depends on the last step.",
    "constant": "What to do: look at the reward first. Random actions do not change it, so nothing "
    "can be learned until they do.",
    "not late": "What to do: take sac or crossq: a reward at every step is not late.",
}
"""What to do, by what was found."""


def measure_recorded(env: AnyEnv, *, intervals: int = 1_000, seed: int = 0) -> RecordedReport:
    """Measure how close the reward of an environment that is late by itself is to a sum.

    For intervals of one length a reward is strongly past-invariant, as the theory behind the
    ``hc-...`` methods wants it, exactly if it is a sum of terms, each of one step and its place.
    Such a sum is fitted to intervals of random actions, and beside it a simpler and a richer one,
    by ridge regression on random features. All are judged on intervals left out.

    It is no proof in either direction: see the report.

    Args:
        env: an environment as for training. It is played, then reset.
        intervals: how many intervals to record; fewer if 50,000 steps do not hold as many.
        seed: seeds the environment, the actions and the features.

    Raises:
        ValueError: if an agent cannot learn in it, or too few rewards are revealed.

    Example:
        >>> import gymnasium as gym
        >>> report = measure_recorded(gym.make("belated/TabularXOR-v0"), intervals=200)
        >>> report.pairs.share > 0.5 > report.explained
        True
    """
    intervals = positive_int(intervals, "The number of intervals")
    seed = non_negative_int(seed, "The seed")
    if not isinstance(env, gym.Env):
        raise TypeError(f"Expected one gymnasium.Env, got {type(env).__name__}.")
    refuse(unfit(env))
    recorded, steps = record_intervals(env, intervals, seed)
    rewards = np.array([each.reward for each in recorded])
    longest = max((len(each.steps) for each in recorded), default=0)
    known = {"steps": steps, "intervals": len(recorded), "longest": longest}
    if len(recorded) and (longest == 1 or np.ptp(rewards) == 0):
        nothing = Gain(0.0, 0.0)
        return RecordedReport(0.0, nothing, nothing, float(rewards.std()), **known)
    if len(recorded) < _FEWEST:
        raise ValueError(
            f"Only {len(recorded)} rewards were revealed in {steps} steps; fits need {_FEWEST}. "
            "Record more intervals (--samples)."
        )
    errors = _errors(recorded, rewards, np.random.default_rng([_STREAM, seed]))
    best = min(errors["sum"], errors["place"], key=np.mean)
    return RecordedReport(
        explained=1 - float(errors["sum"].mean()),
        place=_gain(errors["sum"], errors["place"]),
        pairs=_gain(best, errors["pairs"]),
        spread=float(rewards.std()),
        **known,
    )


def _errors(
    recorded: list[RecordedInterval], rewards: Floats, generator: np.random.Generator
) -> dict[str, Floats]:
    """The squared error of each fit for each interval, over the variance of the rewards."""
    lengths = [len(each.steps) for each in recorded]
    starts = np.concatenate([[0], np.cumsum(lengths)[:-1]])
    steps = _standardised(np.concatenate([each.steps for each in recorded]))
    # A sum of terms f(x_j) is linear in the sums of features of x_j. The place is x's last number.
    anywhere = _similarity(np.add.reduceat(_features(steps[:, :-1], generator), starts))
    placed = anywhere + _similarity(np.add.reduceat(_features(steps, generator), starts))
    # Products of two such sums are sums over all pairs of steps; their similarity is the square.
    fits = {"sum": anywhere, "place": placed, "pairs": placed + placed**2}
    target = _standardised(rewards[:, None])[:, 0]
    return {name: _left_out(similarity, target) for name, similarity in fits.items()}


def _standardised(values: npt.NDArray[Any]) -> Floats:
    deviation = values.std(axis=0)
    return np.asarray((values - values.mean(axis=0)) / np.where(deviation > 0, deviation, 1))


def _features(steps: Floats, generator: np.random.Generator) -> Floats:
    """Numbers (steps, features) whose linear combinations are smooth functions of a step."""
    some = steps[generator.integers(len(steps), size=(2, 500))]
    typical = np.median(np.sqrt(np.square(some[0] - some[1]).sum(axis=1)))
    directions = generator.standard_normal((steps.shape[1], _WAVES)) / max(typical, 1e-6)
    waves = np.cos(steps @ directions + generator.uniform(0, 2 * math.pi, _WAVES))
    return np.column_stack([np.ones(len(steps)), steps, waves])


def _similarity(sums: Floats) -> Floats:
    """How alike intervals are: the products of their standardised sums of features."""
    sums = _standardised(sums)
    found: Floats = sums @ sums.T / sums.shape[1]
    return found


def _left_out(similarity: Floats, target: Floats) -> Floats:
    """The squared error for each interval of a fit to others, with the best of some penalties.

    Folds are stretches of time: neighbours may share steps, or at least an episode. With
    A = (K + λI)⁻¹ the errors of a fold that was left out are A_out⁻¹ (A y)_out, so one
    decomposition of K is enough for all of them.
    """
    count = len(target)
    fold = np.arange(count) * _FOLDS // count
    errors = np.empty((len(_PENALTIES), count))
    values, vectors = np.linalg.eigh(similarity + 1)  # (+ 1: a constant may be added)
    for row, penalty in zip(errors, _PENALTIES, strict=True):
        inverse = (vectors / (values + penalty)) @ vectors.T
        solved = inverse @ target
        for number in range(_FOLDS):
            out = np.flatnonzero(fold == number)
            row[out] = np.square(np.linalg.solve(inverse[np.ix_(out, out)], solved[out]))
    best: Floats = errors[errors.mean(axis=1).argmin()]
    return best


def _gain(simple: Floats, rich: Floats) -> Gain:
    difference = simple - rich
    return Gain(float(difference.mean()), float(difference.std() / math.sqrt(len(difference))))


def _percent(share: float) -> str:
    return f"{max(share, 0.0):.1%}"


def _more(gain: Gain) -> str:
    found = f"{gain.share:+.1%} (± {2 * gain.error:.1%})".replace("-", "−")
    return f"{found}, {'so they count' if gain.is_real else 'so they hardly count'}"
