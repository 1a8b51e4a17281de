from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from hypothesis import given
from hypothesis import strategies as st

from belated.envs.point_reach import PointReachEnv


def walk(env: PointReachEnv, velocity: tuple[float, float], steps: int) -> list[Any]:
    return [env.step(np.array(velocity, np.float32)) for _ in range(steps)]


def test_the_straight_way_reaches_the_target_in_90_steps() -> None:
    env = PointReachEnv()
    env.reset(seed=0)
    steps = walk(env, (1.0, 0.5), 90)
    assert [step[2] for step in steps] == [False] * 89 + [True]
    # Columns left behind after 20, 40, 60 and 80 steps: 1, 3, 5, 7; then the target from 8.
    rewards = [step[1] for step in steps if step[4]["interval"]["end"]]
    assert rewards == [1 - 10, 3 - 10, 5 - 10, 7 - 10, 8]
    assert steps[-1][4]["interval"] == {
        "end": True,
        "step": 9,
        "index": 4,
        "length": 10,
        "revealed": True,
    }


def test_an_interval_pays_for_its_best_column_even_if_it_was_left() -> None:
    env = PointReachEnv()
    env.reset(seed=0)
    walk(env, (1.0, 0.0), 20)
    steps = walk(env, (1.0, 0.0), 5) + walk(env, (-1.0, 0.0), 15)
    assert steps[-1][1] == 2 - 10
    assert walk(env, (-1.0, 0.0), 20)[-1][1] == 1 - 10  # nothing carries over


def test_an_episode_is_truncated_after_500_steps() -> None:
    env = PointReachEnv()
    env.reset(seed=0)
    steps = walk(env, (0.0, 0.0), 500)
    assert [step[3] for step in steps] == [False] * 499 + [True]
    assert {step[1] for step in steps} == {0.0, -10.0}


@given(st.lists(st.tuples(st.floats(-3, 3), st.floats(-3, 3)), min_size=1, max_size=60))
def test_the_point_moves_by_its_clipped_velocity_and_stays_on_the_grid(
    velocities: list[tuple[float, float]],
) -> None:
    raw, scaled = PointReachEnv(raw_observation=True), PointReachEnv()
    position = np.zeros(2)
    raw.reset(seed=0)
    scaled.reset(seed=0)
    for velocity in velocities:
        position = np.clip(position + np.clip(velocity, -1, 1), 0, 100)
        observation = raw.step(np.array(velocity, np.float64))[0]
        np.testing.assert_allclose(observation, position, rtol=1e-6, atol=1e-12)
        assert observation in raw.observation_space
        small = scaled.step(np.array(velocity, np.float64))[0]
        np.testing.assert_allclose(small, position / 50 - 1, atol=1e-6)


def test_gymnasium_finds_nothing_to_object_to() -> None:
    check_env(gym.make("belated/PointReach-v0").unwrapped)  # warnings are errors


def test_picture_shows_columns_target_and_path() -> None:
    env = PointReachEnv(render_mode="rgb_array")
    env.reset(seed=0)
    before = env.render()
    walk(env, (1.0, 0.0), 50)
    after = env.render()
    assert before is not None
    assert after is not None
    assert after.shape == (400, 400, 3)
    assert after.dtype == np.uint8
    column_colours = {tuple(after[10, 5 + 40 * column]) for column in range(10)}
    assert len(column_colours) == 10
    target = after[200, 380]
    assert target[0] > target[2]  # red
    changed = np.argwhere((before != after).any(axis=-1))
    assert changed[:, 0].min() >= 390  # the path runs along the bottom edge,
    assert 190 <= changed[:, 1].max() <= 206  # and half way to the right


@pytest.mark.parametrize("action", [[np.nan, 0.0], [0.0], [0.0, 0.0, 0.0]])
def test_bad_actions_are_refused(action: list[float]) -> None:
    env = PointReachEnv()
    env.reset()
    with pytest.raises(ValueError, match="two finite numbers"):
        env.step(np.array(action, np.float32))


def test_an_unknown_render_mode_is_refused() -> None:
    with pytest.raises(ValueError, match="rgb_array"):
        PointReachEnv(render_mode="ascii")
