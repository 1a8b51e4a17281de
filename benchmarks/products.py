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


def products_of(update: Any, *arguments: Any) -> Counter[Product]:
    """Count the products of a jitted call that are used, those in loops as often as they run."""
    program = update.trace(*arguments).jaxpr
    used, _ = dce_jaxpr(program.jaxpr, [True] * len(program.jaxpr.outvars), instantiate=True)
    bodies: list[Any] = []  # of the loops that run as often as the data say
    turns = jax.jit(partial(_turns, used, bodies))(program.consts, *jax.tree.leaves(arguments))
    found = _products_in(used)
    for body, times in zip(bodies, turns, strict=True):
        found += _products_in(body, int(times), nested=True)
    return found


FLAT = ("jit", "pjit", "custom_vjp_call", "custom_jvp_call")  # run their inner program once


def _products_in(program: Any, times: int = 1, nested: bool = False) -> Counter[Product]:
    """The products of a traced program, apart from those in its `while` loops."""
    found: Counter[Product] = Counter()
    program, _ = dce_jaxpr(program, [True] * len(program.outvars))
    for equation in program.eqns:
        name = equation.primitive.name
        if name == "dot_general":
            found[_product(equation)] += times
        if name == "while":
            if nested:
                raise ValueError("cannot count the turns of a loop inside a loop or a condition")
            continue
        length = equation.params.get("length", 1)
        for inner in jax.extend.core.jaxprs_in_params(equation.params):
            found += _products_in(inner, times * length, nested or name not in FLAT)
    return found


def _turns(program: Any, bodies: list[Any], consts: Any, *arguments: Any) -> list[jax.Array]:
    """Run a traced program, gather the bodies of its `while` loops and count their turns."""
    turns: list[jax.Array] = []

    def run(program: Any, consts: Any, *arguments: Any) -> list[Any]:
        values = dict(zip(program.constvars, consts, strict=True))
        values |= dict(zip(program.invars, arguments, strict=True))
        for equation in program.eqns:
            inputs = [x.val if hasattr(x, "val") else values[x] for x in equation.invars]
            name, parameters = equation.primitive.name, equation.params
            inner = parameters.get("jaxpr", parameters.get("call_jaxpr"))
            if name == "while":
                outputs, count = _counted_loop(parameters, inputs)
                bodies.append(parameters["body_jaxpr"].jaxpr)
                turns.append(count)
            elif name in FLAT:
                outputs = run(inner.jaxpr, inner.consts, *inputs)
            else:
                outputs = equation.primitive.bind(*inputs, **parameters)
                outputs = outputs if equation.primitive.multiple_results else [outputs]
            values |= dict(zip(equation.outvars, outputs, strict=True))
        return [x.val if hasattr(x, "val") else values[x] for x in program.outvars]

    run(program, consts, *arguments)
    return turns


def _counted_loop(parameters: Any, inputs: list[Any]) -> tuple[list[Any], jax.Array]:
    """A `while` loop, and how often it ran."""
    first, second = parameters["cond_nconsts"], parameters["body_nconsts"]
    for_test, for_body = inputs[:first], inputs[first : first + second]
    test, body = (
        jax.extend.core.jaxpr_as_fun(parameters[name]) for name in ("cond_jaxpr", "body_jaxpr")
    )
    *outputs, count = jax.lax.while_loop(
        lambda carry: test(*for_test, *carry[:-1])[0],
        lambda carry: [*body(*for_body, *carry[:-1]), carry[-1] + 1],
        [*inputs[first + second :], jnp.int32(0)],
    )
    return outputs, count


def _product(equation: Any) -> Product:
    (contracted, _), _ = equation.params["dimension_numbers"]
    left, right = (variable.aval for variable in equation.invars)
    inner = math.prod(left.shape[axis] for axis in contracted)
    return Product(left.size // inner, inner, right.size // inner, left.dtype.name)
