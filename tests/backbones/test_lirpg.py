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
from references import quick_jit, update_of
from rollouts import random_rollout

from belated.backbones import LIRPG, PPO
from belated.backbones.lirpg import Constants, Learning, intrinsic_reward
from belated.backbones.ppo import Networks
from belated.experience.rollout import Rollout

SHAPE = shape_of(5, 0)
SMALL = LIRPG(hidden=(5,), epochs=2, minibatches=4, rollout_steps=20, intrinsic_learning_rate=1e-2)


def double(tree: Any) -> Any:
    def convert(leaf: Any) -> Any:
        return np.asarray(leaf, np.float64) if np.asarray(leaf).dtype == np.float32 else leaf

    return jax.tree.map(convert, tree)


def tiny_problem(lirpg: LIRPG, state: Any, rollout: Rollout) -> tuple[Learning, Constants, Any]:
    """A problem some steps after the start, so that Adam has its moments."""
    constants = lirpg.constants(state, rollout, rollout.reward)
    learning = Learning(
        Networks(state.actor.policy, state.value),
        state.optimizer,
        state.rewards,
        state.reward_optimizer,
    )
    orders: Any = np.arange(rollout.mask.size).reshape(2, -1)
    learning, _ = jax.lax.scan(
        lambda learning, order: lirpg.step(learning, constants, order), learning, orders[[0, 0, 0]]
    )
    return learning, constants, orders[1]


def double_problem(lirpg: LIRPG, rollout: Rollout) -> tuple[Any, Rollout]:
    """What `tiny_problem` takes, in double precision."""
    state: Any = lirpg.init(0, SHAPE)
    return double(state._replace(key=np.zeros(()))), double(rollout)


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
    state, rollout = double_problem(lirpg, random_rollout(0, lanes=2, steps=10))
    size, everything = (
        sum(leaf.size for leaf in jax.tree.leaves(networks))
        for networks in (state.rewards.intrinsic, state.rewards)
    )
    rng = np.random.default_rng(0)
    # Directions in all of η, then in r_in alone, then single numbers of r_in.
    directions = rng.normal(size=(6, everything))
    directions[2:, size:] = 0
    directions = np.append(directions, np.eye(everything)[rng.permutation(size)[:8]], axis=0)
    h = 1e-5

    @quick_jit
    def slopes(state: Any, rollout: Rollout, directions: Any) -> tuple[Any, Any]:
        learning, constants, order = tiny_problem(lirpg, state, rollout)
        vector, restore = ravel_pytree(learning.rewards)

        def loss(vector: Any) -> Any:
            return lirpg.meta_loss(restore(vector), learning, constants, order)[0]

        steps = h * jnp.concatenate([directions, -directions])
        above, below = jnp.split(jax.lax.map(lambda step: loss(vector + step), steps), 2)
        return jax.grad(loss)(vector), (above - below) / (2 * h)

    with jax.enable_x64(True):
        gradient, differences = map(np.asarray, slopes(state, rollout, directions))
    assert gradient.dtype == np.float64
    assert np.abs(gradient[:size]).max() > 1e-6
    for direction, difference in zip(directions, differences, strict=True):
        assert difference == pytest.approx(gradient @ direction, rel=1e-4, abs=1e-9)


def test_the_reward_reaches_the_meta_loss_only_through_the_step() -> None:
    still = dataclasses.replace(SMALL, learning_rate=0.0)

    @quick_jit
    def gradient_of(state: Any, rollout: Rollout) -> Any:
        learning, constants, order = tiny_problem(SMALL, state, rollout)
        loss = jax.grad(lambda rewards: still.meta_loss(rewards, learning, constants, order)[0])
        return loss(learning.rewards)

    with jax.enable_x64(True):
        gradient = gradient_of(*double_problem(SMALL, random_rollout(1)))
    assert not any(np.any(x) for x in jax.tree.leaves(gradient.intrinsic))
    assert any(np.any(x) for x in jax.tree.leaves(gradient.value))


def test_the_policys_step_is_ppos_on_the_mixed_reward() -> None:
    """With c_in = 0 and c_ex = 1 the policy learns exactly as PPO's does."""
    shared: dict[str, Any] = {"hidden": (8, 8), "epochs": 2, "minibatches": 4, "rollout_steps": 30}
    lirpg = LIRPG(intrinsic_coefficient=0.0, extrinsic_coefficient=1.0, **shared)
    ppo = PPO(**shared)
    updates = [update_of(each) for each in (lirpg, ppo)]
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

    @quick_jit
    def reward_of(rollout: Rollout) -> Any:
        constants = SMALL.constants(state, rollout, rollout.reward)
        return intrinsic_reward(state.rewards.intrinsic, constants)

    first, second = (np.asarray(reward_of(r)) for r in (rollout, clipped))
    assert (np.abs(first) <= 1).all()
    np.testing.assert_array_equal(first, second)


def test_advantages_that_are_all_the_same_do_no_harm() -> None:
    rollout = random_rollout(0)
    rollout = rollout._replace(reward=np.zeros_like(rollout.reward))
    state = SMALL.init(0, SHAPE)
    silent = jax.tree.map(np.zeros_like, (state.rewards, state.value))
    state = state._replace(rewards=silent[0], value=silent[1])
    state, metrics = update_of(SMALL)(state, rollout)
    leaves = jax.tree.leaves((state._replace(key=np.zeros(())), metrics))
    assert all(np.isfinite(leaf).all() for leaf in leaves)
