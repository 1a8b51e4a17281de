"""What networks and critics compute, written in NumPy over single steps, in double precision.

Parameters may have another axis in front, of many versions of them: see `gradient`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import jax
import numpy as np
from episodes import OBSERVATION

from belated.critics.hc import SharedHCCritic
from belated.critics.markov import MarkovCritic
from belated.critics.segment import SegmentCritic
from belated.experience.batch import IntervalBatch
from belated.experience.step import ProblemShape


@cache
def quick_options() -> dict[str, Any]:
    """Options with which XLA compiles several times as fast, and what it compiles runs slower."""
    options: dict[str, Any] = {
        "xla_backend_optimization_level": 0,
        "xla_llvm_disable_expensive_passes": True,
        "xla_cpu_use_fusion_emitters": False,
        "xla_cpu_parallel_codegen_split_count": 1,
    }
    try:
        jax.jit(lambda: 0.0, compiler_options=options)()
    except jax.errors.JaxRuntimeError:  # another version of XLA that does not know one of them
        return {}
    return options


def quick_jit(function: Callable[..., Any], **how: Any) -> Any:
    """`jax.jit` for what is called a few times on little data."""
    return jax.jit(function, compiler_options=quick_options(), **how)


@cache
def update_of(backbone: Any) -> Any:
    """A backbone's update, compiled once for all tests that use it with batches of one shape."""
    return quick_jit(backbone.update)


def exact(tree: Any) -> Any:
    """The same parameters in double precision; keys stay as they are."""

    def convert(leaf: Any) -> Any:
        is_key = jax.numpy.issubdtype(leaf.dtype, jax.dtypes.prng_key)
        return leaf if is_key else np.asarray(leaf, np.float64)

    return jax.tree.map(convert, tree)


def gradient(loss: Callable[[Any], Any], parameters: Any) -> Any:
    """The derivative by every single parameter, exact to rounding errors.

    Each parameter in turn takes a tiny imaginary step; that of the loss is the derivative. All
    versions are computed side by side: the loss gets parameters with an axis in front.
    """
    tiny = 1e-30
    leaves, structure = jax.tree.flatten(exact(parameters))
    vector = np.concatenate([leaf.ravel() for leaf in leaves])
    versions = vector + tiny * 1j * np.eye(len(vector))
    ends = np.cumsum([leaf.size for leaf in leaves])[:-1]
    parts = [
        part.reshape(-1, *leaf.shape)
        for part, leaf in zip(np.split(versions, ends, axis=1), leaves, strict=True)
    ]
    slopes = np.split(loss(jax.tree.unflatten(structure, parts)).imag / tiny, ends)
    shaped = [slope.reshape(leaf.shape) for slope, leaf in zip(slopes, leaves, strict=True)]
    return jax.tree.unflatten(structure, shaped)


def linear(layer: Any, x: Any) -> Any:
    """A layer of rows (N, inputs)."""
    return x @ layer.weight + layer.bias[..., None, :]


def relu(x: Any) -> Any:
    return np.where(x.real > 0, x, 0)


def mlp(network: Any, x: Any, between: Callable[[Any], Any] = relu) -> Any:
    """A network of rows (N, inputs)."""
    for layer in network.layers[:-1]:
        x = between(linear(layer, x))
    return linear(network.layers[-1], x)


def normalized_mlp(network: Any, x: Any, statistics: Any = None) -> tuple[Any, list[Any]]:
    """A network of rows (N, inputs), normalised by its own statistics or by those given."""
    seen = []
    for number, (layer, norm) in enumerate(zip(network.layers, network.norms, strict=True)):
        x = x if number == 0 else relu(x)
        seen.append(moments(x) if statistics is None else statistics[number])
        x = linear(layer, normalized(norm, x, seen[-1]))
    return x, seen


def normalized(norm: Any, x: Any, statistics: Any) -> Any:
    mean, variance = statistics
    scaled = (x - mean) / np.sqrt(variance + 1e-3)
    return norm.scale[..., None, :] * scaled + norm.shift[..., None, :]


def moments(x: Any) -> tuple[Any, Any]:
    mean = x.mean(-2, keepdims=True)
    return mean, ((x - mean) ** 2).mean(-2, keepdims=True)


def normalized_on_both(base: Any, network: Any, rows: Any, following: Any, gradient: str) -> Any:
    """The outputs for rows of a network near a given one, and the outputs for the rows that follow.

    What the gradient must not see is computed with the parameters of the base.
    """
    count = len(rows)
    both = np.concatenate([rows, following]).astype(np.float64)
    _, joint = normalized_mlp(base, both)
    constant, _ = normalized_mlp(base, np.float64(following), joint)
    if gradient == "full":
        return normalized_mlp(network, both)[0][..., :count, :], constant
    own_x, own_following = both[:count], both[count:]
    x: Any = own_x
    for number, (layer, norm) in enumerate(zip(network.layers, network.norms, strict=True)):
        still_layer, still_norm = base.layers[number], base.norms[number]
        if number > 0:
            x, own_x, own_following = relu(x), relu(own_x), relu(own_following)
        if gradient == "straight-through":
            own, at_base = moments(x), moments(own_x)
            pairs = zip(own, joint[number], at_base, strict=True)
            used = tuple(o + (j - b) for o, j, b in pairs)
        else:
            together = np.broadcast_to(own_following, (*x.shape[:-2], *own_following.shape))
            used = moments(np.concatenate([x, together], axis=-2))
        x = linear(layer, normalized(norm, x, used))
        own_x = linear(still_layer, normalized(still_norm, own_x, joint[number]))
        own_following = linear(still_layer, normalized(still_norm, own_following, joint[number]))
    return x, constant


