"""The matrix products of an update: how many operations, and how long they take by themselves.

What an update takes beyond its products is the price of everything else: activation functions,
Adam, random numbers, and data that are not in the cache. What the products take beyond the peak is
the price of their shapes.
"""

from __future__ import annotations

import time
from collections import Counter
from typing import Any, NamedTuple

import jax
import jax.extend
import numpy as np

AT_ONCE = 8  # products in one call, so that calling costs little


class Product(NamedTuple):
    """A `jax.lax.dot_general`."""

    left: tuple[int, ...]
    right: tuple[int, ...]
    dimensions: Any

    @property
    def operations(self) -> float:
        """A multiplication and an addition for each pair of numbers that meet."""
        (contracted, _), (batch, _) = self.dimensions
        shared = np.prod([self.left[axis] for axis in (*contracted, *batch)])
        return float(2 * np.prod(self.left) * np.prod(self.right) / shared)

    def milliseconds(self) -> float:
        """The quickest time of one, with operands in the cache."""
        rng = np.random.default_rng(0)
        pairs = [
            tuple(jax.device_put(rng.normal(size=shape).astype(np.float32)) for shape in self[:2])
            for _ in range(AT_ONCE)
        ]
        multiply = jax.jit(lambda ps: [jax.lax.dot_general(a, b, self.dimensions) for a, b in ps])
        times = []
        for _ in range(50):
            start = time.perf_counter()
            multiply(pairs)[-1].block_until_ready()
            times.append(time.perf_counter() - start)
        return 1e3 * min(times) / AT_ONCE


def products_of(program: Any, times: int = 1) -> Counter[Product]:
    """Count the products of a traced program.

    A loop of fixed length counts as often as it runs; one that stops early counts once.
    """
    found: Counter[Product] = Counter()
    for equation in program.eqns:
        if equation.primitive.name == "dot_general":
            left, right = (variable.aval.shape for variable in equation.invars)
            found[Product(left, right, equation.params["dimension_numbers"])] += times
        for inner in jax.extend.core.jaxprs_in_params(equation.params):
            found += products_of(inner, times * equation.params.get("length", 1))
    return found
