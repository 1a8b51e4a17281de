"""A policy as NumPy computes it: for one observation at a time, and for machines without JAX."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from belated.experience.choices import decode, joint_codes
from belated.experience.step import ProblemShape

Floats = npt.NDArray[np.float32]
Doubles = npt.NDArray[np.float64]


@dataclass(frozen=True)
class PlainPolicy:
    """Layers with one activation in between, from observations to deterministic actions.

    It computes in float64: whatever else does the same in float64 gives the same action.

    Attributes:
        weights: W of each layer, (inputs, outputs).
        biases: b of each layer, (outputs,).
        activation: "relu" or "tanh", between the layers.
        squash: "tanh" or "clip", of the last layer's outputs to [−1, 1]; or "choose", of the option
            with the largest output for each component.
        mean: what is subtracted from observations first.
        scale: what they are divided by then, before they are bounded by ±``bound``.
        bound: infinite if they are not.
        low: the smallest actions.
        high: the largest actions.
        choices: how many options each component of a discrete action has.
        mask: where in an observation it is told which of them are allowed; None for nowhere.
        joint: whether there is an output for each joint action, not for each option.
    """

    weights: tuple[Doubles, ...]
    biases: tuple[Doubles, ...]
    activation: str
    squash: str
    mean: Doubles
    scale: Doubles
    bound: float = float("inf")
    low: Any = -1.0  # or (A,)
    high: Any = 1.0
    choices: tuple[int, ...] = ()
    mask: int | None = None
    joint: bool = False

    @classmethod
    def of(cls, layers: Any, activation: str, squash: str, **more: Any) -> PlainPolicy:
        """Take over a network's layers."""
        weights, biases = (
            tuple(np.asarray(getattr(layer, name), np.float64) for layer in layers)
            for name in ("weight", "bias")
        )
        size = len(weights[0])
        first = {"mean": np.zeros(size), "scale": np.ones(size)} | more
        mean, scale = (np.asarray(first.pop(name), np.float64) for name in ("mean", "scale"))
        return cls(weights, biases, activation, squash, mean, scale, **first)

    def without_spread(self) -> PlainPolicy:
        """The same without the second half of its outputs, which says how far actions spread."""
        size = len(self.biases[-1]) // 2
        weights = (*self.weights[:-1], self.weights[-1][:, :size].copy())
        return replace(self, weights=weights, biases=(*self.biases[:-1], self.biases[-1][:size]))

    def choosing(self, shape: ProblemShape, joint: bool = False) -> PlainPolicy:
        """The same for a problem with discrete actions."""
        mask = shape.state_size - shape.action_size if shape.masked else None
        joint = joint and len(shape.choices) > 1  # (else it makes no difference)
        return replace(self, choices=shape.choices, mask=mask, joint=joint)

    def seeing(self, mean: Any, scale: Any, bound: float) -> PlainPolicy:
        """The same with observations that are normalised first."""
        mean, scale = (np.asarray(x, np.float64) for x in (mean, scale))
        return replace(self, mean=mean, scale=scale, bound=bound)

    def within(self, low: Any, high: Any) -> PlainPolicy:
        """The same with actions from ``low`` to ``high`` instead of −1 to 1."""
        return replace(self, low=np.asarray(low, np.float64), high=np.asarray(high, np.float64))

    def __call__(self, observation: npt.ArrayLike) -> npt.NDArray[Any]:
        """The actions for observations (..., D): (..., A), or integers (..., components)."""
        x: Any = np.asarray(observation, np.float32).astype(np.float64)
        allowed = None if self.mask is None else x[..., self.mask : self.mask + sum(self.choices)]
        if self.bound != float("inf"):
            x = np.clip((x - self.mean) / self.scale, -self.bound, self.bound)
        *hidden, (last, bias) = zip(self.weights, self.biases, strict=True)
        for weight, shift in hidden:
            x = x @ weight + shift
            x = np.maximum(x, 0) if self.activation == "relu" else np.tanh(x)
        x = x @ last + bias
        if self.choices:
            return self._chosen(x, allowed)
        x = np.tanh(x) if self.squash == "tanh" else np.minimum(np.maximum(x, -1), 1)
        x = self.low + (x + 1) / 2 * (self.high - self.low)
        action: Floats = np.minimum(np.maximum(x, self.low), self.high).astype(np.float32)
        return action

    def _chosen(self, scores: Any, allowed: Any) -> npt.NDArray[np.int64]:
        """One number for each component, from ``low`` on."""
        if self.joint:
            codes = joint_codes(self.choices)
            if allowed is not None:
                scores = np.where(allowed @ codes.T > len(self.choices) - 0.5, scores, -np.inf)
            scores = codes[scores.argmax(axis=-1)]
        elif allowed is not None:
            scores = np.where(allowed > 0, scores, -np.inf)
        numbers: npt.NDArray[np.int64] = decode(scores, self.choices) + np.asarray(self.low, int)
        return numbers
