"""The learner: a method's state on the device, and the jitted functions that change or use it."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from belated.critics import ProblemShape
from belated.methods import Method
from belated.replay import IntervalBatch
from belated.rollout import Rollout
from belated.training.memory import SCRATCH_IN_PIECES, keep_freed_memory

Leaves = list[jax.Array]
Metrics = dict[str, jax.Array]
Floats = npt.NDArray[np.float32]


class Learner:
    """Holds the state of a backbone as a flat list of arrays.

    Args:
        method: what to train.
        shape: the problem's sizes.
        seed: seeds the parameters and every random number of the updates.
    """

    def __init__(self, method: Method, shape: ProblemShape, seed: int) -> None:
        keep_freed_memory()
        parts: Any = (method.backbone, method.critic, method.credit, method.hidden)
        # (they can be hashed, though their protocols do not say so)
        self._functions = _compiled(*parts, shape, method.precision)
        self.leaves: Leaves = self._functions.init(seed)

    @property
    def state(self) -> Any:
        """The backbone's state as modules."""
        return jax.tree.unflatten(self._functions.structure, self.leaves)

    @property
    def traces(self) -> int:
        """How often an update was traced for learners like this one: once for each batch shape."""
        return self._functions.traces

    def update(self, batch: IntervalBatch | Rollout) -> Metrics:
        """Run one update; the metrics stay on the device."""
        metrics: Metrics
        self.leaves, metrics = self._functions.update(self.leaves, batch)
        return metrics

    def update_many(self, batches: list[IntervalBatch]) -> Metrics:
        """Run several updates in one go and return the means of their metrics."""
        if len(batches) == 1:
            return self.update(batches[0])
        stacked = IntervalBatch(*(np.stack(column) for column in zip(*batches, strict=True)))
        metrics: Metrics
        self.leaves, metrics = self._functions.update_many(self.leaves, stacked)
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

    def __init__(
        self,
        backbone: Any,
        critic: Any,
        credit: Any,
        hidden: tuple[int, ...],
        shape: ProblemShape,
        precision: str,
    ) -> None:
        def init(seed: int) -> Any:
            state = backbone.init(seed, shape, critic, credit, hidden)
            # The key as plain words, so that every leaf is an ordinary array.
            return state._replace(key=jax.random.key_data(state.key))

        template = init(0)
        self.init: Callable[[int], Leaves] = lambda seed: jax.tree.leaves(init(seed))
        self.structure = jax.tree.structure(template)
        self.actor_size = len(jax.tree.leaves(template.actor))  # the actor comes first
        self.traces = 0
        actor_structure = jax.tree.structure(template.actor)

        def update(leaves: Leaves, batch: IntervalBatch) -> tuple[Leaves, Metrics]:
            self.traces += 1
            state = jax.tree.unflatten(self.structure, leaves)
            state = state._replace(key=jax.random.wrap_key_data(state.key))
            with jax.default_matmul_precision(precision):
                state, metrics = backbone.update(state, batch, credit)
            state = state._replace(key=jax.random.key_data(state.key))
            return jax.tree.leaves(state), metrics

        def update_many(leaves: Leaves, batches: IntervalBatch) -> tuple[Leaves, Metrics]:
            leaves, metrics = jax.lax.scan(update, leaves, batches)
            return leaves, {name: jnp.mean(values) for name, values in metrics.items()}

        def act(leaves: Leaves, observation: Any, noise: Any) -> jax.Array:
            action: jax.Array = backbone.act(
                jax.tree.unflatten(actor_structure, leaves), observation, noise
            )
            return action

        def mode(leaves: Leaves, observation: Any) -> jax.Array:
            action: jax.Array = jax.tree.unflatten(actor_structure, leaves).mode(observation)
            return action

        compiled = partial(jax.jit, donate_argnums=0, compiler_options=SCRATCH_IN_PIECES)
        self.update = compiled(update)
        self.update_many = compiled(update_many)
        self.act = jax.jit(act)
        self.mode = jax.jit(mode)


_compiled = lru_cache(maxsize=32)(_Functions)
"""One set of functions for all learners of the same kind: what was compiled once stays so."""
