"""The learner: a method's state on the device, and the jitted functions that change or use it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from belated.critics import ProblemShape
from belated.methods import Method
from belated.replay import IntervalBatch

_Update = Callable[[list[jax.Array], IntervalBatch], tuple[list[jax.Array], dict[str, jax.Array]]]


class Learner:
    """Holds the state of a backbone as a flat list of arrays.

    Flattening modules costs more than a small update, so it is done once: the jitted functions
    take and give plain lists, and put the modules together again while they are traced.

    Args:
        method: what to train.
        shape: the problem's sizes.
        seed: seeds the parameters and every random number of the updates.
    """

    def __init__(self, method: Method, shape: ProblemShape, seed: int) -> None:
        self.method = method
        self.shape = shape
        backbone = method.backbone
        state = backbone.init(jax.random.key(seed), shape, method.critic, method.hidden)
        # Keys as plain words, so that every leaf is an ordinary array.
        state = state._replace(key=jax.random.key_data(state.key))
        leaves, structure = jax.tree.flatten(state)
        self.leaves: list[jax.Array] = leaves
        self.structure = structure
        self.traces = 0
        """How often an update was traced; it stays at 1 for each number of updates at once."""
        self._actor_leaves = len(jax.tree.leaves(state.actor))
        actor_structure = jax.tree.structure(state.actor)

        def update(
            leaves: list[jax.Array], batch: IntervalBatch
        ) -> tuple[list[jax.Array], dict[str, jax.Array]]:
            self.traces += 1
            state = jax.tree.unflatten(structure, leaves)
            state = state._replace(key=jax.random.wrap_key_data(state.key))
            state, metrics = backbone.update(state, batch, method.credit)
            state = state._replace(key=jax.random.key_data(state.key))
            return jax.tree.leaves(state), metrics

        def update_many(
            leaves: list[jax.Array], batches: IntervalBatch
        ) -> tuple[list[jax.Array], dict[str, jax.Array]]:
            leaves, metrics = jax.lax.scan(update, leaves, batches)
            return leaves, {name: jnp.mean(values) for name, values in metrics.items()}

        def act(leaves: list[jax.Array], observation: Any, noise: Any) -> jax.Array:
            return backbone.act(jax.tree.unflatten(actor_structure, leaves), observation, noise)

        def mode(leaves: list[jax.Array], observation: Any) -> jax.Array:
            action: jax.Array = jax.tree.unflatten(actor_structure, leaves).mode(observation)
            return action

        self._update: _Update = jax.jit(update, donate_argnums=0)
        self._update_many: _Update = jax.jit(update_many, donate_argnums=0)
        self._act = jax.jit(act)
        self._mode = jax.jit(mode)

    @property
    def state(self) -> Any:
        """The backbone's state as modules."""
        return jax.tree.unflatten(self.structure, self.leaves)

    def update(self, batch: IntervalBatch) -> dict[str, jax.Array]:
        """Run one update; the metrics stay on the device."""
        self.leaves, metrics = self._update(self.leaves, batch)
        return metrics

    def update_many(self, batches: list[IntervalBatch]) -> dict[str, jax.Array]:
        """Run several updates in one go and return the means of their metrics."""
        if len(batches) == 1:
            return self.update(batches[0])
        stacked = IntervalBatch(*(np.stack(column) for column in zip(*batches, strict=True)))
        self.leaves, metrics = self._update_many(self.leaves, stacked)
        return metrics

    def act(
        self, observation: npt.NDArray[np.float32], noise: npt.NDArray[np.float32]
    ) -> npt.NDArray[np.float32]:
        """Explore: actions in [−1, 1] for observations (B, D), given normal noise (B, A)."""
        return np.asarray(self._act(self.leaves[: self._actor_leaves], observation, noise))

    def mode(self, observation: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        """The deterministic actions in [−1, 1] for observations (B, D)."""
        return np.asarray(self._mode(self.leaves[: self._actor_leaves], observation))
