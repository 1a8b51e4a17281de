"""The learner: a method's state on the device, and the jitted functions that change or use it."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from belated.backbones import Backbone
from belated.experience.base import Metrics
from belated.experience.batch import IntervalBatch, stack
from belated.experience.rollout import Rollout
from belated.experience.step import Floats, ProblemShape
from belated.kernels.dispatch import compute_in_place
from belated.kernels.memory import compiler_options, keep_freed_memory
from belated.training.provenance import cores

Leaves = list[jax.Array]


class LearningError(RuntimeError):
    """Learning has gone wrong: there are parameters that are not finite."""


class Learner:
    """Holds the state of a backbone as a flat list of arrays.

    Args:
        backbone: what to train.
        shape: the problem's sizes.
        seed: seeds the parameters and every random number of the updates.
        precision: of the factors of hidden layers' products in an update.
    """

    def __init__(
        self, backbone: Backbone, shape: ProblemShape, seed: int, precision: str = "float32"
    ) -> None:
        compute_in_place(len(cores()))  # first of all: it counts from the first computation on
        keep_freed_memory()
        parts: Any = (
            backbone,
            shape,
            precision,
        )  # (they can be hashed, though no type says so)
        self._functions = _compiled(*parts)
        self.leaves: Leaves = self._functions.init(seed)

    @property
    def state(self) -> Any:
        """The backbone's state as modules."""
        return jax.tree.unflatten(self._functions.structure, self.leaves)

    def is_finite(self) -> bool:
        """Whether no parameter is NaN or infinite."""
        # (on the host: to compile this takes a second, to do it less than a millisecond)
        return all(np.isfinite(leaf).all() for leaf in self.leaves)

    @property
    def traces(self) -> int:
        """How often an update was traced for learners like this one: once for each batch shape."""
        return self._functions.traces

    def when_compiling(self, tell: Callable[[], None] | None) -> None:
        """Call a function whenever an update is about to be compiled, which takes a while."""
        self._functions.tell_compiling = tell

    def update(self, data: IntervalBatch | Rollout) -> Metrics:
        """Run one update; the metrics stay on the device."""
        metrics: Metrics
        self.leaves, metrics = self._functions.update(self.leaves, data)
        return metrics

    def update_many(self, data: list[IntervalBatch]) -> Metrics:
        """Run several updates in one go and return the means of their metrics."""
        if len(data) == 1:
            return self.update(data[0])
        metrics: Metrics
        self.leaves, metrics = self._functions.update_many(self.leaves, stack(data))
        return metrics

    def act(self, observation: Floats, noise: Floats) -> Floats:
        """Explore: actions for observations (B, D), given normal noise (B, A).

        They are in [−1, 1], except PPO's, which are clipped on the way to the environment.
        """
        return np.asarray(self._functions.act(self._actor, observation, noise))

    def mode(self, observation: Floats) -> Floats:
        """The deterministic actions in [−1, 1] for observations (B, D)."""
        return np.asarray(self._functions.mode(self._actor, observation))

    @property
    def _actor(self) -> Leaves:
        return self.leaves[: self._functions.actor_size]


class _Functions:
    """The jitted functions of a method.

    Flattening modules costs more than a small update, so the functions take and give plain lists
    of arrays, and put the modules together again only while they are traced.
    """

    def __init__(self, backbone: Any, shape: ProblemShape, precision: str) -> None:
        template = _plain(backbone.init(0, shape))
        if template._fields[0] != "actor":
            first = f"{type(template).__name__}.{template._fields[0]}"
            raise TypeError(f"The first field of a state must be the actor, not {first}.")
        structure, self.structure = (jax.tree.structure(x) for x in (template.actor, template))
        self.actor_size = len(jax.tree.leaves(template.actor))  # the actor comes first
        self.traces = 0
        self.tell_compiling: Callable[[], None] | None = None

        def init(seed: int) -> Leaves:
            return jax.tree.leaves(_plain(backbone.init(seed, shape)))

        def update(leaves: Leaves, data: Any) -> tuple[Leaves, Metrics]:
            self.traces += 1
            if self.tell_compiling is not None:
                self.tell_compiling()
            state = jax.tree.unflatten(self.structure, leaves)
            state = state._replace(key=jax.random.wrap_key_data(state.key))
            with jax.default_matmul_precision(precision):
                state, metrics = backbone.update(state, data)
            return jax.tree.leaves(_plain(state)), metrics

        def update_many(leaves: Leaves, data: Any) -> tuple[Leaves, Metrics]:
            leaves, metrics = jax.lax.scan(update, leaves, data)
            return leaves, {name: jnp.mean(values) for name, values in metrics.items()}

        def act(leaves: Leaves, observation: Any, noise: Any) -> Any:
            return backbone.act(jax.tree.unflatten(structure, leaves), observation, noise)

        def mode(leaves: Leaves, observation: Any) -> Any:
            return backbone.mode(jax.tree.unflatten(structure, leaves), observation)

        self.init: Callable[[int], Leaves] = init
        compiled = partial(jax.jit, donate_argnums=0, compiler_options=compiler_options())
        self.update = compiled(update)
        self.update_many = compiled(update_many)
        self.act = jax.jit(act)
        self.mode = jax.jit(mode)


def _plain(state: Any) -> Any:
    """The state with its key as plain words, so that every leaf is an ordinary array."""
    return jax.tree.map(jnp.asarray, state._replace(key=jax.random.key_data(state.key)))


_compiled = lru_cache(maxsize=32)(_Functions)
"""One set of functions for all learners of the same kind: what was compiled once stays so."""
