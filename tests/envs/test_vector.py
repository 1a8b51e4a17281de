"""A vector of delayed environments behaves as the single one, in every autoreset mode."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

from belated import DelayReward, IntervalPhase

gym.register(
    "scripted/Delayed-v0",
    entry_point="scripted_envs:RandomEnv",
    additional_wrappers=(
        DelayReward.wrapper_spec(interval="2:5", overlap=2),
        IntervalPhase.wrapper_spec(),
    ),
)
NUM_ENVS = 3
STEPS = 80

Transition = tuple[list[float], float, bool, bool, dict[str, Any], float]


def transition(
    observation: Any, reward: Any, terminated: Any, truncated: Any, flag: Any, dense: Any
) -> Transition:
    flag = {
        key: bool(flag[key]) if key in ("end", "revealed") else int(flag[key])
        for key in ("end", "step", "index", "length", "revealed")
    }
    return (
        observation.tolist(),
        float(reward),
        bool(terminated),
        bool(truncated),
        flag,
        float(dense),
    )


def single(seed: int) -> list[Transition]:
    env = gym.make("scripted/Delayed-v0")
    env.reset(seed=seed)
    transitions = []
    for _ in range(STEPS):
        observation, reward, terminated, truncated, info = env.step(np.zeros(1))
        flag, dense = info["interval"], info["dense_reward"]
        transitions.append(transition(observation, reward, terminated, truncated, flag, dense))
        if terminated or truncated:
            env.reset()
    return transitions


def pick(infos: dict[str, Any], index: int) -> dict[str, Any]:
    """The info of one sub-environment out of the vector environment's arrays."""
    return {
        key: pick(value, index) if isinstance(value, dict) else value[index]
        for key, value in infos.items()
        if not key.startswith("_") and infos.get(f"_{key}", [True] * NUM_ENVS)[index]
    }


def vectorised(mode: AutoresetMode, vectorization: str) -> list[list[Transition]]:
    envs = gym.make_vec(
        "scripted/Delayed-v0",
        num_envs=NUM_ENVS,
        vectorization_mode=vectorization,
        vector_kwargs={"autoreset_mode": mode},
    )
    envs.reset(seed=7)
    transitions: list[list[Transition]] = [[] for _ in range(NUM_ENVS)]
    was_done = np.zeros(NUM_ENVS, bool)
    for _ in range(STEPS):
        observations, rewards, terminated, truncated, infos = envs.step(np.zeros((NUM_ENVS, 1)))
        done = terminated | truncated
        for i in range(NUM_ENVS):
            if mode is AutoresetMode.NEXT_STEP and was_done[i]:
                assert "interval" not in pick(infos, i)  # the reset step is no transition
                assert rewards[i] == 0
                continue
            info, observation = pick(infos, i), observations[i]
            if mode is AutoresetMode.SAME_STEP and done[i]:
                observation, info = infos["final_obs"][i], pick(infos["final_info"], i)
            transitions[i].append(
                transition(
                    observation,
                    rewards[i],
                    terminated[i],
                    truncated[i],
                    info["interval"],
                    info["dense_reward"],
                )
            )
        if mode is AutoresetMode.DISABLED and done.any():
            envs.reset(options={"reset_mask": done})
        was_done = done
    assert envs.get_attr("interval_spec")[0].max_length == 5  # type: ignore[attr-defined]
    envs.close()
    return transitions


@pytest.mark.filterwarnings("ignore:os.fork")  # Gymnasium's workers use no JAX
@pytest.mark.parametrize("vectorization", ["sync", "async"])
@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_each_lane_is_the_single_environment(mode: AutoresetMode, vectorization: str) -> None:
    for lane, transitions in enumerate(vectorised(mode, vectorization)):
        assert len(transitions) > STEPS / 2
        assert transitions == single(seed=7 + lane)[: len(transitions)]
