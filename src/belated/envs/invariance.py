"""How far is an interval reward from past-invariant, on the steps that an environment gives?"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import islice
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
import numpy.typing as npt

from belated.envs.delay_reward import DelayReward
from belated.envs.intervals import AnyEnv, find_interval_spec
from belated.envs.layers import layers
from belated.envs.lengths import non_negative_int, positive_int
from belated.envs.rewards import IntervalReward, Window

_STREAM = 0x1417
"""Sets the draws apart from the environment's own, which are derived from the same seed."""
_MIN_STEPS = 5_000
"""How many steps to play; more only where that would be fewer than five intervals."""
_CANDIDATES = 50
"""Among how many random histories and continuations to look for one that fits."""
_WORST = 3
_NEGLIGIBLE = 1e-4
"""Interactions up to this share of the median difference count as none (float32 rounds)."""
_ROUNDING = 1e-9
"""Nor do those up to this share of the rewards, whatever the median difference is."""
_TIE = 0.01
"""A difference is a tie up to this share of a negligible interaction. The gap between the two
keeps a difference just above a tie and one just below from passing for a flip."""


@dataclass(frozen=True)
class Quadruple:
    """The rewards of two continuations after each of two histories.

    Attributes:
        length: n, the interval's steps; the overlap is not counted.
        split: how many of them belong to the history, after the overlap.
        first_history: the rewards of continuation 1 and 2 after history 1.
        second_history: the rewards of continuation 1 and 2 after history 2.
    """

    length: int
    split: int
    first_history: tuple[float, float]
    second_history: tuple[float, float]


@dataclass(frozen=True)
class InvarianceReport:
    """What `measure_invariance` saw.

    Attributes:
        reward: the interval reward, as text.
        quadruples: how many quadruples (two histories, two continuations) were compared.
        differing: in how many of them the two continuations' rewards differ at all.
        flips: in how many the order of the continuations depends on the history.
        reversals: in how many of those it is turned round; in the others the continuations tie
            after just one of the histories.
        interacting: in how many the continuations' difference depends on the history.
        interaction: the root mean square of Δ1 − Δ2 over that of the differences Δ1, Δ2 after
            the two histories: 0 if strongly past-invariant, √2 if one difference says nothing
            about the other, 2 if they are opposite.
        steps: how many steps were played with random actions.
        intervals: how many intervals they make.
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

    def as_dict(self) -> dict[str, Any]:
        """Return everything in a form that can be written as JSON."""
        return {"verdict": self.verdict, "flip_fraction": self.flip_fraction} | asdict(self)

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
        return "\n".join(lines)


def measure_invariance(env: AnyEnv, *, samples: int = 1_000, seed: int = 0) -> InvarianceReport:
    """Say how far the reward of a delayed environment is from past-invariant.

    A reward r is *past-invariant* if the order of any two continuations τ'1, τ'2 does not depend
    on the history: r(τ1∘τ'1) > r(τ1∘τ'2) just where r(τ2∘τ'1) > r(τ2∘τ'2). It is *strongly*
    past-invariant if even their difference does not.

    Random actions give intervals. Each sample splits one of them into a history and a continuation
    and takes a second history and a second continuation of the same lengths from anywhere in the
    episodes. The reward is evaluated on all four combinations.

    Splicing ignores whether the environment's dynamics allow the concatenation. To lessen that, of
    a number of random candidates the ones are taken that meet at observations most like the one
    at the split. So "on all samples" is no proof, and a flip may be one that no episode can show.

    Args:
        env: an environment with a `DelayReward` somewhere among its wrappers. It is played, and
            reset at the end.
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
    rows = _play(delayed, seed, generator)
    if not rows.splittable():
        return _report(reward, rows, [], np.empty((0, 2, 2)))
    splices = list(islice(_splices(rows, 10 * samples, generator), samples))
    if not splices:
        raise ValueError(
            f"{len(rows.intervals)} intervals of random actions hold no two histories and "
            "continuations of the same lengths. Use shorter intervals, or less overlap."
        )
    rewards = np.array([_evaluate(reward, rows, splice) for splice in splices])
    return _report(reward, rows, splices, rewards)


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
            f"The reward of {env.unwrapped} is late by itself: there is no reward function that "
            "could be evaluated on other steps. Only rewards that belated.delay makes can be "
            "measured."
        )
    raise ValueError(
        f"{env.unwrapped} has a reward at every step. Say how it is delayed, with "
        "belated.delay(env, interval=20, reward=...)."
    )


