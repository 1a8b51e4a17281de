"""Values straight from the definitions, by following every trajectory: slow, and nothing shared.

An interval's length is drawn when it begins, as in Definition 1; the solver under test never does
that. Everything is a sum over all that can happen within some number of steps.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from belated.tabular import TabularDRMDP

Chooser = Callable[[tuple[Any, ...], int, int], list[float]]
"""From (history since t_i − c, state, position) to the probabilities of the actions."""


class BruteForce:
    """All trajectories of a problem, up to a horizon."""

    def __init__(self, problem: TabularDRMDP, horizon: int) -> None:
        self.problem = problem
        self.horizon = horizon

    def expected_return(self, choose: Chooser | None) -> float:
        """J of a policy; of the best one if it is None."""
        problem = self.problem
        pads = (None,) * problem.overlap
        value = self._value(choose)
        return sum(
            float(chance) * value(pads, state, self.horizon)
            for state, chance in enumerate(problem.start)
            if chance > 0
        )

    def _value(self, choose: Chooser | None) -> Callable[[tuple[Any, ...], int, int], float]:
        """V(window so far, state, steps left), not knowing how long the interval is."""

        @cache
        def value(window: tuple[Any, ...], state: int, left: int) -> float:
            if left == 0 or self._is_over(window, state):
                return 0.0
            count = 1 if state in self.problem.terminal else self.problem.number_of_actions(state)
            worths = [self._worth_of(value, (*window, (state, a)), left) for a in range(count)]
            if choose is None:
                return max(worths)
            position = len(window) - self.problem.overlap
            chances = [1.0] if count == 1 else choose(window, state, position)
            return sum(p * w for p, w in zip(chances, worths, strict=True))

        return value

    def _is_over(self, window: tuple[Any, ...], state: int) -> bool:
        """Behind an absorbing end nothing counts any more once the window holds nothing else."""
        return state in self.problem.terminal and all(
            step is not None and step[0] in self.problem.terminal for step in window
        )

    def _worth_of(self, value: Any, window: tuple[Any, ...], left: int) -> float:
        """What taking the last step of a window is worth."""
        problem = self.problem
        state, action = window[-1]
        taken = len(window) - problem.overlap
        # Of the lengths that this interval could have had, those that are left.
        possible = {
            n + 1: float(p) for n, p in enumerate(problem.lengths) if p > 0 and n + 1 >= taken
        }
        everything = sum(possible.values())
        total = 0.0
        for following in range(len(problem.start)):
            if state in problem.terminal:
                chance = float(following == state)
            else:
                chance = float(problem.transition[state, action, following])
            if chance == 0:
                continue
            if following in problem.terminal and problem.ends == "reveal":
                total += chance * problem.reward(window)
                continue
            for length, weight in possible.items():
                if length == taken:
                    kept = window[len(window) - problem.overlap :]
                    later = value(kept, following, left - 1)
                    gain = problem.reward(window) + problem.gamma * later
                    total += chance * weight / everything * gain
            goes_on = sum(weight for length, weight in possible.items() if length > taken)
            if goes_on > 0:
                later = value(window, following, left - 1)
                total += chance * goes_on / everything * problem.gamma * later
        return total
