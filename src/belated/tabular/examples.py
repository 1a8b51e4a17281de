"""The paper's small problems, and the smallest ones on which its claims fail."""

from __future__ import annotations

from typing import Any

import numpy as np

from belated.tabular.drmdp import Ends, Reward, TabularDRMDP, Trajectory

END = "the end"
_HALVES = 0.5


def _deterministic(
    moves: dict[str, dict[str, str] | str],
    start: dict[str, float],
    length: int,
    reward: Reward,
    gamma: float,
    **more: Any,
) -> TabularDRMDP:
    """A problem whose moves are certain, from the name of each state to what its actions lead to.

    Args:
        moves: for each state its actions by name, each with the state that follows, or that state
            alone if there is no choice. The end is what is called so.
        start: the states' probabilities at the start.
        length: the length of all intervals.
        reward: what an interval is worth.
        gamma: the discount.
        **more: the overlap, and what the end does.
    """
    choices = {
        state: following if isinstance(following, dict) else {"": following}
        for state, following in moves.items()
    }
    reached = {following for actions in choices.values() for following in actions.values()}
    names = [*choices, *sorted(reached - choices.keys())]
    counts = [len(choices.get(name, {"": ""})) for name in names]
    transition = np.zeros((len(names), max(counts), len(names)))
    for state, actions in enumerate(choices.values()):
        for action, following in enumerate(actions.values()):
            transition[state, action, names.index(following)] = 1
    lengths = np.zeros(length)
    lengths[-1] = 1
    return TabularDRMDP(
        transition,
        np.array([start.get(name, 0.0) for name in names]),
        lengths,
        reward,
        gamma,
        terminal=tuple(names.index(name) for name in names if name == END),
        actions=tuple(counts),
        state_names=tuple(names),
        action_names=tuple(tuple(choices.get(name, {})) for name in names),
        **more,
    )


def xor(gamma: float = 0.99, ends: Ends = "reveal") -> TabularDRMDP:
    """Fact 1's example: what to do in B depends on where the episode started.

    An interval is worth i ⊕ j for the start A_i and the action j.
    """

    def reward(trajectory: Trajectory) -> float:
        first, last = trajectory[0], trajectory[-1]
        assert first is not None
        assert last is not None
        return float(first[0] < 2 and first[0] != last[1])

    return _deterministic(
        {"A₀": "B", "A₁": "B", "B": {"0": END, "1": END}},
        {"A₀": _HALVES, "A₁": _HALVES}, 2, reward, gamma, ends=ends,
    )  # fmt: skip


def fixed_point_bias(gamma: float = 0.99, ends: Ends = "reveal") -> TabularDRMDP:
    """The appendix's example of the fixed-point bias."""
    return _deterministic(
        {"A": {"a₀": "C", "a₁": "D"}, "B": "D", "C": END, "D": END},
        {"A": _HALVES, "B": _HALVES}, 2,
        SumOf({(0, 0): 0.01, (0, 1): 1.0, (1, 0): -1.0}), gamma, ends=ends,
    )  # fmt: skip


def big_and_little(gamma: float = 0.99, ends: Ends = "reveal") -> TabularDRMDP:
    """The appendix's past-invariant problem whose optimum is not in Π_s.

    The first interval is worth i × j for the start (A_b: 10, A_l: 0.1) and the action j in B; the
    interval after −1 is worth 5.
    """

    def reward(trajectory: Trajectory) -> float:
        first, last = trajectory[0], trajectory[-1]
        assert first is not None
        assert last is not None
        if first[0] >= 3:
            return 5.0 * (first[0] == 3)
        return (10.0, 0.1)[first[0]] * (1, -1)[last[1]]

    return _deterministic(
        {"A_b": "B", "A_l": "B", "B": {"+1": END, "−1": "C₋"}, "C₋": END},
        {"A_b": _HALVES, "A_l": _HALVES}, 2, reward, gamma, ends=ends,
    )  # fmt: skip


def off_policy_bias(gamma: float = 0.99) -> TabularDRMDP:
    """Two steps, two actions each; the first is worth 0 or 1, the second 0 or 0.1."""
    return _deterministic(
        {"first": {"bad": "last", "good": "last"}, "last": {"bad": END, "good": END}},
        {"first": 1.0}, 2, SumOf({(0, 1): 1.0, (1, 1): 0.1}), gamma,
    )  # fmt: skip


def early_end(gamma: float = 0.5, ends: Ends = "reveal") -> TabularDRMDP:
    """A plain sum in which an episode may end inside an interval.

    The start is worth 10 or 0. In B one may stop, or go on to C, which is worth 1. If an end
    reveals, stopping gets the past reward one step sooner.
    """
    return _early_end(SumOf({(0, 0): 10.0, (3, 0): 1.0}), gamma, ends)


