"""Discrete SAC, CrossQ and DQN against NumPy by loops, and what they must be equal to."""

from __future__ import annotations

import dataclasses
import itertools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import references
from discrete import discrete_batch, discrete_shape
from references import exact, mlp, quick_jit, update_of
from scipy.special import log_softmax

from belated.backbones import DQN, SAC, TD3, CrossQ
from belated.critics import HC, Markov, Pairwise, Recurrent, Segment, Singleton
from belated.experience.batch import IntervalBatch
from belated.experience.choices import joint_codes
from belated.experience.step import ProblemShape

HIDDEN = (8, 8)
GAMMA = 0.9
SHAPES = [
    discrete_shape((3,)),
    discrete_shape((3,), masked=True),
    discrete_shape((2, 3)),
    discrete_shape((2, 3), masked=True),
    discrete_shape((3,), overlap=2),
]
CRITICS = [Markov(), Segment(7), HC(Singleton((6,)), 0.05), HC(Pairwise(1, (6,)), 0.5)]
CRITICS += [HC(Recurrent(7), 5.0), HC(Singleton((6,)), 0.05, shared=True)]


def unlike(networks: Any) -> Any:
    """Targets that differ from what they follow, so that mistaking one for the other shows."""
    return jax.tree.map(lambda leaf: 1.5 * leaf + 0.1, networks)


def policy_by_loops(actor: Any, observation: Any, shape: ProblemShape) -> Any:
    return policy_of(mlp(actor.trunk, np.float64(observation)), observation, shape)


def policy_of(logits: Any, observation: Any, shape: ProblemShape) -> Any:
    """π of every joint action: (B, J)."""
    codes = joint_codes(shape.choices)
    ends = np.cumsum((0, *shape.choices))
    table = np.zeros((len(observation), len(codes)))
    for row, here in enumerate(logits):
        allowed = np.ones(shape.action_size)
        if shape.masked:
            allowed = observation[row, shape.state_size - shape.action_size : shape.state_size]
        scores = np.where(allowed > 0, here, -np.inf)
        parts = [np.exp(log_softmax(scores[a:b])) for a, b in itertools.pairwise(ends)]
        for number, code in enumerate(codes):
            chosen = [code[a:b].argmax() for a, b in itertools.pairwise(ends)]
            table[row, number] = np.prod([p[c] for p, c in zip(parts, chosen, strict=True)])
    return table


def values_by_loops(critics: Any, observation: Any, many: Any) -> Any:
    """Q_k of every joint action after some histories: (K, B, J)."""
    said = [
        every_value(critic, references.digests(critic, many), np.float64(observation))
        for critic in critics
    ]
    return np.concatenate(said)


def every_value(critic: Any, digest: Any, observation: Any) -> Any:
    if hasattr(critic, "reader"):
        nothing = np.zeros((len(observation), critic.shape.action_size))
        hidden = references.gru_step(
            critic.reader, digest, np.concatenate([observation, nothing], axis=-1)
        )
        return references.linear(critic.head, hidden)[None]
    currents = getattr(critic, "currents", None) or (
        critic.current if hasattr(critic, "current") else critic.network,
    )
    history = 0 if digest is None else digest[:, None]
    return np.stack([history + mlp(each, observation) for each in currents])


def soft(values: Any, policy: Any, alpha: float) -> Any:
    """Σ_a π(a)·(min_k Q_k(a) − α·log π(a)), the actions with no chance left out: (B,)."""
    log_policy = np.log(policy, out=np.zeros_like(policy), where=policy > 0)
    return (policy * (values.min(axis=0) - alpha * log_policy)).sum(axis=1)


def taken_values(values: Any, batch: IntervalBatch, shape: ProblemShape) -> Any:
    codes = joint_codes(shape.choices)
    number = [int(np.flatnonzero((codes == action).all(axis=1))[0]) for action in batch.action]
    return values[:, np.arange(len(number)), number]


