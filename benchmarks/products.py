"""The matrix products of an update: how many operations, and how long they take by themselves.

What an update takes beyond its products is the price of everything else: activation functions,
Adam, random numbers, and data that are not in the cache. What the products take beyond the peak is
the price of their shapes.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.extend
import jax.numpy as jnp
import numpy as np
from jax.interpreters.partial_eval import dce_jaxpr

AT_ONCE = 8  # products in one call, so that calling costs little


class Product(NamedTuple):
    """A product of two matrices, summed up in float32."""

    rows: int
    inner: int
    columns: int
    precision: str = "float32"  # of the factors

    @property
    def operations(self) -> int:
        """A multiplication and an addition for each pair of numbers that meet."""
        return 2 * self.rows * self.inner * self.columns

    def milliseconds(self) -> float:
        """The quickest time of one, with operands in the cache and none of them transposed."""
        rng = np.random.default_rng(0)
        shapes = ((self.rows, self.inner), (self.inner, self.columns))
        pairs = [
            tuple(jnp.asarray(rng.normal(size=shape), self.precision) for shape in shapes)
            for _ in range(AT_ONCE)
        ]
        one = partial(jnp.matmul, preferred_element_type=jnp.float32)
        multiply = jax.jit(lambda pairs: [one(a, b) for a, b in pairs])
        times = []
        for _ in range(50):
            start = time.perf_counter()
            multiply(pairs)[-1].block_until_ready()
            times.append(time.perf_counter() - start)
        return 1e3 * min(times) / AT_ONCE


def products_of(program: Any, times: int = 1) -> Counter[Product]:
    """Count the products of a traced program whose results are used.

    A loop of fixed length counts as often as it runs; one that stops early counts once.
    """
    found: Counter[Product] = Counter()
    program, _ = dce_jaxpr(program, [True] * len(program.outvars))
    for equation in program.eqns:
        if equation.primitive.name == "dot_general":
            found[_product(equation)] += times
        for inner in jax.extend.core.jaxprs_in_params(equation.params):
            found += products_of(inner, times * equation.params.get("length", 1))
    return found


def _product(equation: Any) -> Product:
    (contracted, _), _ = equation.params["dimension_numbers"]
    left, right = (variable.aval for variable in equation.invars)
    inner = math.prod(left.shape[axis] for axis in contracted)
    return Product(left.size // inner, inner, right.size // inner, left.dtype.name)
