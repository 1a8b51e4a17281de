"""Delay a robot's reward and draw what a learner would see."""

from pathlib import Path

import gymnasium as gym
import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import tyro

import belated


def main(out: Path = Path("demo"), steps: int = 120) -> None:
    """Take random actions and draw the hidden and the revealed rewards.

    Args:
        out: The folder for the picture.
        steps: How many steps to take.
    """
    env = belated.delay(gym.make("HalfCheetah-v5"), interval="15:20", reward="sum")
    env.reset(seed=0)
    env.action_space.seed(0)
    hidden, revealed = [], {}
    for step in range(steps):
        _, reward, _, _, info = env.step(env.action_space.sample())
        hidden.append(info["dense_reward"])
        if info["interval"]["end"]:
            revealed[step] = float(reward)
            print(f"step {step:3d}: reward {reward:+.2f} for {info['interval']['length']} steps")

    figure, (top, bottom) = plt.subplots(2, 1, figsize=(8, 3.6), sharex=True, layout="constrained")
    top.bar(range(steps), hidden, color="#b8c4d6")
    top.set_title("what happens: a reward at every step", loc="left", fontsize=10)
    bottom.bar(list(revealed), list(revealed.values()), width=1.4, color="#c8553d")
    bottom.set_title("what the agent is told", loc="left", fontsize=10)
    bottom.set_xlabel("step")
    for axes in (top, bottom):
        axes.axhline(0, color="0.3", linewidth=0.6)
        for step in revealed:
            axes.axvline(step + 0.5, color="0.8", linewidth=0.8, zorder=0)
    out.mkdir(parents=True, exist_ok=True)
    figure.savefig(out / "late_reward.png", dpi=150)
    print(f"Picture: {out / 'late_reward.png'}")


if __name__ == "__main__":
    tyro.cli(main)