class _Step(NamedTuple):
    observation: npt.NDArray[Any]  # as the action, 0 where the reward does not look at it
    action: npt.NDArray[Any]
    reward: float
    features: npt.NDArray[Any]  # the observation as a vector
    interval_length: int  # on an interval's last step; 0 before


def _play(env: DelayReward, seed: int, generator: np.random.Generator) -> _Rows:
    """Play random actions; episodes and intervals are those that a learner would meet."""
    overlap, needs_steps = env.interval_spec.overlap, env.interval_reward.needs_steps
    count = max(_MIN_STEPS, 5 * (env.interval_spec.max_length + overlap))
    episodes: list[list[_Step]] = []
    # Not with the seed itself: actions would be the numbers that the environment draws.
    env.action_space.seed(int(generator.integers(2**31)))
    done = True
    for _ in range(count):
        if done:
            observation, _ = env.reset(seed=seed + len(episodes))
            episodes.append([])
        action = env.action_space.sample()
        # Copied before the step: environments may reuse their buffers.
        features = _flatten(env, observation)
        kept = [np.array(x) for x in ((observation, action) if needs_steps else (0, 0))]
        observation, _, terminated, truncated, info = env.step(action)
        interval_length = info["interval"]["length"] if info["interval"]["end"] else 0
        step = _Step(kept[0], kept[1], info["dense_reward"], features, interval_length)
        episodes[-1].append(step)
        done = terminated or truncated
    with warnings.catch_warnings():
        # The run stops in mid-episode, which wrappers may rightly warn about.
        warnings.simplefilter("ignore")
        env.reset(seed=seed)
    return _line_up(episodes, overlap)


def _flatten(env: AnyEnv, observation: Any) -> npt.NDArray[Any]:
    space = env.observation_space
    if not space.is_np_flattenable:
        return np.zeros(1)  # nothing to compare: any history and continuation fit as well
    return np.array(gym.spaces.flatten(space, observation), np.float32)


@dataclass(frozen=True)
class _Rows:
    """The steps of all episodes, one row each; c rows of padding precede each episode.

    Attributes:
        overlap: c.
        steps: what happened; zeros for padding.
        remaining: how many rows the episode has from this row on.
        padding: how many of those are padding.
        features: (rows, size), standardised observations.
        intervals: the row of each interval's first step after the overlap, and its length.
    """

    overlap: int
    steps: list[_Step]
    remaining: npt.NDArray[np.int64]
    padding: npt.NDArray[np.int64]
    features: npt.NDArray[np.float32]
    intervals: list[tuple[int, int]]

    def splittable(self) -> list[tuple[int, int, int]]:
        """Return the intervals that have a history, with the earliest split after one."""
        found = []
        for row, length in self.intervals:
            has_overlap = self.padding[row - self.overlap] < self.overlap
            earliest = 0 if has_overlap else 1
            if earliest < length:
                found.append((row, length, earliest))
        return found


def _line_up(episodes: list[list[_Step]], overlap: int) -> _Rows:
    observation, action, _, vector, _ = episodes[0][0]
    nothing, no_action, zeros = map(np.zeros_like, (observation, action, vector))
    padding = _Step(nothing, no_action, 0.0, zeros, interval_length=0)
    steps = [step for episode in episodes for step in [padding] * overlap + episode]
    sizes = np.array([overlap + len(episode) for episode in episodes])
    position = np.concatenate([np.arange(size) for size in sizes])
    features = np.stack([step.features for step in steps])
    played = features[position >= overlap]
    deviation = played.std(axis=0)
    return _Rows(
        overlap=overlap,
        steps=steps,
        remaining=np.repeat(sizes, sizes) - position,
        padding=np.maximum(overlap - position, 0),
        features=(features - played.mean(axis=0)) / np.where(deviation > 0, deviation, 1),
        intervals=[
            (row + 1 - step.interval_length, step.interval_length)
            for row, step in enumerate(steps)
            if step.interval_length
        ],
    )


