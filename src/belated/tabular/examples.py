"""The paper's small problems, and the smallest ones on which its claims fail."""

from __future__ import annotations

import numpy as np

from belated.tabular.drmdp import TabularDRMDP, Trajectory


def _deterministic(
    moves: dict[tuple[int, int], int], states: int, actions: int
) -> tuple[np.ndarray, tuple[int, ...]]:
    """Transitions from a table (state, action) → state, and how many actions each state has."""
    transition = np.zeros((states, actions, states))
    counts = [1] * states
    for (state, action), following in moves.items():
        transition[state, action, following] = 1
        counts[state] = max(counts[state], action + 1)
    return transition, tuple(counts)


def xor(gamma: float = 0.99) -> TabularDRMDP:
    """Fact 1's example: what to do in B depends on where the episode started.

    States: 0 = A₀, 1 = A₁, 2 = B, 3 = C (the end). The reward is i ⊕ j for start i, action j.
    """
    transition, actions = _deterministic({(0, 0): 2, (1, 0): 2, (2, 0): 3, (2, 1): 3}, 4, 2)

    def reward(trajectory: Trajectory) -> float:
        first, last = trajectory[0], trajectory[-1]
        assert first is not None
        assert last is not None
        return float(first[0] != last[1])

    return TabularDRMDP(
        transition, np.array([0.5, 0.5, 0, 0]), np.array([0, 1.0]), reward, gamma,
        terminal=(3,), actions=actions,
    )  # fmt: skip


def fixed_point_bias(gamma: float = 0.99) -> TabularDRMDP:
    """The appendix's example of the fixed-point bias.

    States: 0 = A (actions a₀ to C, a₁ to D), 1 = B (to D), 2 = C, 3 = D, 4 = the end.
    """
    transition, actions = _deterministic(
        {(0, 0): 2, (0, 1): 3, (1, 0): 3, (2, 0): 4, (3, 0): 4}, 5, 2
    )
    rewards = {(0, 0): 0.01, (0, 1): 1.0, (1, 0): -1.0}
    return TabularDRMDP(
        transition, np.array([0.5, 0.5, 0, 0, 0]), np.array([0, 1.0]), SumOf(rewards), gamma,
        terminal=(4,), actions=actions,
    )  # fmt: skip


def big_and_little(gamma: float = 0.99) -> TabularDRMDP:
    """The appendix's past-invariant problem whose optimum is not in Π_s.

    States: 0 = A_b (10), 1 = A_l (0.1), 2 = B (actions +1 and −1), 3 = C₋, 4 = the end. The first
    interval is worth i × j for start i and action j; the interval after −1 is worth 5.
    """
    transition, actions = _deterministic(
        {(0, 0): 2, (1, 0): 2, (2, 0): 4, (2, 1): 3, (3, 0): 4}, 5, 2
    )

    def reward(trajectory: Trajectory) -> float:
        first, last = trajectory[0], trajectory[-1]
        assert first is not None
        assert last is not None
        if first[0] == 3:
            return 5.0
        return (10.0, 0.1)[first[0]] * (1, -1)[last[1]]

    return TabularDRMDP(
        transition, np.array([0.5, 0.5, 0, 0, 0]), np.array([0, 1.0]), reward, gamma,
        terminal=(4,), actions=actions,
    )  # fmt: skip


def off_policy_bias(gamma: float = 0.99) -> TabularDRMDP:
    """Two steps, two actions each; the first is worth 0 or 1, the second 0 or 0.1.

    States: 0, 1, 2 = the end.
    """
    transition, actions = _deterministic({(0, 0): 1, (0, 1): 1, (1, 0): 2, (1, 1): 2}, 3, 2)
    rewards = {(0, 1): 1.0, (1, 1): 0.1}
    return TabularDRMDP(
        transition, np.array([1.0, 0, 0]), np.array([0, 1.0]), SumOf(rewards), gamma,
        terminal=(2,), actions=actions,
    )  # fmt: skip


def early_end(gamma: float = 0.5) -> TabularDRMDP:
    """A plain sum in which an episode may end inside an interval.

    States: 0 = rich (10), 1 = poor (0), 2 = B (action 0 ends the episode, action 1 goes on to 3),
    3 (worth 1), 4 = the end. Ending at once gets the past reward one step sooner.
    """
    transition, actions = _deterministic(
        {(0, 0): 2, (1, 0): 2, (2, 0): 4, (2, 1): 3, (3, 0): 4}, 5, 2
    )
    rewards = {(0, 0): 10.0, (3, 0): 1.0}
    return TabularDRMDP(
        transition, np.array([0.5, 0.5, 0, 0, 0]), np.array([0, 0, 1.0]), SumOf(rewards), gamma,
        terminal=(4,), actions=actions,
    )  # fmt: skip


def entangled_overlap(gamma: float = 0.9) -> TabularDRMDP:
    """One state, two actions, n = 2, c = 2: an interval is worth a ⊕ a' of the two steps before it.

    Histories of at least two steps settle the reward, so it is strongly past-invariant by the
    paper's definition. The second action of an interval should still look at the first.
    """

    def reward(trajectory: Trajectory) -> float:
        before, last = trajectory[0], trajectory[1]
        return 0.0 if before is None or last is None else float(before[1] != last[1])

    return TabularDRMDP(
        np.ones((1, 2, 1)), np.ones(1), np.array([0, 1.0]), reward, gamma, overlap=2
    )  # fmt: skip


def end_after_overlap(gamma: float = 0.9) -> TabularDRMDP:
    """The paper's r_c with n = c = 2, in which an episode may end with an interval.

    States: 0 = rich (10), 1 = poor (0), 2 = B (action 0 ends the episode, action 1 costs 1 and goes
    on to 3), 3, 4, 5 = the end. An interval is worth the two steps before it, so the wealth of the
    first one is only revealed if the episode goes on.
    """
    transition, actions = _deterministic(
        {(0, 0): 2, (1, 0): 2, (2, 0): 5, (2, 1): 3, (3, 0): 4, (4, 0): 5}, 6, 2
    )
    add_up = SumOf({(0, 0): 10.0, (2, 1): -1.0})
    return TabularDRMDP(
        transition, np.array([0.5, 0.5, 0, 0, 0, 0]), np.array([0, 1.0]),
        lambda trajectory: add_up(trajectory[:2]), gamma,
        overlap=2, terminal=(5,), actions=actions,
    )  # fmt: skip


def phase_matters(gamma: float = 0.5) -> TabularDRMDP:
    """A plain sum, n = 2, whose best policy depends on the position in the interval.

    States: 0 = the start, 1 = S (action 0: worth 1, stay; action 1: worth 0, to 2), 2 (worth 2.1,
    back to S). Two steps of 1 are worth less than 2.1 within an interval, but not across two.
    """
    transition, actions = _deterministic({(0, 0): 1, (1, 0): 1, (1, 1): 2, (2, 0): 1}, 3, 2)
    rewards = {(1, 0): 1.0, (2, 0): 2.1}
    return TabularDRMDP(
        transition, np.array([1.0, 0, 0]), np.array([0, 1.0]), SumOf(rewards), gamma,
        actions=actions,
    )  # fmt: skip


class SumOf:
    """The interval reward Σ r(s, a) from a table; steps not in the table are worth 0."""

    def __init__(self, rewards: dict[tuple[int, int], float]) -> None:
        self.rewards = rewards

    def __call__(self, trajectory: Trajectory) -> float:
        """Add up the steps; those before the episode's start count 0."""
        return sum(self.rewards.get(step, 0.0) for step in trajectory if step is not None)
