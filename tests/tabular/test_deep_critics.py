"""The deep critics against the exact truth."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import belated
from belated.backbones.temporal_difference import (
    bootstrapped,
    critic_loss,
    lowest_next_value,
    move_towards,
)
from belated.critics import HC, CriticConfig, Markov, Recurrent, Segment
from belated.experience.batch import IntervalBatch, stack
from belated.experience.replay import IntervalReplay
from belated.experience.spaces import Spaces
from belated.experience.step import Step
from belated.tabular import (
    TabularDRMDP,
    TabularEnv,
    Unrolled,
    examples,
    ordinary_q,
    q_values,
    random_problem,
    reward_invariance,
    uniform,
    unroll,
)

pytestmark = pytest.mark.learning

PROBLEMS: dict[str, TabularDRMDP] = {
    "fixed-point bias": examples.fixed_point_bias(gamma=0.9),
    "random lengths": random_problem(np.random.default_rng(0), overlap=0, max_length=3, gamma=0.8),
    "overlap 1": random_problem(np.random.default_rng(7), overlap=1, max_length=2, gamma=0.8),
}


def centre_of(bins: Any, index: Any) -> Any:
    """The number in [−1, 1] that stands for an action."""
    return (index + 0.5) / bins * 2 - 1


def play(problem: TabularDRMDP, steps: int) -> IntervalReplay:
    """Fill a replay with the uniform policy's steps."""
    env = belated.IntervalPhase(TabularEnv(problem))
    rng = np.random.default_rng(0)
    replay = IntervalReplay(2 * steps, Spaces.of(env).shape)
    observation, _ = env.reset(seed=0)
    for _ in range(steps):
        bins = problem.number_of_actions(env.unwrapped.state)  # type: ignore[attr-defined]
        action = np.array([centre_of(bins, rng.integers(bins))], np.float32)
        step = Step.of(observation, action, env.step(action))
        replay.add(step)
        observation = env.reset()[0] if step.terminated else step.next_observation
    return replay


def choices_of(unrolled: Unrolled, batch: IntervalBatch) -> Any:
    """Say which choice of the exact problem each sampled step is, from its window alone."""
    problem = unrolled.problem
    index = {unrolled.trajectory(choice): choice for choice in range(len(unrolled.node))}
    states = batch.window[:, :, :-2].argmax(axis=-1)
    found = []
    for b, position in enumerate(batch.position):
        trajectory: list[tuple[int, int] | None] = []
        for place in range(problem.overlap + position + 1):
            state, action = int(states[place, b]), float(batch.window[place, b, -1])
            bins = problem.number_of_actions(state)
            real = batch.window_mask[place, b] > 0
            trajectory.append((state, int((action + 1) / 2 * bins)) if real else None)
        found.append(index[tuple(trajectory)])
    return np.array(found)


def evaluate_uniform_policy(
    critic: CriticConfig, problem: TabularDRMDP, replay: IntervalReplay, updates: int = 2_500
) -> Any:
    """Train a single critic by TD, without entropy, on the uniform policy's values."""
    critics = (critic.build(np.random.default_rng(1), replay.shape, (64, 64)),)
    optimizer = optax.adam(optax.cosine_decay_schedule(3e-3, updates))
    bins = jnp.array([problem.number_of_actions(s) for s in range(len(problem.start))])

    def update(state: Any, given: tuple[IntervalBatch, Any]) -> Any:
        (critics, targets, moments), (batch, noise) = state, given
        counts = bins[jnp.argmax(batch.next_observation[:, :-1], axis=1)]
        action = centre_of(counts, jnp.floor(noise * counts))[:, None]
        following = lowest_next_value(targets, batch, action)
        target = bootstrapped(batch.reward, batch, problem.gamma, following)
        gradients, _ = jax.grad(critic_loss, has_aux=True)(critics, batch, target)
        changes, moments = optimizer.update(gradients, moments)
        critics = optax.apply_updates(critics, changes)
        return (critics, move_towards(targets, critics, 0.02), moments), None

    @jax.jit
    def updates_in_a_row(state: Any, given: tuple[IntervalBatch, Any]) -> Any:
        return jax.lax.scan(update, state, given)[0]

    state = (critics, critics, optimizer.init(critics))
    rng = np.random.default_rng(2)
    at_once = 50
    for _ in range(updates // at_once):
        batches = [replay.sample(rng, 128) for _ in range(at_once)]
        state = updates_in_a_row(state, (stack(batches), rng.random((at_once, 128), np.float32)))
    return state[0][0]


@pytest.mark.parametrize("name", PROBLEMS)
def test_critics_of_segments_meet_the_truth_and_the_markov_critic_its_biased_fixed_point(
    name: str,
) -> None:
    problem = PROBLEMS[name]
    unrolled = unroll(problem)
    assert reward_invariance(unrolled, every_split=True).differences is None
    replay = play(problem, 8_000)
    batch = replay.sample(np.random.default_rng(3), 4_000)
    choices = choices_of(unrolled, batch)
    truth = q_values(unrolled, uniform(unrolled))
    counts = np.bincount(choices, minlength=len(truth)).astype(float)
    biased = ordinary_q(unrolled, uniform(unrolled), counts)
    scale = truth[choices].std()

    def error(critic: Any, reference: Any) -> float:
        values = critic.value(critic.encode(batch), batch.observation, batch.action)
        return float(np.sqrt(np.mean((values - reference[choices]) ** 2)) / scale)

    # The regulariser would pull H away from the truth: with random lengths, the same steps are a
    # whole interval at one time and the beginning of a longer one at another.
    for config in (Segment(64), HC(Recurrent(48), regularizer=0.0)):
        assert error(evaluate_uniform_policy(config, problem, replay), truth) < 0.15
    markov = evaluate_uniform_policy(Markov(), problem, replay)
    assert error(markov, biased) < 0.2
    assert error(markov, truth) > 0.4


def test_with_fixed_lengths_the_regulariser_leaves_the_truth_alone() -> None:
    problem = PROBLEMS["fixed-point bias"]
    unrolled, replay = unroll(problem), play(problem, 2_000)
    critic = evaluate_uniform_policy(HC(Recurrent(48), 5.0), problem, replay, updates=2_000)
    batch = replay.sample(np.random.default_rng(3), 500)
    values = critic.value(critic.encode(batch), batch.observation, batch.action)
    truth = q_values(unrolled, uniform(unrolled))[choices_of(unrolled, batch)]
    np.testing.assert_allclose(values, truth, atol=0.01)


@pytest.mark.parametrize(("method", "right"), [("sac", False), ("hc-singleton", True)])
def test_sac_falls_for_the_fixed_point_bias_and_hc_does_not(method: str, right: bool) -> None:
    env = gym.make("belated/TabularFixedPointBias-v0")
    small: dict[str, Any] = {"hidden": (64, 64), "learning_starts": 500, "learning_rate": 1e-3}
    agent = belated.Agent(method, env, seed=0, **small).learn(4_000)
    action, _ = agent.predict(np.array([1, 0, 0, 0, 0, 0], np.float32))  # in A, phase 0
    assert (action[0] >= 0) == right  # the upper bin is a₁, worth 1 instead of 0.01