class _Splice(NamedTuple):
    """Where the pieces start: histories have c + split rows, continuations length − split."""

    length: int
    split: int
    histories: tuple[int, int]
    continuations: tuple[int, int]


def _splices(rows: _Rows, tries: int, generator: np.random.Generator) -> Iterator[_Splice]:
    """Draw splices; a try yields none where there is no second history or continuation."""
    intervals = rows.splittable()
    for _ in range(tries):
        start, length, earliest = intervals[generator.integers(len(intervals))]
        split = int(generator.integers(earliest, length))
        history, joint = start - rows.overlap, start + split
        size = joint - history
        # Steps before an episode's start are no steps: histories of the same length have as many.
        fitting = rows.padding == rows.padding[history]
        others = np.flatnonzero((rows.remaining > size) & fitting)
        second_history = _closest(rows, others, (history, size), joint, generator)
        others = np.flatnonzero((rows.remaining >= length - split) & (rows.padding == 0))
        second_continuation = _closest(rows, others, (joint, length - split), joint, generator)
        if second_history is not None and second_continuation is not None:
            yield _Splice(length, split, (history, second_history), (joint, second_continuation))


def _closest(
    rows: _Rows,
    others: npt.NDArray[np.int64],
    piece: tuple[int, int],
    joint: int,
    generator: np.random.Generator,
) -> int | None:
    """Pick the one of some random other rows whose piece meets the joint at the closest state.

    Args:
        rows: all steps.
        others: the rows at which pieces of the same size start.
        piece: the first row and the size of the piece that another one is wanted for.
        joint: the row at which the first history and the first continuation meet.
        generator: draws the candidates.
    """
    start, size = piece
    others = others[abs(others - start) >= size]  # pieces that share steps are hardly two
    if not len(others):
        return None
    candidates = others[generator.integers(len(others), size=_CANDIDATES)]
    meets = candidates + (joint - start)  # a history ends at the joint, a continuation starts there
    distances = np.square(rows.features[meets] - rows.features[joint]).sum(axis=1)
    return int(candidates[distances.argmin()])


def _evaluate(reward: IntervalReward, rows: _Rows, splice: _Splice) -> list[list[float]]:
    """Return the rewards of the four combinations, as [history][continuation]."""
    return [
        [_reward_of(reward, rows, splice, history, continuation) for continuation in (0, 1)]
        for history in (0, 1)
    ]


def _reward_of(
    reward: IntervalReward, rows: _Rows, splice: _Splice, history: int, continuation: int
) -> float:
    before, after = splice.histories[history], splice.continuations[continuation]
    joint = before + rows.overlap + splice.split
    places = [*range(before, joint), *range(after, after + splice.length - splice.split)]
    steps = [rows.steps[place] for place in places]
    window = Window(rows.overlap)
    window.rewards = [step.reward for step in steps]
    window.mask = [bool(rows.padding[place] == 0) for place in places]
    if reward.needs_steps:
        window.observations = [step.observation for step in steps]
        window.actions = [step.action for step in steps]
    value = reward(window)
    if not math.isfinite(value):
        raise ValueError(
            f"The interval reward {reward} returned {value} for an interval of {splice.length} "
            "steps that was spliced together; it must be finite for every interval."
        )
    return value


def _report(
    reward: IntervalReward,
    rows: _Rows,
    splices: list[_Splice],
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
    # Flips first, then by size; a stable sort, so that the same seed tells the same ones.
    worst = np.lexsort((-interaction, ~flips))[: min(_WORST, interacting.sum())]
    return InvarianceReport(
        reward=str(reward),
        quadruples=len(splices),
        differing=int(differing.sum()),
        flips=int(flips.sum()),
        reversals=int(reversals.sum()),
        interacting=int(interacting.sum()),
        interaction=_rms(interaction) / _rms(differences) if differing.any() else 0.0,
        steps=int((rows.padding == 0).sum()),
        intervals=len(rows.intervals),
        examples=tuple(
            Quadruple(splices[i].length, splices[i].split, *map(tuple, rewards[i].tolist()))
            for i in worst
        ),
    )


def _rms(values: npt.NDArray[np.float64]) -> float:
    return math.sqrt(np.square(values).mean())
