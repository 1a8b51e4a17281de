"""Whether what a checkpoint asks for fits the bytes that it has, before memory is taken for it."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Iterator
from typing import Any

import jax

from belated.backbones import Backbone
from belated.experience.step import ProblemShape
from belated.training.checkpoint import CheckpointError


def require_plausible(backbone: Backbone, shape: ProblemShape, size: int) -> None:
    """Refuse a backbone whose state would not fit so many bytes, before memory is taken for it.

    Raises:
        CheckpointError: if it asks for more.
    """
    _require_plausible_networks(backbone, shape, size // 4)
    # Networks are drawn with NumPy, which takes memory; all else is only traced here.
    leaves = jax.tree.leaves(jax.eval_shape(lambda: backbone.init(0, shape)))
    wanted = sum(math.prod(leaf.shape) * 4 for leaf in leaves)
    if wanted > size:
        raise CheckpointError(f"A state of {size} bytes cannot be one of {wanted}.")


def _require_plausible_networks(backbone: Backbone, shape: ProblemShape, numbers: int) -> None:
    """Refuse layers that so many numbers cannot hold."""
    for name, value in _settings(backbone):
        widths = value if isinstance(value, tuple) else (value, value)
        if isinstance(value, tuple) or name.endswith("units"):
            products = [m * n for m, n in itertools.pairwise((1, *widths))]
        elif name in ("reach", "num_critics"):
            products = [value * shape.step_size]
        else:
            continue
        if max(products) > numbers:
            raise CheckpointError(f"A state of {numbers} numbers cannot have {name} = {value}.")
    if shape.step_size > numbers:
        raise CheckpointError(f"A state of {numbers} numbers cannot be one for {shape}.")


def _settings(part: Any) -> Iterator[tuple[str, Any]]:
    """The whole numbers, and tuples of them, among a part's settings and those of its parts."""
    for each in dataclasses.fields(part):
        value = getattr(part, each.name)
        if dataclasses.is_dataclass(value):
            yield from _settings(value)
        elif isinstance(value, int) or (
            isinstance(value, tuple) and all(isinstance(number, int) for number in value)
        ):
            yield each.name, value
