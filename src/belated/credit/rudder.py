"""RUDDER (Arjona-Medina et al., 2019): the reward goes to where its prediction changes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax

from belated.experience.base import Metrics
from belated.experience.batch import Needs
from belated.experience.rollout import Rollout
from belated.experience.step import ProblemShape
from belated.networks import Linear, Moments, ReducedLSTM
from belated.networks.descent import Optimizer, descend
from belated.parts import register
from belated.ranges import checked, non_negative, positive, positive_int


class Predictor(eqx.Module):
    """g_t: what an interval's reward will be, judged by its steps up to t."""

    lstm: ReducedLSTM
    head: Linear
    shape: ProblemShape = eqx.field(static=True)

    def __init__(self, rng: np.random.Generator, shape: ProblemShape, units: int) -> None:
        self.lstm = ReducedLSTM(rng, input_size(shape), units)
        self.head = Linear(rng, units, 1)
        self.shape = shape

    def __call__(self, inputs: jax.Array, start: jax.Array) -> jax.Array:
        """g_t of intervals that follow each other: (T, B)."""
        return self.head(self.lstm.states(inputs, start))[..., 0]


class Intervals(NamedTuple):
    """Intervals that follow each other in B columns, as the predictor learns from them."""

    inputs: jax.Array  # (T, B, F)
    start: jax.Array  # (T, B) 1 at an interval's first step
    last: jax.Array  # (T, B) 1 at the last step of an interval that was revealed
    share: jax.Array  # (T, B) 1/n_i in an interval that was revealed, 0 elsewhere
    reward: jax.Array  # (T, B) r(τ_i), at every step of the interval


class Lessons(NamedTuple):
    """The intervals that were predicted worst, one in each of S columns."""

    inputs: jax.Array  # (n_max, S, F)
    length: jax.Array  # (S,) 0 where there is none
    reward: jax.Array  # (S,)


class RudderState(NamedTuple):
    """What has been learned."""

    predictor: Predictor
    optimizer: Any
    inputs: Moments
    rewards: Moments
    lessons: Lessons


