"""What an interval is worth: the interval rewards r(τ) of the paper.

Every reward is a function of a `Window`: the steps τ_{t_i−c : t_i+n_i}, that is, the interval's
n_i steps and the c before them.
"""

from __future__ import annotations

import inspect
import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from belated.envs.named_function import import_function
from belated.parts import register, registered


class Window:
    """The steps that an interval's reward may depend on, collected as they happen.

    Each list has one entry for each step from t_i − c on; entries before the episode's start are
    zeros with ``mask`` False.
    """

    def __init__(self, overlap: int) -> None:
        self.overlap = overlap
        self.rewards: list[float] = []
        self.mask: list[bool] = []
        self.observations: list[npt.NDArray[Any]] = []
        self.actions: list[npt.NDArray[Any]] = []

    @property
    def length(self) -> int:
        """n_i so far: the steps after the overlap."""
        return len(self.rewards) - self.overlap

    def start_episode(self) -> None:
        """Forget everything; nothing precedes the first interval."""
        self.rewards = [0.0] * self.overlap
        self.mask = [False] * self.overlap
        self.observations = []
        self.actions = []

    def start_interval(self) -> None:
        """Keep the last c steps: they precede the next interval."""
        for steps in (self.rewards, self.mask, self.observations, self.actions):
            del steps[: len(steps) - self.overlap]

    def add_step(self, observation: Any, action: Any) -> None:
        """Record a step's observation and action (copied: environments may reuse buffers)."""
        observation, action = np.array(observation), np.array(action)
        if not self.observations:
            self.observations = [np.zeros_like(observation)] * self.overlap
            self.actions = [np.zeros_like(action)] * self.overlap
        self.observations.append(observation)
        self.actions.append(action)

    def add_reward(self, reward: float) -> None:
        """Record a step's reward."""
        self.rewards.append(reward)
        self.mask.append(True)


class IntervalReward(ABC):
    """The reward of a whole interval.

    A subclass that is a frozen dataclass and registered (`belated.register`) can be given by name,
    as in ``reward="sum"``. Its ``str()`` must be text that `parse_reward` turns back into it.
    """

    name: ClassVar[str] = ""
    """Its name in text; a colon and arguments may follow."""
    needs_steps: ClassVar[bool] = False
    """Whether the reward looks at observations and actions, not only at per-step rewards."""

    @abstractmethod
    def __call__(self, window: Window) -> float:
        """Return r(τ) for a finished interval."""

    def check(self, max_length: int, overlap: int) -> None:  # noqa: B027 (most have no limits)
        """Raise ValueError if the reward is not defined for such intervals."""

    @classmethod
    def parse(cls, arguments: str) -> IntervalReward:
        """Make one from the arguments that follow its name in text; most take none."""
        if arguments:
            raise ValueError(f"{cls.name} takes no arguments, got {arguments!r}")
        return cls()

    def __str__(self) -> str:
        return self.name


@register
@dataclass(frozen=True)
class Sum(IntervalReward):
    """The sum of the per-step rewards in [t_i − c, t_i + n_i − c): the paper's r_c."""

    name: ClassVar[str] = "sum"

    def __call__(self, window: Window) -> float:  # noqa: D102
        return math.fsum(window.rewards[: window.length])


class _WithoutOverlap(IntervalReward):
    def check(self, max_length: int, overlap: int) -> None:
        if overlap > 0:
            raise ValueError(
                f"The {self} reward is not defined for overlapping intervals; use overlap=0, "
                "or write a reward function of your own."
            )


@register
@dataclass(frozen=True)
class Max(_WithoutOverlap):
    """Ten times the largest per-step reward."""

    name: ClassVar[str] = "max"

    def __call__(self, window: Window) -> float:  # noqa: D102
        return 10.0 * max(window.rewards)


@register
@dataclass(frozen=True)
class Square(_WithoutOverlap):
    """Four times the mean per-step reward m, or 4·sign(m)·m² where |m| ≥ 1."""

    name: ClassVar[str] = "square"

    def __call__(self, window: Window) -> float:  # noqa: D102
        mean = math.fsum(window.rewards) / window.length
        return 4.0 * mean * max(1.0, abs(mean))


@register
@dataclass(frozen=True)
class SumSquare(_WithoutOverlap):
    """The sum of the squares of the per-step rewards, each with its sign: Σ|r|·r."""

    name: ClassVar[str] = "sum-square"

    def __call__(self, window: Window) -> float:  # noqa: D102
        return math.fsum(abs(reward) * reward for reward in window.rewards)


@register
@dataclass(frozen=True)
class SquareSum(_WithoutOverlap):
    """The square of the sum of the per-step rewards, with its sign, for each step: |Σr|·Σr/n."""

    name: ClassVar[str] = "square-sum"

    def __call__(self, window: Window) -> float:  # noqa: D102
        total = math.fsum(window.rewards)
        return abs(total) * total / window.length


