"""How far is an interval reward from past-invariant, on steps played in an environment?"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from itertools import islice
from typing import Any

import gymnasium as gym
import numpy as np
import numpy.typing as npt

from belated.analysis.random_play import StepTable, play_randomly
from belated.analysis.recorded import ADVICE
from belated.analysis.splices import Splice, draw_splices, evaluate_splice
from belated.envs.delay_reward import DelayReward
from belated.envs.intervals import AnyEnv, find_interval_spec
from belated.envs.layers import layers
from belated.envs.rewards import IntervalReward
from belated.ranges import non_negative_int, positive_int

_STREAM = 0x1417
"""Keeps the draws apart from the environment's own, which are derived from the same seed."""
_WORST = 3
_NEGLIGIBLE = 1e-4
"""Interactions up to this share of the median difference count as none (float32 rounding)."""
_ROUNDING = 1e-9
"""The same for this share of the rewards, whatever the median difference is."""
_TIE = 0.01
"""A difference is a tie up to this share of a negligible interaction. The gap between the two
keeps a difference just above a tie and one just below from passing for a flip."""


@dataclass(frozen=True)
class Quadruple:
    """The rewards of two continuations after each of two histories.

    Attributes:
        length: n, the number of steps in the interval, without the overlap.
        split: how many of them belong to the history, after the overlap; negative if the history
            ends inside the overlap.
        first_history: the rewards of continuation 1 and 2 after history 1.
        second_history: the rewards of continuation 1 and 2 after history 2.
    """

    length: int
    split: int
    first_history: tuple[float, float]
    second_history: tuple[float, float]


@dataclass(frozen=True)
class InvarianceReport:
    """What `measure_invariance` found.

    Attributes:
        reward: the interval reward, as text.
        quadruples: how many quadruples (two histories, two continuations) were compared.
        differing: in how many of them the two continuations' rewards differ at all.
        flips: in how many the order of the continuations depends on the history.
        reversals: in how many of those it is reversed. In the others the continuations tie after
            just one of the histories.
        interacting: in how many the continuations' difference depends on the history.
        interaction: the root mean square of Δ1 − Δ2 over that of the differences Δ1, Δ2 after
            the two histories: 0 if strongly past-invariant, √2 if one difference says nothing
            about the other, 2 if they are opposite.
        steps: how many steps were played with random actions.
        intervals: how many intervals these make.
        examples: the worst quadruples: flips first, then those with the largest |Δ1 − Δ2|.
    """

    reward: str
    quadruples: int
    differing: int
    flips: int
    reversals: int
    interacting: int
    interaction: float
    steps: int
    intervals: int
    examples: tuple[Quadruple, ...] = ()

    @property
    def flip_fraction(self) -> float:
        """The share of quadruples whose order depends on the history."""
        return self.flips / max(self.quadruples, 1)

    @property
    def verdict(self) -> str:
        """The report in a few words."""
        if self.quadruples == 0:
            return "trivially past-invariant: intervals of one step without overlap have no history"
        if self.differing == 0:
            return "undecided: the reward was the same for all continuations"
        if self.flips:
            return "not past-invariant"
        if self.interacting:
            return "past-invariant on all samples, not strongly"
        return "strongly past-invariant on all samples"

    @property
    def advice(self) -> str:
        """What to do with the verdict."""
        if self.quadruples == 0:
            return ADVICE["not late"]
        if self.differing == 0:
            return ADVICE["constant"]
        return ADVICE["not a sum" if self.flips or self.interacting else "sum"]

    def as_dict(self) -> dict[str, Any]:
        """Return everything in a form that can be written as JSON."""
        told = {"verdict": self.verdict, "advice": self.advice}
        return told | {"flip_fraction": self.flip_fraction} | asdict(self)

    def __str__(self) -> str:
        lines = [f"{self.reward} reward: {self.verdict}"]
        if self.quadruples:
            lines += [
                f"order flips: {self.flip_fraction:.1%} of {self.quadruples} quadruples "
                f"({self.reversals} reversed, {self.flips - self.reversals} tied after one "
                f"history; the continuations differ in {self.differing})",
                f"interaction: {self.interaction:.3g} of the typical difference "
                "(0: strongly past-invariant; 1.41: the difference after one history says nothing "
                "about that after another)",
                f"Seen on {self.intervals} intervals of {self.steps} random steps. Histories and "
                "continuations are spliced at similar observations; the environment's dynamics "
                "may not allow some of the joints, and other policies may see other rewards.",
            ]
        return "\n".join([*lines, self.advice])