def squashed_sample(actor: Any, observation: Any, noise: Any) -> tuple[Any, Any]:
    """What a policy draws, given noise: actions and their log densities."""
    return squashed(mlp(actor.trunk, observation), noise)


def squashed(outputs: Any, noise: Any) -> tuple[Any, Any]:
    """Actions and their log densities, by the change of variables."""
    mean, log_std = np.split(outputs, 2, axis=-1)
    log_std = np.where(log_std.real < -20, -20, np.where(log_std.real > 2, 2, log_std))
    raw = mean + np.exp(log_std) * noise
    log_normal = -0.5 * noise**2 - log_std - 0.5 * np.log(2 * np.pi)
    return np.tanh(raw), (log_normal - np.log(1 - np.tanh(raw) ** 2)).sum(-1)


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def gru_step(reader: Any, hidden: Any, x: Any) -> Any:
    """The hidden states (N, units) after one more step (N, inputs)."""
    embedded = relu(linear(reader.embed, x))
    reset_x, update_x, new_x = np.split(linear(reader.gru.inputs, embedded), 3, axis=-1)
    reset_h, update_h, new_h = np.split(linear(reader.gru.recurrent, hidden), 3, axis=-1)
    reset, update = sigmoid(reset_x + reset_h), sigmoid(update_x + update_h)
    new = np.tanh(new_x + reset * new_h)
    return (1 - update) * new + update * hidden


def read(reader: Any, steps: Any) -> Any:
    """The hidden state (1, units) after steps (m, inputs), one after the other."""
    hidden = np.zeros((1, reader.embed.bias.shape[-1]))
    for step in steps:
        hidden = gru_step(reader, hidden, step[None])
    return hidden


def history_value(history: Any, steps: Any) -> Any:
    """H of real steps (m, D + A), straight from the paper's definitions."""
    if len(steps) == 0:
        return np.zeros(())
    if hasattr(history, "reader"):
        return linear(history.head, read(history.reader, steps))[..., 0, 0]
    total = np.zeros(())
    for k, term in enumerate(history.terms):
        for first, second in zip(steps, steps[k:], strict=False):
            pair = first if k == 0 else np.concatenate([first, second])
            total = total + mlp(term, pair[None])[..., 0, 0]
    return total


def histories(batch: IntervalBatch, shape: ProblemShape) -> list[tuple[Any, Any, Any]]:
    """The real steps before each step, before the one that follows it, and of the whole window."""
    found = []
    for row, (position, length) in enumerate(zip(batch.position, batch.length, strict=True)):
        steps, real = np.float64(batch.window[:, row]), batch.window_mask[:, row] > 0
        before, after, whole = (
            steps[: shape.overlap + t][real[: shape.overlap + t]]  # type: ignore[index]
            for t in (position, position + 1, length)
        )
        if position == length - 1:  # the next interval's overlap, with its own phases
            last = slice(length, shape.overlap + length)  # the window's last c places
            moved = steps[last].copy()  # type: ignore[index]
            moved[:, OBSERVATION - 1] = np.arange(-shape.overlap, 0) / shape.max_length
            after = moved[real[last]]
        found.append((before, after, whole))
    return found


def digests(critic: Any, many: Sequence[Any]) -> Any:
    """What a critic needs to know of some histories, each of steps (m, D + A)."""
    if isinstance(critic, MarkovCritic):
        return None
    if isinstance(critic, SegmentCritic):
        states = [read(critic.reader, steps)[..., 0, :] for steps in many]
        return np.stack(np.broadcast_arrays(*states), axis=-2)
    values = [history_value(critic.history, steps) for steps in many]
    return np.stack(np.broadcast_arrays(*values), axis=-1)


def value(critic: Any, digest: Any, observation: Any, action: Any) -> Any:
    """Q of steps (N, D) and (N, A) after histories that were digested; one row for each Q."""
    observation = np.broadcast_to(observation, (*action.shape[:-1], observation.shape[-1]))
    x = np.concatenate([observation, action], axis=-1)
    if isinstance(critic, MarkovCritic):
        return mlp(critic.network, x)[..., 0]
    if isinstance(critic, SegmentCritic):
        return linear(critic.head, gru_step(critic.reader, digest, x))[..., 0]
    if isinstance(critic, SharedHCCritic):
        return digest + np.stack([mlp(current, x)[..., 0] for current in critic.currents])
    return digest + mlp(critic.current, x)[..., 0]