@register
@dataclass(frozen=True)
class WeightedSum(IntervalReward):
    """Σ w_k · r_k over the window, where k = j − t_i + c counts from the overlap's first step.

    Args:
        weights: c + n_max numbers; shorter intervals use the first ones.
    """

    weights: tuple[float, ...]

    name: ClassVar[str] = "weighted"

    def __post_init__(self) -> None:
        weights = tuple(float(weight) for weight in self.weights)
        if not weights or not all(map(math.isfinite, weights)):
            raise ValueError(f"WeightedSum needs finite weights, got {weights}.")
        object.__setattr__(self, "weights", weights)

    def __call__(self, window: Window) -> float:  # noqa: D102
        # An interval may be shorter than n_max and leave the last weights unused.
        pairs = zip(self.weights, window.rewards, strict=False)
        return math.fsum(weight * reward for weight, reward in pairs)

    def check(self, max_length: int, overlap: int) -> None:  # noqa: D102
        if len(self.weights) != overlap + max_length:
            raise ValueError(
                f"WeightedSum has {len(self.weights)} weights; intervals of up to {max_length} "
                f"steps with an overlap of {overlap} need {overlap + max_length}."
            )

    @classmethod
    def parse(cls, arguments: str) -> WeightedSum:
        """Make one from numbers separated by commas."""
        return cls(tuple(float(weight) for weight in arguments.split(",")))

    def __str__(self) -> str:
        return f"{self.name}:" + ",".join(map(repr, self.weights))


@dataclass(frozen=True)
class FunctionReward(IntervalReward):
    """A user's function of the window.

    Args:
        function: called as ``function(observations, actions, rewards)`` with arrays whose first
            axis is the window's c + n_i steps. A function with a parameter ``mask`` also gets
            ``mask=``, which is False for steps before the episode's start; for c > 0 it must
            have one.
        path: ``"package.module:function"`` if it was given as text.
    """

    function: Callable[..., float]
    path: str = ""
    takes_mask: bool = field(init=False, repr=False)

    needs_steps: ClassVar[bool] = True

    def __post_init__(self) -> None:
        try:
            signature = inspect.signature(self.function)
            takes_mask = "mask" in signature.parameters
            signature.bind(*range(3), **({"mask": None} if takes_mask else {}))
        except (TypeError, ValueError):
            raise ValueError(
                f"The reward function {self} must take (observations, actions, rewards) "
                "or (observations, actions, rewards, mask)."
            ) from None
        object.__setattr__(self, "takes_mask", takes_mask)

    def __call__(self, window: Window) -> float:  # noqa: D102
        value = self.function(
            np.stack(window.observations),
            np.stack(window.actions),
            np.asarray(window.rewards),
            **({"mask": np.asarray(window.mask)} if self.takes_mask else {}),
        )
        try:
            return float(value)
        except (TypeError, ValueError):
            raise ValueError(
                f"The reward function {self} must return a number, got {value!r}."
            ) from None

    def check(self, max_length: int, overlap: int) -> None:  # noqa: D102
        if overlap > 0 and not self.takes_mask:
            raise ValueError(
                f"With an overlap of {overlap} the reward function {self} must also take the "
                "mask: (observations, actions, rewards, mask). It is False for steps before the "
                "episode's start."
            )

    def __str__(self) -> str:
        return self.path or getattr(self.function, "__qualname__", repr(self.function))


RewardLike = IntervalReward | str | Callable[..., float]


def parse_reward(spec: RewardLike) -> IntervalReward:
    """Turn a name or a function into an interval reward.

    >>> parse_reward("sum")
    Sum()
    >>> parse_reward("weighted:1,0.5")
    WeightedSum(weights=(1.0, 0.5))

    Raises:
        ValueError: if there is no such reward.
    """
    if isinstance(spec, IntervalReward):
        return spec
    if isinstance(spec, str):
        return _parse_text(spec)
    if callable(spec):
        return FunctionReward(spec)
    raise ValueError(f"Expected a reward's name or a function, got {spec!r}. {_what_there_is()}")


def _forms() -> dict[str, type[IntervalReward]]:
    """The registered rewards by name; a subclass that does not change its name has none."""
    forms: dict[str, type[IntervalReward]] = {}
    for form in registered(IntervalReward):
        name = vars(form).get("name")
        if name in forms:
            raise ValueError(
                f"Two interval rewards are called {name!r}: {forms[name].__name__} and "
                f"{form.__name__}. Give one of them another name."
            )
        if name:
            forms[name] = form
    return forms


def as_text(reward: IntervalReward) -> str | None:
    """The text that `parse_reward` turns back into a reward, if there is one.

    >>> as_text(Sum()), as_text(FunctionReward(lambda observations, actions, rewards: 0.0))
    ('sum', None)
    """
    try:
        return str(reward) if parse_reward(str(reward)) == reward else None
    except ValueError:
        return None


def _what_there_is() -> str:
    return (
        f"There are {', '.join(_forms())}; weighted is written weighted:w0,w1,... Or give a "
        "function of your own, as a callable or as package.module:function."
    )


def names_code(text: str) -> bool:
    """Whether a reward's text names a function to import.

    >>> names_code("weighted:1,0.5"), names_code("my_rewards:smoothness")
    (False, True)
    """
    name, colon, _ = text.partition(":")
    return bool(colon) and name not in _forms()


def _parse_text(text: str) -> IntervalReward:
    if names_code(text):
        return FunctionReward(import_function(text, "the reward function"), path=text)
    name, _, arguments = text.partition(":")
    form = _forms().get(name)
    if form is None:
        raise ValueError(f"There is no interval reward {text!r}. {_what_there_is()}")
    try:
        return form.parse(arguments)
    except ValueError as error:
        raise ValueError(f"Cannot read the reward {text!r}: {error}.") from None
