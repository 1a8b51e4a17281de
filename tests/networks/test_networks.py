from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import references
from references import quick_jit
from scipy.integrate import trapezoid

from belated.experience.step import ProblemShape
from belated.networks import MLP, DeterministicPolicy, StochasticPolicy

RNG = np.random.default_rng(0)


def gaussian(observation: int, hidden: tuple[int, ...], action: int) -> StochasticPolicy:
    shape = ProblemShape(observation, action, 1, 0)
    return StochasticPolicy(np.random.default_rng(1), shape, hidden)


sample: Any = quick_jit(StochasticPolicy.outlook)


def test_mlp_has_relu_between_its_layers_and_none_at_its_end() -> None:
    mlp = MLP(np.random.default_rng(1), 3, (5, 4), 2)
    x = RNG.normal(size=(6, 3)).astype(np.float32)
    expected = references.mlp(references.exact(mlp), np.float64(x))
    rows, columns = quick_jit(lambda x: (mlp(x), mlp.columns(x.T)))(x)
    np.testing.assert_allclose(rows, expected, atol=1e-6)
    np.testing.assert_allclose(columns, expected.T, atol=1e-6)


def test_log_density_of_the_squashed_gaussian_is_the_change_of_variables() -> None:
    policy = gaussian(3, (8,), 2)
    observation, noise = (RNG.normal(size=(50, size)).astype(np.float32) for size in (3, 2))
    action, log_prob = sample(policy, observation, noise)
    moments = references.mlp(references.exact(policy.trunk), np.float64(observation))
    mean, std = moments[:, :2], np.exp(moments[:, 2:])
    raw = mean + std * np.float64(noise)
    log_normal = -0.5 * ((raw - mean) / std) ** 2 - np.log(std * np.sqrt(2 * np.pi))
    expected = log_normal - np.log(1 - np.tanh(raw) ** 2)
    np.testing.assert_allclose(action, np.tanh(raw), atol=1e-6)
    np.testing.assert_allclose(log_prob, expected.sum(axis=1), atol=1e-4)


def test_log_density_integrates_to_one() -> None:
    policy = gaussian(3, (8,), 1)
    observation = np.zeros((20_001, 3), np.float32)
    noise = np.linspace(-8, 8, 20_001, dtype=np.float32)[:, None]
    action, log_prob = sample(policy, observation, noise)
    density = np.exp(np.float64(log_prob))
    assert trapezoid(density, np.asarray(action, np.float64)[:, 0]) == pytest.approx(1, abs=1e-3)


def test_extreme_policies_stay_finite() -> None:
    policy = gaussian(1, (), 1)
    observation = np.array([[1e4], [-1e4]], np.float32)
    action, log_prob = sample(policy, observation, np.array([[6.0], [-6.0]], np.float32))
    assert np.isfinite(action).all()
    assert np.isfinite(log_prob).all()
    slope = quick_jit(jax.grad(lambda o: policy.outlook(o, jnp.ones((2, 1)))[1].sum()))
    assert np.isfinite(slope(observation)).all()


@pytest.mark.parametrize(("log_std", "clipped"), [(1.0, 1.0), (50.0, 2.0), (-50.0, -20.0)])
def test_the_log_standard_deviation_is_clipped(log_std: float, clipped: float) -> None:
    policy = gaussian(1, (), 1)
    output = policy.trunk.layers[0]
    policy = eqx.tree_at(
        lambda p: (p.trunk.layers[0].weight, p.trunk.layers[0].bias),
        policy,
        (np.zeros_like(output.weight), np.array([0.0, log_std], np.float32)),
    )
    _, log_prob = sample(policy, *np.zeros((2, 1, 1), np.float32))
    assert float(log_prob[0]) == pytest.approx(-clipped - 0.5 * np.log(2 * np.pi), abs=1e-5)


@pytest.mark.parametrize("kind", [StochasticPolicy, DeterministicPolicy])
def test_the_mode_is_deterministic_and_within_bounds(kind: Any) -> None:
    deterministic = DeterministicPolicy(np.random.default_rng(1), 3, (8,), 2)
    policy: Any = gaussian(3, (8,), 2) if kind is StochasticPolicy else deterministic
    observation = (100 * RNG.normal(size=(50, 3))).astype(np.float32)
    mode = np.asarray(quick_jit(kind.mode)(policy, observation))
    assert (np.abs(mode) <= 1).all()
    if kind is StochasticPolicy:
        noiseless = sample(policy, observation, np.zeros((50, 2), np.float32))[0]
        np.testing.assert_allclose(mode, noiseless)