def measure_invariance(env: AnyEnv, *, samples: int = 1_000, seed: int = 0) -> InvarianceReport:
    """Measure how far the reward of a delayed environment is from past-invariant.

    A reward r is *past-invariant* if the order of any two continuations τ'1, τ'2 does not depend
    on the history: r(τ1∘τ'1) > r(τ1∘τ'2) exactly if r(τ2∘τ'1) > r(τ2∘τ'2). It is *strongly*
    past-invariant if not even their difference depends on it.

    Each sample splits the window of an interval of random actions, its overlap included, anywhere
    into a history and a continuation. It takes a second history and a second continuation of the
    same lengths from anywhere in the episodes, and evaluates the reward on all four combinations.

    The environment's dynamics may not allow such a combination. To make that less likely, pieces
    are chosen that meet at similar observations. Still, "on all samples" is no proof, and some
    flips may be impossible in any episode.

    Args:
        env: an environment with a `DelayReward` among its wrappers. It is played, then reset.
        samples: how many quadruples to compare.
        seed: seeds the environment, the actions and the draws.

    Raises:
        ValueError: if there is no reward function to evaluate, or too little to compare.

    Example:
        >>> import belated, gymnasium as gym
        >>> env = belated.delay(gym.make("Pendulum-v1"), interval=5, reward="max")
        >>> measure_invariance(env, samples=100).verdict
        'not past-invariant'
    """
    samples = positive_int(samples, "The number of samples")
    seed = non_negative_int(seed, "The seed")
    delayed = _find_delay(env)
    reward = delayed.interval_reward
    generator = np.random.default_rng([_STREAM, seed])
    table = play_randomly(delayed, seed, generator)
    if not table.splittable():
        return _report(reward, table, [], np.empty((0, 2, 2)))
    splices = list(islice(draw_splices(table, 10 * samples, generator), samples))
    if not splices:
        raise ValueError(
            f"{len(table.intervals)} intervals of random actions hold no two histories and "
            "continuations of the same lengths. Use shorter intervals, or less overlap."
        )
    rewards = np.array([evaluate_splice(reward, table, splice) for splice in splices])
    return _report(reward, table, splices, rewards)


def _find_delay(env: AnyEnv) -> DelayReward:
    if not isinstance(env, gym.Env):
        raise TypeError(
            f"Expected one gymnasium.Env, got {type(env).__name__}. "
            "Measure one environment of a vector environment at a time."
        )
    for layer in layers(env):
        if isinstance(layer, DelayReward):
            return layer
    if find_interval_spec(env) is not None:
        raise ValueError(
            f"The reward of {env.unwrapped} is late by itself: there is no reward function to "
            "evaluate on other steps. belated.measure_recorded(env) looks at recorded intervals."
        )
    raise ValueError(
        f"{env.unwrapped} has a reward at every step. Delay it first, with "
        "belated.delay(env, interval=20, reward=...)."
    )


def _report(
    reward: IntervalReward,
    table: StepTable,
    splices: list[Splice],
    rewards: npt.NDArray[np.float64],
) -> InvarianceReport:
    """Compare ``rewards`` of shape (quadruples, histories, continuations)."""
    differences = rewards[:, :, 0] - rewards[:, :, 1]  # Δ1 and Δ2 of each quadruple
    interaction = abs(differences[:, 0] - differences[:, 1])
    typical = np.median(abs(differences)) if splices else 0.0
    negligible = np.maximum(_NEGLIGIBLE * typical, _ROUNDING * abs(rewards).max(axis=(1, 2)))
    order = np.where(abs(differences) > _TIE * negligible[:, None], np.sign(differences), 0)
    interacting = interaction > negligible
    flips = interacting & (order[:, 0] != order[:, 1])
    reversals = interacting & (order[:, 0] * order[:, 1] < 0)
    differing = order.any(axis=1)
    # Flips first, then by size; a stable sort, so that the same seed shows the same ones.
    worst = np.lexsort((-interaction, ~flips))[: min(_WORST, interacting.sum())]
    return InvarianceReport(
        reward=str(reward),
        quadruples=len(splices),
        differing=int(differing.sum()),
        flips=int(flips.sum()),
        reversals=int(reversals.sum()),
        interacting=int(interacting.sum()),
        interaction=_rms(interaction) / _rms(differences) if differing.any() else 0.0,
        steps=int((table.padding == 0).sum()),
        intervals=len(table.intervals),
        examples=tuple(
            Quadruple(splices[i].length, splices[i].split, *map(tuple, rewards[i].tolist()))
            for i in worst
        ),
    )


def _rms(values: npt.NDArray[np.float64]) -> float:
    return math.sqrt(np.square(values).mean())
