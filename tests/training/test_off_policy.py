"""How a replay and the best episodes are learned from."""

from __future__ import annotations

import numpy as np
from batches import ACTION, OBSERVATION, fill

from belated.critics import ProblemShape
from belated.envs.intervals import IntervalSpec
from belated.methods import Method
from belated.replay import IntervalReplay
from belated.training.off_policy import OffPolicy


def test_half_of_a_batch_comes_from_the_best_episodes() -> None:
    method = Method(best_episodes=1, batch_size=64, replay_size=1_000)
    shape = ProblemShape(OBSERVATION, ACTION, 4, 0)
    experience = OffPolicy(method, shape, 1, np.random.default_rng(0))
    scratch = IntervalReplay(2_000, OBSERVATION, ACTION, IntervalSpec(4))
    episodes = fill(scratch, np.random.default_rng(1), episodes=40)
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