@register
@dataclass(frozen=True)
class Rudder:
    """Predicts an interval's reward after every step; a step's reward is the prediction's change.

    The predictor g is trained on (g_last − r)² + ½·mean_t (g_t − r)², on each rollout and on
    lessons, intervals that it predicted badly. What it leaves unexplained is spread evenly, so that
    every interval keeps its reward.

    Attributes:
        lstm_units: the size of the predictor's memory.
        lstm_learning_rate: Adam's.
        weight_decay: the weight of the parameters' squares.
        max_error: the relative error from which on the prediction is of no use. Below it, rewards
            are redistributed in the proportion 1 − error/max_error and revealed in the rest.
        rollout_passes: how many gradient steps are taken on each rollout.
        lesson_passes: how many are taken on lessons after that.
        lesson_batch: how many lessons such a step looks at.
        lessons: how many lessons are kept.
    """

    needs: ClassVar[Needs] = frozenset()
    tells_credit: ClassVar[bool] = True

    lstm_units: int = 64
    lstm_learning_rate: float = 1e-3
    weight_decay: float = 1e-5
    max_error: float = 0.2
    rollout_passes: int = 4
    lesson_passes: int = 32
    lesson_batch: int = 16
    lessons: int = 64

    def __post_init__(self) -> None:
        counts = ("lstm_units", "rollout_passes", "lesson_passes", "lesson_batch", "lessons")
        checked(
            self,
            lstm_learning_rate=non_negative,
            weight_decay=non_negative,
            max_error=positive,
            **dict.fromkeys(counts, positive_int),
        )

    def init(self, rng: np.random.Generator, shape: ProblemShape) -> RudderState:
        """Make a fresh state."""
        size = input_size(shape)
        predictor = Predictor(rng, shape, self.lstm_units)
        return RudderState(
            predictor=predictor,
            optimizer=self._optimizer.init(predictor),
            inputs=Moments((size,)),
            rewards=Moments(),
            lessons=Lessons(
                inputs=jnp.zeros((shape.max_length, self.lessons, size)),
                length=jnp.zeros(self.lessons),
                reward=jnp.zeros(self.lessons),
            ),
        )

    @property
    def _optimizer(self) -> Optimizer:
        decay = optax.add_decayed_weights(self.weight_decay)
        return optax.flatten(optax.chain(decay, optax.adam(self.lstm_learning_rate)))

    def redistribute(
        self, state: RudderState, rollout: Rollout, key: jax.Array
    ) -> tuple[RudderState, jax.Array, Metrics]:
        """Learn from a rollout and return the reward of each of its steps: (T, L)."""
        intervals = intervals_of(rollout, state.predictor.shape)
        state = state._replace(
            inputs=state.inputs.update(intervals.inputs, rollout.mask),
            rewards=state.rewards.update(intervals.reward, intervals.last),
        )
        # The quality is that of predictions for intervals which the predictor has not yet seen.
        misses = jnp.abs(predictions(state, intervals) - intervals.reward)
        error = relative_error(misses, intervals)
        quality = jnp.clip(1 - error / self.max_error, 0, 1)
        state = self._train(state, intervals, misses, key)
        reward = quality * redistributed(state, intervals, rollout) + (1 - quality) * rollout.reward
        return state, reward, {"rudder_error": error, "rudder_quality": quality}

    def credit(self, state: RudderState, rollout: Rollout) -> jax.Array:
        """The redistributed reward of each step, (T, L); NaN where none was revealed."""
        intervals = intervals_of(rollout, state.predictor.shape)
        return jnp.where(intervals.share > 0, redistributed(state, intervals, rollout), jnp.nan)

    def _train(
        self, state: RudderState, intervals: Intervals, misses: jax.Array, key: jax.Array
    ) -> RudderState:
        """Take gradient steps on a rollout's intervals, then on lessons."""
        scale = state.rewards.scale
        lessons, lesson_misses = keep_worst(state, intervals, misses)
        scaled = scaled_for(state, intervals)
        # Slots without a lesson are never drawn, unless there is no lesson at all.
        chances = jnp.where(lessons.length > 0, lesson_misses / scale, -1e9)
        picks = jax.random.categorical(key, chances, shape=(self.lesson_passes, self.lesson_batch))

        def step(carry: tuple[Predictor, Any], examples: Intervals) -> tuple[Predictor, Any]:
            predictor, optimizer = carry
            gradients = jax.grad(prediction_loss)(predictor, examples)
            return descend(self._optimizer, gradients, optimizer, predictor)

        def on_lessons(carry: tuple[Predictor, Any], pick: jax.Array) -> tuple[Any, None]:
            chosen = Lessons(lessons.inputs[:, pick], lessons.length[pick], lessons.reward[pick])
            return step(carry, scaled_for(state, as_intervals(chosen))), None

        carry = (state.predictor, state.optimizer)
        carry, _ = jax.lax.scan(
            lambda carry, _: (step(carry, scaled), None), carry, length=self.rollout_passes
        )
        (predictor, optimizer), _ = jax.lax.scan(on_lessons, carry, picks)
        return state._replace(predictor=predictor, optimizer=optimizer, lessons=lessons)


def input_size(shape: ProblemShape) -> int:
    """How many numbers the predictor sees of a step."""
    return shape.observation_size + shape.state_size + shape.action_size


def intervals_of(rollout: Rollout, shape: ProblemShape) -> Intervals:
    """Bring a rollout into the form that the predictor learns from.

    It sees a step's observation, the difference to the state before in the same interval, and the
    action as the environment got it. (The difference of the phase would say nothing.)
    """
    start = jnp.pad(rollout.interval_end[:-1], ((1, 0), (0, 0)), constant_values=1.0)
    before = jnp.pad(rollout.observation[:-1], ((1, 0), (0, 0), (0, 0)))
    difference = shape.state_of((rollout.observation - before) * (1 - start[..., None]))
    action = jnp.clip(rollout.action, -1, 1)
    revealed = over_interval(rollout.revealed * rollout.interval_end, rollout)
    return Intervals(
        inputs=jnp.concatenate([rollout.observation, difference, action], axis=-1),
        start=start,
        last=rollout.interval_end * revealed,
        share=revealed * rollout.mask / jnp.maximum(over_interval(rollout.mask, rollout), 1),
        reward=over_interval(rollout.reward, rollout),
    )


def over_interval(x: jax.Array, rollout: Rollout) -> jax.Array:
    """The sum of x over each interval, at every step of it: (T, L) to (T, L)."""
    steps, lanes = rollout.mask.shape
    number = jnp.cumsum(rollout.interval_end, axis=0) - rollout.interval_end  # within its lane
    number = number.astype(jnp.int32) + steps * jnp.arange(lanes)
    sums = jax.ops.segment_sum(jnp.ravel(x), jnp.ravel(number), steps * lanes)
    return sums[number]


