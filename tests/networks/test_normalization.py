"""Batch normalisation against NumPy in double precision, row by row."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import references
from references import exact, quick_jit

from belated.experience.step import ProblemShape
from belated.networks import BatchNormPolicy, NormalizedMLP
from belated.networks.normalization import GRADIENTS, Statistics, dead_units, moved

RNG = np.random.default_rng(0)
ROWS, FOLLOWING = (RNG.normal(1.0, 2.0, (7, 3)).astype(np.float32) for _ in range(2))
both: Any = quick_jit(NormalizedMLP.trained_on_both, static_argnums=3)
used: Any = quick_jit(NormalizedMLP.__call__)
trained: Any = quick_jit(NormalizedMLP.trained)


def network() -> NormalizedMLP:
    """One whose scales and shifts are not what they are at the start."""
    made = NormalizedMLP(np.random.default_rng(1), 3, (5, 4), 2)
    rng = np.random.default_rng(2)
    return jax.tree.map(lambda leaf: leaf + 0.3 * rng.normal(size=leaf.shape), made)  # type: ignore[no-any-return]


def by_loops(rows: Any) -> tuple[list[float], list[float]]:
    columns = [[float(x) for x in column] for column in np.transpose(rows)]
    means = [sum(column) / len(column) for column in columns]
    variances = [
        sum((x - mean) ** 2 for x in column) / len(column)
        for column, mean in zip(columns, means, strict=True)
    ]
    return means, variances


def test_statistics_are_the_means_and_variances_of_the_rows() -> None:
    for made, rows in (
        (Statistics.of(jnp.asarray(ROWS)), ROWS),
        (
            Statistics.of(jnp.asarray(ROWS)).joined(Statistics.of(jnp.asarray(FOLLOWING))),
            [*ROWS, *FOLLOWING],
        ),
    ):
        mean, variance = by_loops(rows)
        np.testing.assert_allclose(made.mean, mean, rtol=1e-6)
        np.testing.assert_allclose(made.variance, variance, rtol=1e-5)


def test_the_network_is_the_plain_one() -> None:
    mlp = network()
    outputs, seen = trained(mlp, ROWS)
    expected, statistics = references.normalized_mlp(exact(mlp), np.float64(ROWS))
    np.testing.assert_allclose(outputs, expected, atol=1e-5)
    for a, (mean, variance) in zip(seen, statistics, strict=True):
        np.testing.assert_allclose(a.mean, mean[0], atol=1e-6)
        np.testing.assert_allclose(a.variance, variance[0], atol=1e-5)


def test_one_joint_pass_is_two_passes_with_joint_statistics() -> None:
    mlp = network()
    first, second, seen = both(mlp, ROWS, FOLLOWING)
    together, of_all = trained(mlp, np.concatenate([ROWS, FOLLOWING]))
    np.testing.assert_allclose(np.concatenate([first, second]), together, atol=1e-5)
    for a, b in zip(jax.tree.leaves(seen), jax.tree.leaves(of_all), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-5)
    np.testing.assert_allclose(used(mlp, ROWS, seen), first, atol=1e-5)
    np.testing.assert_allclose(used(mlp, FOLLOWING, seen), second, atol=1e-5)


@pytest.mark.parametrize("gradient", GRADIENTS)
def test_how_the_gradient_treats_the_joint_statistics(gradient: str) -> None:
    mlp = network()

    @quick_jit
    def slope(mlp: NormalizedMLP) -> Any:
        def loss(mlp: NormalizedMLP) -> Any:
            rows, following, _ = mlp.trained_on_both(
                jnp.asarray(ROWS), jnp.asarray(FOLLOWING), gradient
            )
            return jnp.sum(jnp.sin(rows)) + jnp.sum(following)

        return jax.grad(loss)(mlp)

    base = exact(mlp)

    def plain_loss(changed: Any) -> Any:
        rows, _ = references.normalized_on_both(base, changed, ROWS, FOLLOWING, gradient)
        return np.sin(rows).sum((-2, -1))

    expected = references.gradient(plain_loss, base)
    for a, b in zip(jax.tree.leaves(slope(mlp)), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-4)


def test_the_values_are_the_same_whatever_the_gradient() -> None:
    first, *others = (both(network(), ROWS, FOLLOWING, gradient) for gradient in GRADIENTS)
    for other in others:
        for a, b in zip(jax.tree.leaves(first), jax.tree.leaves(other), strict=True):
            np.testing.assert_allclose(a, b, atol=1e-5)


def test_in_use_no_row_depends_on_the_others() -> None:
    mlp = network()
    _, seen = trained(mlp, ROWS)
    whole = used(mlp, ROWS, seen)
    alone = np.concatenate([used(mlp, row[None], seen) for row in ROWS])
    np.testing.assert_allclose(whole, alone, atol=1e-6)
    policy = BatchNormPolicy(np.random.default_rng(0), ProblemShape(3, 2, 1, 0), (5,))
    policy = policy.replaced(policy.trunk, trained(policy.trunk, ROWS)[1])
    np.testing.assert_allclose(policy.mode(ROWS)[2], policy.mode(ROWS[2:3])[0], atol=1e-6)  # type: ignore[arg-type]


def test_running_statistics_start_at_nothing_and_move() -> None:
    mlp = network()
    start = mlp.fresh_statistics
    assert all((s.mean == 0).all() and (s.variance == 1).all() for s in start)
    _, seen = trained(mlp, ROWS)
    after = moved(start, seen, 0.1)
    np.testing.assert_allclose(after[0].mean, 0.1 * ROWS.mean(0), rtol=1e-5)
    np.testing.assert_allclose(after[0].variance, 0.9 + 0.1 * ROWS.var(0), rtol=1e-5)


def test_units_that_are_the_same_for_all_rows_are_dead() -> None:
    mlp = NormalizedMLP(np.random.default_rng(1), 3, (5, 4), 2)
    assert dead_units([trained(mlp, ROWS)[1]]) == 0
    bias = mlp.layers[0].bias.at[:3].set(-1e3)  # below 0 whatever the input
    object.__setattr__(mlp.layers[0], "bias", bias)
    assert dead_units([trained(mlp, ROWS)[1]]) == pytest.approx(3 / 9)
