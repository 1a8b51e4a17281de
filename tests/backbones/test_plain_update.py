"""One whole update against the same update with critics written as loops over single steps.

Whatever makes the critics fast (one pass for all prefixes, pairs as columns, masks) must not change
what is learned. Gradient descent takes Adam's place, whose first step is the gradient's sign: the
change of every parameter is then its gradient.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from batches import random_batch

from belated.backbones import SAC, TD3
from belated.critics import HC, Markov, Pairwise, Recurrent, Segment, Singleton
from belated.critics.markov import MarkovCritic
from belated.critics.segment import SegmentCritic
from belated.experience.batch import IntervalBatch
from belated.experience.step import ProblemShape
from belated.networks import Reader

CRITICS = [
    Markov(),
    Segment(5),
    HC(Singleton((6,)), 0.05),
    HC(Pairwise(1, (6,)), 0.5),
    HC(Pairwise(3, (6,)), 5.0),
    HC(Recurrent(5), 5.0),
]


def read(reader: Reader, steps: list[Any]) -> jax.Array:
    """Read steps one after the other and return the hidden state (units, 1)."""
    hidden = jnp.zeros((reader.gru.units, 1))
    for step in steps:
        hidden = reader.step(hidden, step[None])
    return hidden


def h(history: Any, steps: list[Any]) -> jax.Array:
    """H, straight from the paper."""
    total = jnp.zeros(())
    if not steps:
        return total
    if hasattr(history, "reader"):
        value: jax.Array = history.head(read(history.reader, steps)[:, 0])[0]
        return value
    for k, term in enumerate(history.terms):
        for first, second in zip(steps, steps[k:], strict=False):
            total += term(first if k == 0 else jnp.concatenate([first, second]))[0]
    return total


class DescentSAC(SAC):
    _optimizer = property(lambda self: optax.sgd(0.1))


class DescentTD3(TD3):
    policy_delay = 1
    _optimizer = property(lambda self: optax.sgd(0.1))


def name_of(part: Any) -> str:
    return part.__name__ if isinstance(part, type) else str(part)


class Plain(eqx.Module):
    """A critic with another one's parameters that looks at one row and one step at a time."""

    fast: Any
    shape: ProblemShape = eqx.field(static=True)

    def encode(self, batch: IntervalBatch) -> list[tuple[Any, Any]]:
        """What is known of each step's history and of the whole window."""
        return [
            (self._digest(before), self._digest(whole))
            for before, _, whole in self._histories(batch)
        ]

    def _histories(self, batch: IntervalBatch) -> Iterator[tuple[list[Any], list[Any], list[Any]]]:
        c = self.shape.overlap
        for row, (position, length) in enumerate(zip(batch.position, batch.length, strict=True)):
            steps, real = batch.window[:, row], batch.window_mask[:, row] > 0
            before, whole = (list(steps[: c + t][real[: c + t]]) for t in (position, length))
            after = list(steps[: c + position + 1][real[: c + position + 1]])
            if position == length - 1:  # the next interval's overlap, with its own phases
                last = slice(length, c + length)
                moved = steps[last].copy()
                moved[:, self.shape.observation_size - 1] -= length / self.shape.max_length
                after = list(moved[real[last]])
            yield before, after, whole

    def _digest(self, steps: list[Any]) -> Any:
        if isinstance(self.fast, MarkovCritic):
            return None
        is_segment = isinstance(self.fast, SegmentCritic)
        return read(self.fast.reader, steps) if is_segment else h(self.fast.history, steps)

    def _value(self, histories: list[Any], observation: Any, action: Any) -> jax.Array:
        rows = []
        for history, s, a in zip(histories, observation, action, strict=True):
            x = jnp.concatenate([s, a])
            if isinstance(self.fast, MarkovCritic):
                rows.append(self.fast.network(x)[0])
            elif isinstance(self.fast, SegmentCritic):
                rows.append(self.fast.head(self.fast.reader.step(history, x[None])[:, 0])[0])
            else:
                rows.append(history + self.fast.current(x)[0])
        return jnp.stack(rows)

    def value(self, encoding: Any, observation: Any, action: Any) -> jax.Array:
        return self._value([before for before, _ in encoding], observation, action)

    def next_value(self, batch: IntervalBatch, action: Any) -> jax.Array:
        histories = [self._digest(after) for _, after, _ in self._histories(batch)]
        return self._value(histories, batch.next_observation, action)

    def auxiliary_loss(self, encoding: Any, batch: IntervalBatch) -> tuple[jax.Array, Any]:
        weight = getattr(self.fast, "regularizer", 0.0)
        rows = zip(encoding, batch.interval_reward, batch.revealed, strict=True)
        errors = [(e[1] - reward) ** 2 for e, reward, revealed in rows if weight and revealed]
        return (weight * jnp.mean(jnp.stack(errors)) if errors else jnp.zeros(())), {}


@pytest.mark.parametrize(
    ("kind", "critic", "overlap"),
    [(DescentSAC, critic, 2) for critic in CRITICS]
    + [(DescentTD3, critic, 0) for critic in (CRITICS[1], CRITICS[3])],
    ids=name_of,
)
def test_an_update_is_the_plain_one(kind: Any, critic: Any, overlap: int) -> None:
    batch, shape = random_batch(4, overlap, size=5, seed=3, reveal_tails=False)
    backbone = kind(critic, hidden=(8, 8))
    state = backbone.init(2, shape)
    state = state._replace(targets=jax.tree.map(lambda leaf: 1.5 * leaf + 0.1, state.targets))
    plain = state._replace(
        critics=tuple(Plain(fast, shape) for fast in state.critics),
        targets=tuple(Plain(fast, shape) for fast in state.targets),
    )
    fast_after, fast_metrics = jax.jit(backbone.update)(state, batch)
    plain_after, plain_metrics = backbone.update(plain, batch)
    for name, value in plain_metrics.items():
        np.testing.assert_allclose(fast_metrics[name], value, rtol=1e-5, atol=1e-6, err_msg=name)
    drop_key = [s._replace(key=None) for s in (fast_after, plain_after)]
    for a, b in zip(*map(jax.tree.leaves, drop_key), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