def as_intervals(lessons: Lessons) -> Intervals:
    """Lessons as intervals, one in each column."""
    position = jnp.arange(len(lessons.inputs))[:, None]
    real = (position < lessons.length).astype(jnp.float32)
    return Intervals(
        inputs=lessons.inputs,
        start=jnp.broadcast_to(position == 0, real.shape).astype(jnp.float32),
        last=(position == lessons.length - 1).astype(jnp.float32),
        share=real / jnp.maximum(lessons.length, 1),
        reward=jnp.broadcast_to(lessons.reward, real.shape),
    )


def scaled_for(state: RudderState, intervals: Intervals) -> Intervals:
    """Normalise the inputs and scale the rewards, as the predictor knows them."""
    return intervals._replace(
        inputs=state.inputs.normalize(intervals.inputs),
        reward=intervals.reward / state.rewards.scale,
    )


def predictions(state: RudderState, intervals: Intervals) -> jax.Array:
    """g_t in units of the reward: (T, B)."""
    inputs = state.inputs.normalize(intervals.inputs)
    return state.predictor(inputs, intervals.start) * state.rewards.scale


def prediction_loss(predictor: Predictor, intervals: Intervals) -> jax.Array:
    """Mean over intervals of (g_last − r)² + ½·mean_t (g_t − r)²."""
    errors = (predictor(intervals.inputs, intervals.start) - intervals.reward) ** 2
    weight = intervals.last + 0.5 * intervals.share
    return jnp.sum(weight * errors) / jnp.maximum(jnp.sum(intervals.last), 1)


def relative_error(misses: jax.Array, intervals: Intervals) -> jax.Array:
    """Σ_i |g_last − r(τ_i)| / Σ_i |r(τ_i)|."""
    size = jnp.sum(jnp.abs(intervals.reward) * intervals.last)
    return jnp.sum(misses * intervals.last) / jnp.maximum(size, 1e-6)


def redistributed(state: RudderState, intervals: Intervals, rollout: Rollout) -> jax.Array:
    """r'_t = g_t − g_{t−1} and an even share of what is left of the interval's reward: (T, L).

    An interval that was never revealed keeps the reward that was experienced.
    """
    value = predictions(state, intervals)
    before = jnp.pad(value[:-1], ((1, 0), (0, 0))) * (1 - intervals.start)
    change = (value - before) * rollout.mask
    left = intervals.reward - over_interval(change, rollout)
    return jnp.where(intervals.share > 0, change + left * intervals.share, rollout.reward)


def keep_worst(
    state: RudderState, intervals: Intervals, misses: jax.Array
) -> tuple[Lessons, jax.Array]:
    """Keep the intervals with the largest errors out of the lessons and a rollout's intervals.

    Returns:
        The lessons, and the error of each.
    """
    old = state.lessons
    places, slots = old.inputs.shape[:2]
    known = as_intervals(old)
    old_misses = jnp.sum(jnp.abs(predictions(state, known) - known.reward) * known.last, axis=0)
    old_misses = jnp.where(old.length > 0, old_misses, -1)

    lanes = misses.shape[1]
    candidates = jnp.ravel(jnp.where(intervals.last > 0, misses, -1))
    new_misses, chosen = jax.lax.top_k(candidates, min(slots, len(candidates)))
    end, lane = chosen // lanes, chosen % lanes
    length = jnp.where(new_misses >= 0, jnp.round(1 / intervals.share[end, lane]), 0)
    first = end - length.astype(jnp.int32) + 1
    offset = jnp.arange(places)[:, None]
    inputs = jnp.where(
        (offset < length)[..., None], intervals.inputs[first + offset, lane], 0
    )  # (n_max, slots, F)

    everything = Lessons(
        inputs=jnp.concatenate([old.inputs, inputs], axis=1),
        length=jnp.concatenate([old.length, length]),
        reward=jnp.concatenate([old.reward, intervals.reward[end, lane]]),
    )
    kept_misses, kept = jax.lax.top_k(jnp.concatenate([old_misses, new_misses]), slots)
    lessons = Lessons(everything.inputs[:, kept], everything.length[kept], everything.reward[kept])
    return lessons, kept_misses
