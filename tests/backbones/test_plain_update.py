"""One whole update against the same update in NumPy, with critics that look at single steps.

Whatever makes the critics fast (one pass for all prefixes, pairs as columns, masks) must not change
what is learned. Gradient descent takes Adam's place, whose first step is the gradient's sign: the
change of every parameter is then its gradient.
"""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import optax
import pytest
import references
from batches import random_batch
from references import gradient, mlp, quick_jit, squashed_sample

from belated.backbones import SAC, TD3
from belated.backbones.sac import SACState
from belated.backbones.td3 import TD3State
from belated.critics import HC, Markov, Pairwise, Recurrent, Segment, Singleton
from belated.experience.batch import IntervalBatch
from belated.experience.step import ProblemShape

CRITICS: list[Any] = [
    Markov(),
    Segment(5),
    HC(Singleton((6,)), 0.05),
    HC(Pairwise(1, (6,)), 0.5),
    HC(Pairwise(3, (6,)), 5.0),
    HC(Recurrent(5), 5.0),
    HC(Singleton((6,)), 0.5, shared=True),
]
RATE = 0.1


class DescentSAC(SAC):
    _optimizer = property(lambda self: optax.sgd(RATE))


class DescentTD3(TD3):
    _optimizer = property(lambda self: optax.sgd(RATE))


def descended(parameters: Any, slopes: Any) -> Any:
    return jax.tree.map(lambda weight, slope: weight - RATE * slope, parameters, slopes)


def moved(slow: Any, fast: Any, tau: float) -> Any:
    return jax.tree.map(lambda s, f: s + tau * (f - s), slow, fast)


def rows(values: Any) -> list[Any]:
    """What one critic says, (N,), or several that share an H, (K, N)."""
    return list(np.atleast_2d(values))


class PlainUpdate:
    """What SAC and TD3 have in common, with parameters in double precision."""

    def __init__(self, backbone: Any, state: Any, batch: IntervalBatch, shape: ProblemShape):
        self.backbone, self.state = backbone, references.exact(state)
        self.batch = jax.tree.map(np.float64, batch)
        histories = references.histories(batch, shape)
        self.before, self.after, self.whole = zip(*histories, strict=True)
        self.metrics: dict[str, Any] = {}

    def learn_values(self, next_action: Any, bonus: Any) -> None:
        """One step of the critics."""
        batch, state = self.batch, self.state
        following = [
            q
            for t in state.targets
            for q in rows(
                references.value(
                    t, references.digests(t, self.after), batch.next_observation, next_action
                )
            )
        ]
        stays = 0.99 * (1 - batch.terminated)
        target = batch.reward + stays * (np.min(following, axis=0) + bonus)
        values = []

        def errors(critic: Any) -> tuple[Any, Any]:
            digest = references.digests(critic, self.before)
            said = references.value(critic, digest, batch.observation, batch.action)
            number = len(getattr(critic, "currents", "1"))
            said = said if number > 1 else said[None]
            values.append(said)
            td_loss = sum(np.mean((q - target) ** 2, -1) for q in said)
            weight = getattr(critic, "regularizer", 0.0)
            if weight == 0:
                return td_loss, 0.0
            seen = batch.revealed > 0
            whole = references.digests(critic, self.whole)[..., seen]
            off = np.mean((whole - batch.interval_reward[seen]) ** 2, -1)
            return td_loss, number * weight * off

        td_losses, auxiliary_losses = zip(*map(errors, state.critics), strict=True)
        self.metrics |= {
            "td_loss": sum(td_losses),
            "auxiliary_loss": sum(auxiliary_losses),
            "value_mean": np.mean(values),
            "value_largest": np.abs(values).max(),
            "target_mean": np.mean(target),
        }
        self.critics = tuple(
            descended(critic, gradient(lambda c: sum(errors(c)), critic))
            for critic in state.critics
        )
        self.targets = tuple(
            moved(t, c, 0.005) for t, c in zip(state.targets, self.critics, strict=True)
        )

    def values_of(self, action: Any) -> list[Any]:
        """What the new critics say after what the old ones know of the histories."""
        said = [
            references.value(
                new, references.digests(old, self.before), self.batch.observation, action
            )
            for old, new in zip(self.state.critics, self.critics, strict=True)
        ]
        return list(said[0]) if len(said) == 1 else said