@pytest.mark.parametrize(
    ("critic", "shape"),
    [(CRITICS[2], shape) for shape in SHAPES] + [(critic, SHAPES[-1]) for critic in CRITICS],
    ids=str,
)
def test_sac_equals_a_double_precision_reference(critic: Any, shape: ProblemShape) -> None:
    batch = discrete_batch(shape)
    sac = SAC(critic, hidden=HIDDEN, gamma=GAMMA, initial_temperature=0.3)
    state = sac.init(2, shape)
    state = state._replace(targets=unlike(state.targets))
    after, metrics = update_of(sac)(state, batch)
    before, updated = exact(state), exact(after)
    now, following, _ = zip(*references.histories(batch, shape), strict=True)

    policy = policy_by_loops(before.actor, batch.next_observation, shape)
    ahead = soft(values_by_loops(before.targets, batch.next_observation, following), policy, 0.3)
    target = batch.reward + GAMMA**batch.duration * (1 - batch.terminated) * ahead
    assert metrics["target_mean"] == pytest.approx(target.mean(), rel=1e-4, abs=1e-5)
    here = values_by_loops(before.critics, batch.observation, now)
    td_loss = ((taken_values(here, batch, shape) - target) ** 2).mean(axis=1).sum()
    assert metrics["td_loss"] == pytest.approx(td_loss, rel=1e-4)

    # The actor sees the new C, but the H that the critics' loss has made before.
    policy = policy_by_loops(before.actor, batch.observation, shape)
    there = values_by_loops(updated.critics, batch.observation, now)
    if isinstance(critic, HC):
        histories = [
            np.float64(references.digests(new, now) - references.digests(old, now))
            for new, old in zip(updated.critics, before.critics, strict=True)
        ]
        there = there - np.stack(histories)[:, :, None]
    if isinstance(critic, Segment):
        return  # (the same for its hidden states is not worth another reference)
    assert metrics["actor_loss"] == pytest.approx(-soft(there, policy, 0.3).mean(), rel=1e-3)
    entropy = soft(0 * there, policy, 1.0).mean()
    assert metrics["entropy"] == pytest.approx(entropy, rel=1e-4)
    allowed = shape.allowed(batch.observation)
    options = np.array(shape.choices) if allowed is None else None
    if options is not None:
        gradient = entropy - 0.5 * np.log(options).sum()
        step = float(after.log_alpha - state.log_alpha)
        assert step == pytest.approx(-3e-4 * np.sign(gradient), rel=1e-3)


@pytest.mark.parametrize(
    ("critic", "double", "shape"),
    [(Markov(), False, SHAPES[0]), *((CRITICS[2], True, shape) for shape in SHAPES[:4])],
    ids=str,
)
def test_dqn_equals_a_double_precision_reference(
    critic: Any, double: bool, shape: ProblemShape
) -> None:
    batch = discrete_batch(shape)
    dqn = DQN(critic, hidden=HIDDEN, gamma=GAMMA, double=double)
    state = dqn.init(2, shape)
    state = state._replace(targets=unlike(state.targets))
    _, metrics = update_of(dqn)(state, batch)
    before = exact(state)
    now, following, _ = zip(*references.histories(batch, shape), strict=True)
    chooser = before.actor.critics if double else before.targets
    scores = values_by_loops(chooser, batch.next_observation, following)[0]
    if shape.masked:
        allowed = np.asarray(shape.allowed(batch.next_observation))
        fits = allowed @ joint_codes(shape.choices).T == len(shape.choices)
        scores = np.where(fits, scores, -np.inf)
    best = scores.argmax(axis=1)
    ahead = values_by_loops(before.targets, batch.next_observation, following)[0]
    ahead = ahead[np.arange(len(best)), best]
    target = batch.reward + GAMMA**batch.duration * (1 - batch.terminated) * ahead
    assert metrics["target_mean"] == pytest.approx(target.mean(), rel=1e-4, abs=1e-5)
    here = values_by_loops(before.actor.critics, batch.observation, now)
    td_loss = ((taken_values(here, batch, shape) - target) ** 2).mean()
    assert metrics["td_loss"] == pytest.approx(td_loss, rel=1e-4)


def without_history(backbone: Any, shape: ProblemShape) -> tuple[Any, Any, Any]:
    """A backbone with H, its state, and a state of the same backbone with none but the same C."""
    with_history = dataclasses.replace(backbone, critic=HC(Recurrent(5), 0.0))
    hc, plain = with_history.init(2, shape), backbone.init(2, shape)

    def as_markov(critics: Any) -> Any:
        kind = Markov().build(np.random.default_rng(0), shape, HIDDEN)
        return tuple(dataclasses.replace(kind, network=c.current) for c in critics)

    if isinstance(backbone, DQN):
        actor = dataclasses.replace(plain.actor, critics=as_markov(hc.actor.critics))
        plain = plain._replace(actor=actor, targets=as_markov(hc.targets), key=hc.key)
    else:
        plain = plain._replace(
            actor=hc.actor, critics=as_markov(hc.critics), targets=as_markov(hc.targets), key=hc.key
        )
    return with_history, hc, plain


