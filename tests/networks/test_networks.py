from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from belated.networks import MLP, DeterministicPolicy, GaussianPolicy

RNG = np.random.default_rng(0)


def test_mlp_has_relu_between_its_layers_and_none_at_its_end() -> None:
    mlp = MLP(np.random.default_rng(1), 3, (5, 4), 2)
    x = RNG.normal(size=(6, 3)).astype(np.float32)
    hidden = x.astype(np.float64)
    for layer in mlp.layers[:-1]:
        hidden = np.maximum(hidden @ np.float64(layer.weight) + np.float64(layer.bias), 0)
    expected = hidden @ np.float64(mlp.layers[-1].weight) + np.float64(mlp.layers[-1].bias)
    np.testing.assert_allclose(mlp(jnp.asarray(x)), expected, atol=1e-6)
    np.testing.assert_allclose(mlp.columns(jnp.asarray(x.T)), expected.T, atol=1e-6)


def test_log_density_of_the_squashed_gaussian_is_the_change_of_variables() -> None:
    policy = GaussianPolicy(np.random.default_rng(1), 3, (8,), 2)
    observation = jnp.asarray(RNG.normal(size=(50, 3)), jnp.float32)
    noise = jnp.asarray(RNG.normal(size=(50, 2)), jnp.float32)
    action, log_prob = policy.sample(observation, noise)
    moments = np.asarray(policy.trunk(observation), np.float64)
    mean, std = moments[:, :2], np.exp(moments[:, 2:])
    raw = mean + std * np.float64(noise)
    log_normal = -0.5 * ((raw - mean) / std) ** 2 - np.log(std * np.sqrt(2 * np.pi))
    expected = log_normal - np.log(1 - np.tanh(raw) ** 2)
    np.testing.assert_allclose(action, np.tanh(raw), atol=1e-6)
    np.testing.assert_allclose(log_prob, expected.sum(axis=1), atol=1e-4)


def test_log_density_integrates_to_one() -> None:
    policy = GaussianPolicy(np.random.default_rng(1), 3, (8,), 1)
    observation = jnp.zeros((20_001, 3))
    noise = jnp.linspace(-8, 8, 20_001)[:, None]
    action, log_prob = policy.sample(observation, noise)
    density = np.exp(np.float64(log_prob))
    assert np.trapezoid(density, np.float64(action[:, 0])) == pytest.approx(1, abs=1e-3)


def test_extreme_policies_stay_finite() -> None:
    policy = GaussianPolicy(np.random.default_rng(1), 1, (), 1)
    observation = jnp.array([[1e4], [-1e4]])
    action, log_prob = policy.sample(observation, jnp.array([[6.0], [-6.0]]))
    assert jnp.isfinite(action).all()
    assert jnp.isfinite(log_prob).all()
    gradient = jax.grad(lambda o: policy.sample(o, jnp.ones((2, 1)))[1].sum())(observation)
    assert jnp.isfinite(gradient).all()


@pytest.mark.parametrize(("log_std", "clipped"), [(1.0, 1.0), (50.0, 2.0), (-50.0, -20.0)])
def test_the_log_standard_deviation_is_clipped(log_std: float, clipped: float) -> None:
    policy = GaussianPolicy(np.random.default_rng(1), 1, (), 1)
    output = policy.trunk.layers[0]
    policy = eqx.tree_at(
        lambda p: (p.trunk.layers[0].weight, p.trunk.layers[0].bias),
        policy,
        (jnp.zeros_like(output.weight), jnp.array([0.0, log_std])),
    )
    _, log_prob = policy.sample(jnp.zeros((1, 1)), jnp.zeros((1, 1)))
    assert float(log_prob[0]) == pytest.approx(-clipped - 0.5 * np.log(2 * np.pi), abs=1e-5)


@pytest.mark.parametrize("kind", [GaussianPolicy, DeterministicPolicy])
def test_the_mode_is_deterministic_and_within_bounds(kind: type) -> None:
    policy = kind(np.random.default_rng(1), 3, (8,), 2)
    observation = jnp.asarray(100 * RNG.normal(size=(50, 3)), jnp.float32)
    assert (jnp.abs(policy.mode(observation)) <= 1).all()
    if kind is GaussianPolicy:
        noiseless = policy.sample(observation, jnp.zeros((50, 2)))[0]
        np.testing.assert_allclose(policy.mode(observation), noiseless)
