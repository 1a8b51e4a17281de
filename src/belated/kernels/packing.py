"""Sequences of different lengths, two to a column, so that there is little padding."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp


class PackedSequences(NamedTuple):
    """Sequences in C columns, one or two to each."""

    steps: jax.Array  # (S, C, inputs)
    mask: jax.Array  # (S, C), 0 for padding
    start: jax.Array  # (S, C), 1 where a column's second sequence starts
    rows: jax.Array  # (), how many of the S are in use; unsigned


class SequenceEnds(NamedTuple):
    """Where each of B sequences ends in its column."""

    row: jax.Array  # (B,), the number of rows before the end
    column: jax.Array  # (B,)
    empty: jax.Array  # (B,), whether the sequence has no step at all

    def of(self, states: jax.Array) -> jax.Array:
        """Pick the states at the ends from those after each number of rows, (S + 1, units, C).

        Returns:
            (units, B); 0 for empty sequences.
        """
        return jnp.where(self.empty, 0.0, states[self.row, :, self.column].T)


def pack(steps: jax.Array, mask: jax.Array) -> tuple[PackedSequences, SequenceEnds]:
    """Put the shortest sequence after the longest, the second shortest after the second, and so on.

    Args:
        steps: (W, B, inputs).
        mask: (W, B), 1 for the steps of a sequence, which are contiguous.

    Returns:
        C = ⌈B/2⌉ columns of 2W rows, and where to find the sequences' ends in them.
    """
    width, batch, inputs = steps.shape
    columns = -(-batch // 2)
    odd = (0, 2 * columns - batch)  # one more, empty sequence if B is odd
    length = jnp.pad(jnp.sum(mask, axis=0, dtype=jnp.int32), odd)
    offset = jnp.pad(jnp.argmax(mask, axis=0), odd)

    by_length = jnp.argsort(length)
    second, first = by_length[:columns], by_length[::-1][:columns]
    turn = length[first]
    row = jnp.arange(2 * width)[:, None]
    sequence = jnp.where(row < turn, first, second)
    place = jnp.where(row < turn, row, row - turn)
    real = place < length[sequence]
    source = jnp.where(real, (offset[sequence] + place) * batch + sequence, 0)
    packed = PackedSequences(
        steps=jnp.asarray(steps).reshape(-1, inputs)[source],
        mask=real,
        start=row == turn,
        rows=jnp.max(turn + length[second]).astype(jnp.uint32),
    )

    rank = jnp.argsort(by_length)[:batch]
    is_second = rank < columns
    column = jnp.where(is_second, rank, 2 * columns - 1 - rank)
    length = length[:batch]
    row_of_end = jnp.where(is_second, turn[column] + length, length)
    return packed, SequenceEnds(row_of_end, column, length == 0)
