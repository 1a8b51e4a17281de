"""CrossQ: one whole update against NumPy in double precision, and its equivalences."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import numpy as np
import optax
import pytest
import references
from batches import random_batch
from references import exact, gradient, quick_jit, update_of

from belated.backbones import CrossQ
from belated.backbones.crossq import CrossQState
from belated.critics import HC, Markov, Pairwise, Recurrent, Segment, Singleton
from belated.experience.batch import IntervalBatch
from belated.experience.step import ProblemShape

HIDDEN = (8, 8)
RATE = 0.1
PLAIN = CrossQ(hidden=HIDDEN)
CRITICS: list[Any] = [
    Markov(),
    HC(Singleton((6,)), 0.5, shared=True),
    HC(Singleton((6,)), 0.5),
    HC(Pairwise(2, (6,)), 5.0, shared=True),
    HC(Recurrent(5), 5.0, shared=True),
]


class DescentCrossQ(CrossQ):
    _optimizer = property(lambda self: optax.sgd(RATE))  # a change is then the gradient


def seasoned(state: CrossQState) -> CrossQState:
    """A state whose targets and statistics are like nothing that they could be mistaken for."""
    odd = lambda leaf: 1.5 * leaf + 0.1  # noqa: E731
    actor = state.actor.replaced(state.actor.trunk, jax.tree.map(odd, state.actor.statistics))
    return state._replace(
        actor=actor,
        targets=jax.tree.map(odd, state.targets),
        statistics=jax.tree.map(odd, state.statistics),
    )


def statistics_of(network: Any) -> list[Any]:
    return [(s.mean, s.variance) for s in network]


def descended(parameters: Any, slopes: Any) -> Any:
    return jax.tree.map(lambda weight, slope: weight - RATE * slope, parameters, slopes)


def lowest(values: Any) -> Any:
    first, second = values
    return np.where(first.real <= second.real, first, second)


def plain_update(
    crossq: CrossQ, state: CrossQState, batch: IntervalBatch, shape: ProblemShape
) -> tuple[Any, dict[str, Any]]:
    """The same update with loops over steps, and gradients by imaginary steps."""
    noises = jax.random.normal(jax.random.split(state.key)[1], (2, *batch.action.shape))
    next_noise, noise = np.asarray(noises, np.float64)
    before, after, whole = zip(*references.histories(batch, shape), strict=True)
    old, batch = exact(state), jax.tree.map(np.float64, batch)
    alpha = np.exp(old.log_alpha)

    outputs, _ = references.normalized_mlp(
        old.actor.trunk, batch.next_observation, statistics_of(old.actor.statistics)
    )
    next_action, next_log_prob = references.squashed(outputs, next_noise)
    here = np.concatenate([batch.observation, batch.action], 1)
    there = np.concatenate([batch.next_observation, next_action], 1)

    def histories(terms: Any, steps: Any) -> list[Any]:
        found = [references.digests(term, steps) for term in terms]
        return found * 2 if len(found) == 1 else found or [0.0, 0.0]

    slow = histories(old.targets, after)
    following = [
        references.normalized_on_both(c, c, here, there, "naive")[1][..., 0] for c in old.currents
    ]
    next_value = np.minimum(slow[0] + following[0], slow[1] + following[1])
    target = batch.reward + 0.99 * (1 - batch.terminated) * (next_value - alpha * next_log_prob)
    revealed = batch.revealed > 0
    said: list[Any] = []

    def losses(parameters: Any) -> tuple[Any, Any]:
        terms, currents = parameters
        pasts = histories(terms, before)
        td_loss, auxiliary = 0.0, 0.0
        said.clear()
        for past, base, current in zip(pasts, old.currents, currents, strict=True):
            rows, _ = references.normalized_on_both(base, current, here, there, "straight-through")
            said.append(past + rows[..., 0])
            td_loss = td_loss + np.mean((said[-1] - target) ** 2, -1)
        for term, seen in zip(terms, [histories([t], whole)[0] for t in terms], strict=True):
            off = np.mean((seen[..., revealed] - batch.interval_reward[revealed]) ** 2, -1)
            auxiliary = auxiliary + 2 / len(terms) * term.regularizer * off
        return td_loss, auxiliary

    td_loss, auxiliary = losses((old.histories, old.currents))
    joint = [references.normalized_mlp(c, np.concatenate([here, there]))[1] for c in old.currents]
    hidden = np.concatenate([variance for network in joint for _, variance in network[1:]], axis=-1)
    metrics = {
        "td_loss": td_loss,
        "auxiliary_loss": auxiliary,
        "value_mean": np.mean(said),
        "value_largest": np.abs(said).max(),
        "target_mean": np.mean(target),
        "entropy": -np.mean(next_log_prob),
        "temperature": alpha,
        "dead_units": np.mean(hidden < 1e-6),
    }
    parameters = (old.histories, old.currents)
    new = descended(parameters, gradient(lambda p: sum(losses(p)), parameters))
    statistics = [
        [
            tuple(r + 0.01 * (now[0] - r) for r, now in zip(running, seen, strict=True))
            for running, seen in zip(statistics_of(network), of_batch, strict=True)
        ]
        for network, of_batch in zip(old.statistics, joint, strict=True)
    ]

    def actor_loss(trunk: Any) -> tuple[Any, Any, Any]:
        outputs, seen = references.normalized_mlp(trunk, batch.observation)
        action, log_prob = references.squashed(outputs, noise)
        observation = np.broadcast_to(
            batch.observation, (*action.shape[:-1], shape.observation_size)
        )
        step = np.concatenate([observation, action], -1)
        values = [
            past + references.normalized_mlp(current, step, running)[0][..., 0]
            for past, current, running in zip(
                histories(old.histories, before), new[1], statistics, strict=True
            )
        ]
        return np.mean(alpha * log_prob - lowest(values), -1), np.mean(log_prob, -1), seen

    trunk = old.actor.trunk
    _, log_prob, seen = actor_loss(trunk)
    after_update = {
        "trunk": descended(trunk, gradient(lambda t: actor_loss(t)[0], trunk)),
        "actor statistics": [
            tuple(r + 0.01 * (now[0] - r) for r, now in zip(running, of_batch, strict=True))
            for running, of_batch in zip(statistics_of(old.actor.statistics), seen, strict=True)
        ],
        "parameters": new,
        "statistics": statistics,
        "targets": jax.tree.map(lambda s, f: s + 0.005 * (f - s), old.targets, new[0]),
        "log_alpha": old.log_alpha + 1e-3 * np.sign(log_prob - shape.action_size),  # Adam's first
    }
    return after_update, metrics


@pytest.mark.parametrize(
    ("critic", "overlap"), [(CRITICS[1], 0), *((critic, 2) for critic in CRITICS)], ids=str
)
def test_an_update_is_the_plain_one(critic: Any, overlap: int) -> None:
    batch, shape = random_batch(4, overlap, size=8, seed=1, reveal_tails=False)
    crossq = DescentCrossQ(critic, hidden=HIDDEN, policy_delay=1)
    state = seasoned(crossq.init(2, shape))
    after, metrics = quick_jit(crossq.update)(state, batch)
    expected, plain_metrics = plain_update(crossq, state, batch, shape)
    assert metrics.keys() == plain_metrics.keys()
    for name, value in plain_metrics.items():
        np.testing.assert_allclose(metrics[name], value, rtol=1e-5, atol=1e-6, err_msg=name)
    found = {
        "trunk": after.actor.trunk,
        "actor statistics": statistics_of(after.actor.statistics),
        "parameters": (after.histories, after.currents),
        "statistics": [statistics_of(network) for network in after.statistics],
        "targets": after.targets,
        "log_alpha": after.log_alpha,
    }
    for name, value in expected.items():
        for a, b in zip(*map(jax.tree.leaves, (found[name], value)), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5, err_msg=name)


@pytest.mark.parametrize("critic", CRITICS[1:], ids=str)
def test_with_intervals_of_one_step_it_is_plain_crossq(critic: Any) -> None:
    """The history is empty: whatever H learns of whole intervals, nobody asks for it."""
    batch, shape = random_batch(1, 0, size=32)
    late = dataclasses.replace(PLAIN, critic=critic, policy_delay=1)
    plain = dataclasses.replace(PLAIN, policy_delay=1)
    state = seasoned(late.init(2, shape))
    same = plain.init(2, shape)._replace(
        actor=state.actor, currents=state.currents, statistics=state.statistics, key=state.key
    )
    for _ in range(2):
        state, metrics = update_of(late)(state, batch)
        same, plain_metrics = update_of(plain)(same, batch)
    for a, b in zip(*(jax.tree.leaves((s.actor, s.currents)) for s in (state, same)), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-5)
    assert metrics["td_loss"] == pytest.approx(float(plain_metrics["td_loss"]), rel=1e-4)


def test_the_actor_is_updated_every_third_time_and_what_belongs_to_it() -> None:
    batch, shape = random_batch(4, 0, size=16)
    crossq = CrossQ(CRITICS[1], hidden=HIDDEN)
    state = crossq.init(2, shape)
    slow = ("actor", "actor_optimizer", "log_alpha", "alpha_optimizer")
    quick = ("histories", "currents", "statistics", "targets", "critic_optimizer")

    def changed(part: str, old: Any, new: Any) -> bool:
        leaves = zip(*(jax.tree.leaves(getattr(s, part)) for s in (old, new)), strict=True)
        return any((a != b).any() for a, b in leaves)

    for number in range(1, 7):
        after, _ = update_of(crossq)(state, batch)
        assert all(changed(part, state, after) for part in quick)
        assert {changed(part, state, after) for part in slow} == {number % 3 == 0}
        state = after


def test_no_optimiser_sees_the_statistics() -> None:
    _, shape = random_batch(4, 0)
    state = CrossQ(CRITICS[1], hidden=HIDDEN).init(2, shape)

    def size(tree: Any) -> int:
        return sum(leaf.size for leaf in jax.tree.leaves(tree))

    for optimizer, parameters in (
        (state.critic_optimizer, (state.histories, state.currents)),
        (state.actor_optimizer, state.actor.trunk),
    ):
        assert size(optimizer) == 2 * size(parameters) + 1  # two moments and a count


def test_the_history_does_not_reach_the_actor_where_there_is_one_critic() -> None:
    batch, shape = random_batch(5, 0, size=32)
    crossq = CrossQ(CRITICS[1], hidden=HIDDEN, num_critics=1, policy_delay=1, learning_rate=0.0)
    state = crossq.init(2, shape)
    other = batch._replace(window=np.random.default_rng(0).permutation(batch.window, axis=1))
    a, b = (update_of(crossq)(state, each)[0].actor_optimizer for each in (batch, other))
    for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True):
        np.testing.assert_allclose(x, y, atol=1e-6)


def test_a_critic_without_a_c_of_its_own_is_refused() -> None:
    with pytest.raises(ValueError, match=r"CrossQ normalises the C of critics that are H \+ C"):
        CrossQ(Segment())
    with pytest.raises(ValueError, match="statistics_gradient must be one of"):
        CrossQ(statistics_gradient="none")