def plain_sac(
    sac: SAC, state: SACState, batch: IntervalBatch, shape: ProblemShape
) -> tuple[SACState, Any]:
    plain = PlainUpdate(sac, state, batch, shape)
    noises = jax.random.normal(jax.random.split(state.key)[1], (2, *batch.action.shape))
    next_noise, noise = np.asarray(noises, np.float64)
    old, alpha = plain.state, np.exp(plain.state.log_alpha)
    next_action, next_log_prob = squashed_sample(old.actor, batch.next_observation, next_noise)
    plain.learn_values(next_action, -alpha * next_log_prob)

    def actor_loss(actor: Any) -> tuple[Any, Any]:
        action, log_prob = squashed_sample(actor, np.float64(batch.observation), noise)
        first, second = plain.values_of(action)
        lower = np.where(first.real <= second.real, first, second)
        return np.mean(alpha * log_prob - lower, -1), np.mean(log_prob, -1)

    loss, log_prob = actor_loss(old.actor)
    plain.metrics |= {"actor_loss": loss, "entropy": -log_prob, "temperature": alpha}
    slope = -(log_prob - shape.action_size)
    count, *moments = jax.tree.leaves(old.alpha_optimizer)
    assert not any(moments)
    after = old._replace(
        actor=descended(old.actor, gradient(lambda actor: actor_loss(actor)[0], old.actor)),
        critics=plain.critics,
        targets=plain.targets,
        log_alpha=old.log_alpha - 3e-4 * slope / (abs(slope) + 1e-8),  # Adam's first step
        alpha_optimizer=[count + 1, 0.1 * slope, 0.001 * slope**2],
    )
    return after, plain.metrics


def plain_td3(
    td3: TD3, state: TD3State, batch: IntervalBatch, shape: ProblemShape
) -> tuple[TD3State, Any]:
    plain = PlainUpdate(td3, state, batch, shape)
    normal = jax.random.normal(jax.random.split(state.key)[1], batch.action.shape)
    old, noise = plain.state, np.clip(0.2 * np.asarray(normal, np.float64), -0.5, 0.5)
    next_action = np.tanh(mlp(old.target_actor.trunk, np.float64(batch.next_observation)))
    plain.learn_values(np.clip(next_action + noise, -1, 1), 0.0)

    def actor_loss(actor: Any) -> Any:
        action = np.tanh(mlp(actor.trunk, np.float64(batch.observation)))
        return -np.mean(plain.values_of(action)[0], -1)

    actor = descended(old.actor, gradient(actor_loss, old.actor))
    after = old._replace(
        actor=actor,
        critics=plain.critics,
        target_actor=moved(old.target_actor, actor, 0.005),
        targets=plain.targets,
        updates=old.updates + 1,
    )
    return after, plain.metrics


def every_case_occurs(batch: IntervalBatch, shape: ProblemShape) -> bool:
    ends = batch.position == batch.length - 1
    overlap = batch.window_mask[: shape.overlap].sum(axis=0)
    both_kinds = [ends, batch.terminated, batch.revealed, batch.position > 0]
    if shape.overlap > 0:
        both_kinds += [overlap == shape.overlap, ends & (overlap > 0)]
    return all(0 < np.sum(kind) < len(ends) for kind in both_kinds)


CASES: list[tuple[Any, int]] = [
    *((DescentSAC(critic, hidden=(8, 8)), 2) for critic in CRITICS),
    *((DescentTD3(CRITICS[n], hidden=(8, 8), policy_delay=1), 0) for n in (1, 3, 6)),
]


@pytest.mark.parametrize(
    ("backbone", "overlap"),
    CASES,
    ids=lambda case: f"{type(case).__name__}-{case.critic}" if hasattr(case, "critic") else None,
)
def test_an_update_is_the_plain_one(backbone: Any, overlap: int) -> None:
    batch, shape = random_batch(4, overlap, size=8, seed=1, reveal_tails=False)
    assert every_case_occurs(batch, shape)
    state = backbone.init(2, shape)
    state = state._replace(targets=jax.tree.map(lambda leaf: 1.5 * leaf + 0.1, state.targets))
    plain: Any = plain_sac if isinstance(backbone, SAC) else plain_td3
    fast_after, fast_metrics = quick_jit(backbone.update)(state, batch)
    plain_after, plain_metrics = plain(backbone, state, batch, shape)
    assert fast_metrics.keys() == plain_metrics.keys()
    for name, value in plain_metrics.items():
        np.testing.assert_allclose(fast_metrics[name], value, rtol=1e-5, atol=1e-6, err_msg=name)
    drop_key = [s._replace(key=None) for s in (fast_after, plain_after)]
    for a, b in zip(*map(jax.tree.leaves, drop_key), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
