"""What is sampled from a replay."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

Needs = frozenset[str]
"""The optional fields of a batch that a part looks at; what nobody needs is not gathered."""

OPTIONAL: Needs = frozenset(
    {"window", "window_end", "dense_reward", "reward_bounds", "mean_reward_bounds"}
)
BatchArray = Any
"""A NumPy array on the host, a JAX array inside a jitted function, None where nobody needs it."""


class IntervalBatch(NamedTuple):
    """Sampled steps with the windows τ_{t_i−c : t_i+n_i} that they belong to.

    B is the batch size, W = c + n_max the window's width, D and A the sizes of observations (phase
    included) and actions. Windows have time first: a critic that looks at neighbouring steps then
    works on contiguous memory.
    """

    observation: BatchArray  # (B, D)
    action: BatchArray  # (B, A)
    reward: BatchArray  # (B,) R_t as experienced
    next_observation: BatchArray  # (B, D)
    terminated: BatchArray  # (B,) 1.0 where the episode terminated, so that nothing follows
    position: BatchArray  # (B,) t − t_i
    length: BatchArray  # (B,) n_i
    interval_reward: BatchArray  # (B,) r(τ_i)
    revealed: BatchArray  # (B,) 1.0 where r(τ_i) was revealed
    duration: BatchArray  # (B,) how much time the step took
    window: BatchArray = None  # (W, B, D + A) from t_i − c on; the phase counts from t_i throughout
    window_mask: BatchArray = None  # (W, B) 1.0 for steps of the window, 0.0 for padding
    window_end: BatchArray = None  # (B, D) what was observed after the window's last step
    dense_reward: BatchArray = None  # (B,) the hidden per-step reward, NaN where there is none
    reward_bounds: BatchArray = None  # (2,) the lowest and the highest r(τ_i) in the replay
    mean_reward_bounds: BatchArray = None  # (2,) the same of r(τ_i)/n_i


_TIME_FIRST = ("window", "window_mask")
_BOUNDS = ("reward_bounds", "mean_reward_bounds")


def join(parts: Sequence[IntervalBatch]) -> IntervalBatch:
    """Put batches side by side; bounds become those of all."""
    columns = zip(IntervalBatch._fields, zip(*parts, strict=True), strict=True)
    return IntervalBatch(**{name: _joined(name, arrays) for name, arrays in columns})


def _joined(name: str, arrays: tuple[BatchArray, ...]) -> BatchArray:
    if arrays[0] is None:
        return None
    if name in _BOUNDS:
        low, high = np.transpose(arrays)
        return np.array([low.min(), high.max()], np.float32)
    return np.concatenate(arrays, axis=1 if name in _TIME_FIRST else 0)


def stack(batches: Sequence[IntervalBatch]) -> IntervalBatch:
    """Put batches one after the other, along a new first axis."""
    columns = zip(*batches, strict=True)
    return IntervalBatch(*(None if column[0] is None else np.stack(column) for column in columns))
