"""A short animation of what runs have learned, side by side.

MuJoCo chooses how it draws when it is imported, and a driver that is broken may take its process
with it, so the frames are drawn in a process of their own, with one way after another.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from belated.analysis.frame import blank_figure, in_style
from belated.training.agent import Agent
from belated.training.run import read_settings

WAYS = ("egl", "osmesa", "glfw")
"""What MUJOCO_GL may be, where it is not set already; the first two need no screen."""
PATIENCE = 120
"""Seconds for one way of drawing."""


def animate(runs: Mapping[str, Path], path: Path, *, steps: int = 160) -> Path | None:
    """Play an episode with the policy of each run and write a GIF of it.

    Args:
        runs: run folders, by what to call them.
        path: the file to write.
        steps: how many steps to show.

    Returns:
        The file; None where no way of drawing works.
    """
    task = json.dumps([{name: str(run) for name, run in runs.items()}, str(path), steps])
    command = [sys.executable, "-P", "-m", "belated.analysis.animation", task]
    given = os.environ.get("MUJOCO_GL")
    for way in WAYS if given is None else (given,):
        try:
            drawn = subprocess.run(
                command,
                env=os.environ | {"MUJOCO_GL": way},
                capture_output=True,
                timeout=PATIENCE,
                check=False,
            )
        except subprocess.TimeoutExpired:
            continue
        if drawn.returncode == 0:
            return path
    return None


Frames = list[tuple[npt.NDArray[np.uint8], float]]
"""Pictures, and the hidden rewards earned until then."""


def frames_of(run: Path, steps: int) -> Frames:
    """Play an episode with a run's policy and draw every other step."""
    agent = Agent.load(run)
    view: dict[str, Any] = {"width": 240, "height": 240, "camera_name": "track"}
    env = read_settings(run).make_env(render_mode="rgb_array", **view)
    observation, _ = env.reset(seed=agent.seed)
    frames, earned = [], 0.0
    for step in range(steps):
        if step % 2 == 0:
            frames.append((np.asarray(env.render(), np.uint8), earned))
        action, _ = agent.predict(observation)
        observation, reward, terminated, truncated, info = env.step(action)
        earned += info.get("dense_reward", reward)
        if terminated or truncated:
            break
    env.close()
    return frames


def write_gif(films: Mapping[str, Frames], path: Path) -> None:
    """Show films beside one another; a shorter one stops at its last picture."""
    from matplotlib.animation import FuncAnimation, PillowWriter

    with in_style({"axes.grid": False}):
        figure = blank_figure(2.6 * len(films), 2.9)
        panels = np.atleast_1d(figure.subplots(1, len(films)))
        images = [
            axes.imshow(film[0][0]) for axes, film in zip(panels, films.values(), strict=True)
        ]
        for axes in panels:
            axes.set_axis_off()

        def show(place: int) -> list[Any]:
            for image, axes, (name, film) in zip(images, panels, films.items(), strict=True):
                picture, earned = film[min(place, len(film) - 1)]
                image.set_data(picture)
                axes.set_title(f"{name}\nearned so far: {earned:,.0f}")
            return images

        length = max(map(len, films.values()))
        FuncAnimation(figure, show, frames=length).save(path, PillowWriter(fps=10), dpi=100)


def main() -> None:
    """Draw what the command line says."""
    runs, path, steps = json.loads(sys.argv[1])
    write_gif({name: frames_of(Path(run), steps) for name, run in runs.items()}, Path(path))


if __name__ == "__main__":
    main()