@pytest.mark.parametrize("backbone", [SAC(hidden=HIDDEN), DQN(hidden=HIDDEN)], ids=["sac", "dqn"])
def test_with_intervals_of_one_step_there_is_no_history(backbone: Any) -> None:
    """n = 1 gives plain discrete SAC, and plain double DQN."""
    shape = discrete_shape((3,), max_length=1)
    batch = discrete_batch(shape)
    with_history, hc, plain = without_history(backbone, shape)
    no_window = batch._replace(window=None, window_mask=None)
    (_, a), (_, b) = update_of(with_history)(hc, batch), update_of(backbone)(plain, no_window)
    for name, value in b.items():
        np.testing.assert_allclose(a[name], value, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kind", [SAC, CrossQ, DQN])
def test_one_action_allowed_gives_its_value(kind: Any) -> None:
    """Wherever nothing else may be done, a target is what that action is worth."""
    shape = discrete_shape((4,), masked=True)
    batch = discrete_batch(shape, size=64)
    only = np.eye(4, dtype=np.float32)[np.arange(64) % 4]
    place = slice(shape.state_size - 4, shape.state_size)
    following = batch.next_observation.copy()
    following[:, place] = only
    batch = batch._replace(next_observation=following)
    backbone = kind(hidden=HIDDEN, gamma=1.0, num_critics=1)
    state = backbone.init(2, shape)
    if kind is CrossQ:
        current, batch = state.currents[0], batch._replace(terminated=np.zeros(64, np.float32))
        _, values, _ = current.trained_on_both(batch.observation, following)
    else:
        values = state.targets[0].value(None, following, None).T
    ahead = np.sum(np.asarray(values) * only, axis=1)
    expected = batch.reward + (1 - batch.terminated) * ahead
    metrics = update_of(backbone)(state, batch)[1]
    assert metrics["target_mean"] == pytest.approx(expected.mean(), rel=1e-4)


@pytest.mark.parametrize("shape", [SHAPES[0], SHAPES[3]], ids=str)
def test_crossq_sees_all_actions_in_one_pass(shape: ProblemShape) -> None:
    """Its target is the exact expectation under the policy, from one joint pass."""
    batch = discrete_batch(shape, size=32)
    crossq = CrossQ(HC(Singleton((6,)), 0.05, shared=True), hidden=HIDDEN, gamma=GAMMA)
    state = crossq.init(2, shape)
    state = state._replace(targets=unlike(state.targets))
    _, metrics = update_of(crossq)(state, batch)
    now, following, _ = zip(*references.histories(batch, shape), strict=True)
    outputs = [c.trained_on_both(batch.observation, batch.next_observation) for c in state.currents]
    slow = references.digests(exact(state.targets[0]), following)
    ahead = np.float64(np.stack([o[1] for o in outputs])) + slow[:, None]
    trunk = np.float64(state.actor.trunk(batch.next_observation, state.actor.statistics))
    policy = policy_of(trunk, batch.next_observation, shape)
    target = batch.reward + GAMMA**batch.duration * (1 - batch.terminated) * soft(
        ahead, policy, 1.0
    )
    assert metrics["target_mean"] == pytest.approx(target.mean(), rel=1e-4, abs=1e-5)
    before = references.digests(exact(state.histories[0]), now)
    here = np.float64(np.stack([o[0] for o in outputs])) + before[:, None]
    td_loss = ((taken_values(here, batch, shape) - target) ** 2).mean(axis=1).sum()
    assert metrics["td_loss"] == pytest.approx(td_loss, rel=1e-4)


@pytest.mark.parametrize("updates", [0, 5, 10, 40])
def test_exploration_falls_in_a_line(updates: int) -> None:
    shape = discrete_shape((4,))
    dqn = DQN(hidden=HIDDEN, epsilon_start=0.8, epsilon_end=0.2, epsilon_updates=10)
    actor: Any = dataclasses.replace(dqn.init(1, shape).actor, updates=jnp.asarray(updates))
    epsilon = 0.8 - 0.6 * min(updates / 10, 1)
    rng = np.random.default_rng(0)
    observation = np.repeat(rng.normal(size=(1, shape.observation_size)), 20_000, axis=0)
    noise = rng.normal(size=(20_000, 4)).astype(np.float32)
    actions = np.asarray(quick_jit(dqn.act)(actor, observation.astype(np.float32), noise))
    best = np.asarray(actor.mode(observation[:1]))[0]
    expected = (1 - epsilon) * best + epsilon / 4
    np.testing.assert_allclose(actions.mean(axis=0), expected, atol=0.02)


def test_what_cannot_be_is_refused() -> None:
    discrete, continuous = discrete_shape((3,)), ProblemShape(4, 2, 5, 0)
    with pytest.raises(ValueError, match=r"TD3.*cannot be discrete.*`dqn`"):
        TD3().init(0, discrete)
    with pytest.raises(ValueError, match=r"DQN.*must be discrete.*`sac`"):
        DQN().init(0, continuous)
    with pytest.raises(ValueError, match="whatever the history"):
        DQN(Segment(8))
    with pytest.raises(ValueError, match="joint actions"):
        SAC().init(0, discrete_shape((2,) * 11))
