"""How a replay and the best episodes are learned from."""

from __future__ import annotations

import numpy as np
from episodes import random_episode, shape_of

from belated.experience.off_policy import ReplayTraining
from belated.methods import SAC


def test_half_of_a_batch_comes_from_the_best_episodes() -> None:
    settings = ReplayTraining(best_episodes=1, batch_size=64, replay_size=1_000)
    experience = settings.experience(SAC(), shape_of(4), 1, np.random.default_rng(0))
    rng = np.random.default_rng(1)
    episodes = [random_episode(rng, 4) for _ in range(40)]
    for steps in episodes:
        for step in steps:
            experience.add(step, 0)
    best = max(episodes, key=lambda steps: sum(step.reward for step in steps))
    tags = {step.observation.tobytes() for step in best}
    batch = experience.sample()
    from_best = [row.tobytes() in tags for row in np.ascontiguousarray(batch.observation)]
    assert len(from_best) == 64
    assert all(from_best[32:])
    assert sum(from_best[:32]) < 16
