"""LIRPG's gradient through a step of Adam, against finite differences."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from episodes import shape_of
from jax.flatten_util import ravel_pytree
from rollouts import random_rollout

from belated.backbones import LIRPG, PPO
from belated.backbones.lirpg import Constants, Learning, intrinsic_reward
from belated.backbones.ppo import Networks
from belated.experience.rollout import Rollout

SHAPE = shape_of(5, 0)
SMALL = LIRPG(hidden=(5,), epochs=2, minibatches=4, rollout_steps=20, intrinsic_learning_rate=1e-2)


def double(tree: Any) -> Any:
    def convert(leaf: Any) -> Any:
        whole = jnp.issubdtype(leaf.dtype, jnp.integer)
        return jnp.asarray(leaf) if whole else jnp.asarray(leaf, jnp.float64)

    return jax.tree.map(convert, tree)


def tiny_problem(lirpg: LIRPG, rollout: Rollout) -> tuple[Learning, Constants, jax.Array]:
    """A problem in double precision, some steps after the start, so that Adam has its moments."""
    state = lirpg.init(0, SHAPE)
    state = state._replace(key=jnp.zeros(()))
    state = double(state)
    constants = lirpg.constants(state, double(rollout), double(rollout.reward))
    learning = Learning(
        Networks(state.actor.policy, state.value),
        state.optimizer,
        state.rewards,
        state.reward_optimizer,
    )
    orders = jnp.arange(rollout.mask.size).reshape(2, -1)
    step = jax.jit(lirpg.step)
    for _ in range(3):
        learning, _ = step(learning, constants, orders[0])
    return learning, constants, orders[1]


@pytest.mark.parametrize(
    "lirpg",
    [
        SMALL,
        dataclasses.replace(SMALL, extrinsic_coefficient=0.3),
        dataclasses.replace(SMALL, max_gradient_norm=1e3),
    ],
    ids=["default", "mixed", "unclipped"],
)
def test_the_meta_gradient_equals_finite_differences(lirpg: LIRPG) -> None:
    with jax.enable_x64(True):
        learning, constants, order = tiny_problem(lirpg, random_rollout(0, lanes=2, steps=10))
        vector, restore = ravel_pytree(learning.rewards)
        assert vector.dtype == jnp.float64

        @jax.jit
        def loss(vector: Any) -> Any:
            return lirpg.meta_loss(restore(vector), learning, constants, order)[0]

        gradient = jax.grad(loss)(vector)
        size = ravel_pytree(learning.rewards.intrinsic)[0].size
        assert jnp.abs(gradient[:size]).max() > 1e-6
        rng = np.random.default_rng(0)
        # Directions in all of η, then in r_in alone, then single numbers of r_in.
        directions = [*rng.normal(size=(6, vector.size))]
        for direction in directions[2:]:
            direction[size:] = 0
        directions += [*np.eye(vector.size)[rng.permutation(size)[:8]]]
        for direction in directions:
            h = 1e-5
            difference = (loss(vector + h * direction) - loss(vector - h * direction)) / (2 * h)
            exact = float(gradient @ direction)
            assert float(difference) == pytest.approx(exact, rel=1e-4, abs=1e-9)


def test_the_reward_reaches_the_meta_loss_only_through_the_step() -> None:
    with jax.enable_x64(True):
        learning, constants, order = tiny_problem(SMALL, random_rollout(1))
        still = dataclasses.replace(SMALL, learning_rate=0.0)
        loss = jax.grad(lambda rewards: still.meta_loss(rewards, learning, constants, order)[0])
        gradient = jax.jit(loss)(learning.rewards)
        assert not any(jnp.any(x) for x in jax.tree.leaves(gradient.intrinsic))
        assert any(jnp.any(x) for x in jax.tree.leaves(gradient.value))


def test_the_policys_step_is_ppos_on_the_mixed_reward() -> None:
    """With c_in = 0 and c_ex = 1 the policy learns exactly as PPO's does."""
    shared: dict[str, Any] = {"hidden": (8, 8), "epochs": 2, "minibatches": 4, "rollout_steps": 30}
    lirpg = LIRPG(intrinsic_coefficient=0.0, extrinsic_coefficient=1.0, **shared)
    ppo = PPO(**shared)
    updates = [jax.jit(each.update) for each in (lirpg, ppo)]
    one = lirpg.init(0, SHAPE)
    other = ppo.init(0, SHAPE)
    for seed in range(2):
        one, _ = updates[0](one, random_rollout(seed))
        other, _ = updates[1](other, random_rollout(seed))
    for x, y in zip(
        jax.tree.leaves((one.actor, one.value)),
        jax.tree.leaves((other.actor, other.value)),
        strict=True,
    ):
        np.testing.assert_allclose(x, y, atol=1e-5)


def test_intrinsic_rewards_are_bounded_and_see_clipped_actions() -> None:
    state = SMALL.init(0, SHAPE)
    rollout = random_rollout(0)
    rollout = rollout._replace(action=10 * rollout.action)
    clipped = rollout._replace(action=np.clip(rollout.action, -1, 1))
    first, second = (
        np.asarray(intrinsic_reward(state.rewards.intrinsic, SMALL.constants(state, r, r.reward)))
        for r in (rollout, clipped)
    )
    assert (np.abs(first) <= 1).all()
    np.testing.assert_array_equal(first, second)


def test_advantages_that_are_all_the_same_do_no_harm() -> None:
    rollout = random_rollout(0)
    rollout = rollout._replace(reward=np.zeros_like(rollout.reward))
    state = SMALL.init(0, SHAPE)
    silent = jax.tree.map(jnp.zeros_like, (state.rewards, state.value))
    state = state._replace(rewards=silent[0], value=silent[1])
    state, metrics = jax.jit(SMALL.update)(state, rollout)
    leaves = jax.tree.leaves((state._replace(key=jnp.zeros(())), metrics))
    assert all(np.isfinite(leaf).all() for leaf in leaves)
