"""The best episodes against a sorted list of all."""

from __future__ import annotations

import numpy as np
from batches import fill
from episodes import shape_of
from hypothesis import given
from hypothesis import strategies as st

from belated.experience.best_episodes import BestEpisodes
from belated.experience.replay import IntervalReplay
from belated.experience.step import Step

SHAPE = shape_of(4, 1)


def record(best: BestEpisodes, episodes: list[list[Step]]) -> None:
    for steps in episodes:
        for step in steps:
            best.add(step, lane=0)


def random_episodes(seed: int, count: int) -> list[list[Step]]:
    replay = IntervalReplay(2_000, SHAPE)
    return fill(replay, np.random.default_rng(seed), episodes=count)


def empty(count: int = 3) -> BestEpisodes:
    return BestEpisodes(count, SHAPE, lanes=1)


@given(st.integers(0, 1_000), st.integers(1, 12))
def test_samples_come_from_the_best_episodes_and_from_all_of_their_steps(
    seed: int, count: int
) -> None:
    episodes = random_episodes(seed, count)
    best = empty()
    record(best, episodes)
    ranked = sorted(episodes, key=lambda steps: -sum(step.reward for step in steps))[:3]
    expected = {step.observation.tobytes() for steps in ranked for step in steps}
    assert len(best) == sum(map(len, ranked))
    batch = best.sample(np.random.default_rng(seed), 60 * len(best))
    assert {row.tobytes() for row in np.ascontiguousarray(batch.observation)} == expected
    rewards = [step.reward for steps in ranked for step in steps if step.revealed]
    np.testing.assert_allclose(batch.reward_bounds, [min(rewards), max(rewards)], rtol=1e-6)


def test_an_open_episode_is_not_sampled_and_survives_saving() -> None:
    episodes = random_episodes(1, 5)
    best, other = empty(), empty()
    record(best, episodes[:4])
    for step in episodes[4][:-1]:
        best.add(step, lane=0)
    other.restore(best.state())
    for each in (best, other):
        each.add(episodes[4][-1], lane=0)
    batches = [b.sample(np.random.default_rng(2), 50) for b in (best, other)]
    for a, b in zip(*batches, strict=True):
        np.testing.assert_array_equal(a, b)
