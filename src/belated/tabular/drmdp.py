"""Finite delayed-reward MDPs."""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from belated.ranges import checked, non_negative_int, number, one_of

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

StateAction = tuple[int, int]
"""A state and the action taken in it."""
Trajectory = tuple[StateAction | None, ...]
"""Steps in order of time; None stands for a step before the episode's start."""
Reward = Callable[[Trajectory], float]
"""r_c(τ_{t_i−c:t_i+n_i}): a function of the c steps before an interval and of its own n_i."""


Ends = Literal["reveal", "absorb"]
"""What the end of an episode does to the interval that it falls into."""


@dataclass(frozen=True)
class TabularDRMDP:
    """A finite delayed-reward MDP (Definition 1; with an overlap, the appendix's DRMDP-c).

    Attributes:
        transition: p(s' | s, a), shape (S, A, S).
        start: p(s_0), shape (S,).
        lengths: q_n of the lengths 1, 2, …, shape (n_max,).
        reward: what an interval is worth.
        gamma: the discount, in (0, 1].
        overlap: c.
        terminal: states in which the episode is over.
        actions: how many of the A actions each state has; None for all.
        ends: "reveal" if the end of an episode also ends its last interval, however short, and
            reveals that interval's reward, as environments do; "absorb" if time goes on in the
            terminal state, as in the paper, whose horizon is infinite: the last interval gets as
            long as any other. What lies behind the end altogether must be worth 0 then.
        state_names: what to call the states.
        action_names: what to call the actions of each state.
    """

    transition: Floats
    start: Floats
    lengths: Floats
    reward: Reward
    gamma: float
    overlap: int = 0
    terminal: tuple[int, ...] = ()
    actions: tuple[int, ...] | None = None
    ends: Ends = "reveal"
    state_names: tuple[str, ...] = ()
    action_names: tuple[tuple[str, ...], ...] = ()

    def __post_init__(self) -> None:
        for name in ("transition", "start", "lengths"):
            object.__setattr__(self, name, _numbers(getattr(self, name), name))
        shape = self.transition.shape
        if len(shape) != 3 or shape[0] != shape[2] or 0 in shape:
            raise ValueError(f"transition must have the shape (S, A, S), got {shape}.")
        states, actions, _ = shape
        if not set(self.terminal) <= set(range(states)):
            raise ValueError(f"There are {states} states; terminal is {self.terminal}.")
        if self.start.shape != (states,):
            raise ValueError(f"start must have {states} probabilities, got {self.start.shape}.")
        if self.lengths.ndim != 1 or len(self.lengths) == 0:
            raise ValueError("lengths must hold the probabilities of the lengths 1, 2, ….")
        if self.actions is not None and (
            len(self.actions) != states or not all(1 <= n <= actions for n in self.actions)
        ):
            raise ValueError(
                f"actions must say for each of {states} states how many of the {actions} actions "
                f"it has, got {self.actions}."
            )
        _check_distribution(self.start, "start")
        _check_distribution(self.lengths, "lengths")
        if self.lengths[-1] == 0:
            raise ValueError("The longest length must be possible; leave out trailing zeros.")
        checked(self, gamma=_discount, overlap=non_negative_int, ends=one_of("reveal", "absorb"))
        if not callable(self.reward):
            raise ValueError(f"reward must be a function of a trajectory, got {self.reward!r}.")
        for names in (self.state_names, self.action_names):
            if names and len(names) != states:
                raise ValueError(f"There are {states} states, but names for {len(names)}.")
        for state in range(states):
            self._check_state(state)
        for name in ("transition", "start", "lengths"):  # they may be off by 1e-9
            array = getattr(self, name)
            total = array.sum(axis=-1, keepdims=True)
            object.__setattr__(self, name, array / np.where(total > 0, total, 1))
        if self.gamma == 1:
            self._check_ends()

    def _check_state(self, state: int) -> None:
        if state in self.terminal:
            if self.start[state] > 0:
                raise ValueError(
                    f"An episode cannot start in the terminal state {self.state_name(state)}."
                )
            return
        for action in range(self.number_of_actions(state)):
            _check_distribution(
                self.transition[state, action],
                f"p(·|{self.state_name(state)}, {self.action_name(state, action)})",
            )

    def _check_ends(self) -> None:
        """Without a discount, refuse states from which no action ever leads to an end."""
        ends = np.isin(np.arange(len(self.start)), self.terminal)
        leads = np.zeros((len(self.start),) * 2, bool)
        for state in np.flatnonzero(~ends).tolist():
            leads[state] = self.transition[state, : self.number_of_actions(state)].any(axis=0)
        reached, ending = self.start > 0, ends
        for _ in self.start:
            reached = reached | leads[reached].any(axis=0)
            ending = ending | leads[:, ending].any(axis=1)
        endless = np.flatnonzero(reached & ~ending)
        if len(endless):
            raise ValueError(
                "With γ = 1 every episode must end, but from the state "
                f"{self.state_name(int(endless[0]))} no end can be reached."
            )

    @property
    def max_length(self) -> int:
        """n_max."""
        return len(self.lengths)

    def number_of_actions(self, state: int) -> int:
        """How many actions a state has; in a terminal one there is nothing to choose."""
        if state in self.terminal:
            return 1
        return self.transition.shape[1] if self.actions is None else self.actions[state]

    def hazard(self, position: int) -> float:
        """Return q_n(n = position + 1 | n > position): how likely a step here is the last."""
        return float(self.lengths[position] / self.lengths[position:].sum())

    def following(self, state: int, action: int) -> Floats:
        """p(· | s, a); time goes on in terminal states."""
        row: Floats = (
            np.eye(len(self.start))[state]
            if state in self.terminal
            else self.transition[state, action]
        )
        return row

    def worth(self, trajectory: Trajectory) -> float:
        """The reward of an interval.

        Raises:
            ValueError: if it is no finite number.
        """
        value = self.reward(trajectory)
        if not isinstance(value, (numbers.Real, np.bool_)) or not math.isfinite(value):
            raise ValueError(
                f"The reward of the interval {self.describe(trajectory)} is {value!r}; it must be "
                "a finite number."
            )
        return float(value)

    def state_name(self, state: int) -> str:
        """What a state is called."""
        return self.state_names[state] if self.state_names else str(state)

    def action_name(self, state: int, action: int) -> str:
        """What an action is called; its number if it has no name."""
        if self.action_names and action < len(self.action_names[state]):
            return self.action_names[state][action]
        return str(action)

    def describe(self, trajectory: Trajectory) -> str:
        """A trajectory by the names of its states and, where there is a choice, its actions."""

        def step(pair: StateAction | None) -> str:
            if pair is None:
                return "·"
            choice = self.number_of_actions(pair[0]) > 1
            return f"{self.state_name(pair[0])} {self.action_name(*pair) if choice else ''}".strip()

        return ", ".join(map(step, trajectory)) or "nothing"


def _discount(value: Any, name: str) -> float:
    value = number(value, name)
    if not 0 < value <= 1:
        raise ValueError(f"{name} must be in (0, 1], got {value}.")
    return float(value)


def _numbers(values: Any, name: str) -> Floats:
    try:
        return np.asarray(values, np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be an array of numbers, got {values!r}.") from None


def _check_distribution(probabilities: Floats, name: str) -> None:
    total = probabilities.sum()
    if not (probabilities >= 0).all() or not abs(total - 1) <= 1e-9:
        raise ValueError(
            f"{name} must be a distribution, got {probabilities.tolist()}, which adds up to "
            f"{total:.12g}."
        )