def early_end_of_a_mean(gamma: float = 1.0, ends: Ends = "reveal") -> TabularDRMDP:
    """The same with the mean of an interval as its reward, and without a discount.

    If an end reveals, stopping makes the interval shorter, and its mean larger after a rich past.
    """
    add_up = SumOf({(0, 0): 10.0, (3, 0): 1.0})
    return _early_end(lambda trajectory: add_up(trajectory) / len(trajectory), gamma, ends)


def _early_end(reward: Reward, gamma: float, ends: Ends) -> TabularDRMDP:
    return _deterministic(
        {"rich": "B", "poor": "B", "B": {"stop": END, "go on": "C"}, "C": END},
        {"rich": _HALVES, "poor": _HALVES}, 3, reward, gamma, ends=ends,
    )  # fmt: skip


def entangled_overlap(gamma: float = 0.9) -> TabularDRMDP:
    """One state, two actions, n = 2, c = 2: an interval is worth a ⊕ a' of the two steps before it.

    Histories of at least two steps settle the reward, so it is strongly past-invariant by the
    paper's definition. The second action of an interval should still look at the first.
    """

    def reward(trajectory: Trajectory) -> float:
        before, last = trajectory[0], trajectory[1]
        return 0.0 if before is None or last is None else float(before[1] != last[1])

    return _deterministic({"S": {"0": "S", "1": "S"}}, {"S": 1.0}, 2, reward, gamma, overlap=2)


def entangled_state(gamma: float = 0.9) -> TabularDRMDP:
    """The same with a state of chance in place of the first action, so that no policy knows it.

    A₀ or A₁ by chance, then B, and so on without end; n = c = 2. An interval is worth 1 if the
    action in B before it differs from the i of the A_i before that.
    """

    def reward(trajectory: Trajectory) -> float:
        first, second = trajectory[0], trajectory[1]
        return 0.0 if first is None or second is None else float(first[0] != second[1])

    transition = np.zeros((3, 2, 3))
    transition[:2, 0, 2] = 1
    transition[2, :, :2] = 0.5
    return TabularDRMDP(
        transition, np.array([0.5, 0.5, 0]), np.array([0, 1.0]), reward, gamma, overlap=2,
        actions=(1, 1, 2), state_names=("A₀", "A₁", "B"), action_names=((), (), ("0", "1")),
    )  # fmt: skip


def end_after_overlap(gamma: float = 0.9, ends: Ends = "reveal") -> TabularDRMDP:
    """The paper's r_c with n = c = 2, in which an episode may end with an interval.

    The start is worth 10 or 0. In B one may stop, or go on, which costs 1. An interval is worth the
    two steps before it, so if an end reveals, wealth is only revealed if the episode goes on.
    """
    add_up = SumOf({(0, 0): 10.0, (2, 1): -1.0})
    return _deterministic(
        {"rich": "B", "poor": "B", "B": {"stop": END, "go on": "C"}, "C": "D", "D": END},
        {"rich": _HALVES, "poor": _HALVES}, 2, lambda trajectory: add_up(trajectory[:2]), gamma,
        overlap=2, ends=ends,
    )  # fmt: skip


def phase_matters(gamma: float = 0.5) -> TabularDRMDP:
    """A plain sum, n = 2, whose best policy depends on the position in the interval.

    In S one may stay, worth 1, or go to T, which is worth 2.1 and leads back. Two steps of 1 are
    worth less than 2.1 within an interval, but not across two.
    """
    return _deterministic(
        {"start": "S", "S": {"stay": "S", "go": "T"}, "T": "S"},
        {"start": 1.0}, 2, SumOf({(1, 0): 1.0, (2, 0): 2.1}), gamma,
    )  # fmt: skip


def counted_twice(gamma: float = 1.0, ends: Ends = "reveal") -> TabularDRMDP:
    """The sum of the whole window, n = 2, c = 1: the last step of an interval counts in two.

    In S one may take 1 at once, or 0.8 in the next step. Whichever of the two comes last in its
    interval counts twice.
    """
    return _deterministic(
        {
            "before": "S", "S": {"now": "U", "later": "V"}, "U": "W", "V": "W", "W": END,
        },
        {"before": _HALVES, "S": _HALVES}, 2, SumOf({(1, 0): 1.0, (3, 0): 0.8}), gamma,
        overlap=1, ends=ends,
    )  # fmt: skip


def differ_from_before(gamma: float = 0.5) -> TabularDRMDP:
    """One state, n = 2: an interval is worth 1 if its two actions differ.

    Without the phase, a coin does better than any deterministic policy.
    """
    return _deterministic(
        {"S": {"0": "S", "1": "S"}}, {"S": 1.0}, 2,
        lambda trajectory: float(trajectory[0] != trajectory[1]), gamma,
    )  # fmt: skip


class SumOf:
    """The interval reward Σ r(s, a) from a table; steps not in the table are worth 0."""

    def __init__(self, rewards: dict[tuple[int, int], float]) -> None:
        self.rewards = rewards

    def __call__(self, trajectory: Trajectory) -> float:
        """Add up the steps; those before the episode's start count 0."""
        return sum(self.rewards.get(step, 0.0) for step in trajectory if step is not None)
