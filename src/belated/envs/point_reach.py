"""Point Reach: the paper's toy task, whose reward is already late and not a sum."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import numpy.typing as npt

from belated.envs.intervals import IntervalCounter, IntervalSpec
from belated.ranges import positive_int

SIZE = 100.0
"""The side of the square grid."""
COLUMN_WIDTH = 10.0
TARGET_LOW = np.array([90.0, 45.0])
TARGET_HIGH = np.array([100.0, 55.0])

_PIXELS_PER_UNIT = 4


class PointReachEnv(gym.Env[npt.NDArray[np.float32], npt.NDArray[np.float32]]):
    """A point walks from the bottom-left corner to a target at the middle of the right edge.

    The point sees its own position but not the target. Every 20 steps its reward is
    the number of the rightmost column (0 to 9) it was in during these steps, minus 10 if it did not
    reach the target. There is no per-step reward underneath.

    The action is the velocity, in [−1, 1]². An episode terminates on reaching the target and is
    truncated after ``max_steps``. The shortest path takes 90 steps.

    Args:
        raw_observation: observe the position in [0, 100]² instead of scaled to [−1, 1]². Networks
            learn far better from the scaled one.
        interval: the length of the signal intervals.
        max_steps: the largest number of steps in an episode.
        render_mode: ``"rgb_array"`` or None.
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 30}  # noqa: RUF012

    def __init__(
        self,
        raw_observation: bool = False,
        interval: int = 20,
        max_steps: int = 500,
        render_mode: str | None = None,
    ) -> None:
        if render_mode is not None and render_mode != "rgb_array":
            raise ValueError(f'render_mode must be None or "rgb_array", got {render_mode!r}.')
        self.render_mode = render_mode
        self.raw_observation = raw_observation
        self.max_steps = positive_int(max_steps, "max_steps")
        self.interval_spec = IntervalSpec(interval)
        low, high = (0.0, SIZE) if raw_observation else (-1.0, 1.0)
        self.observation_space = gym.spaces.Box(low, high, (2,), np.float32)
        self.action_space = gym.spaces.Box(-1.0, 1.0, (2,), np.float32)
        self._counter = IntervalCounter()
        self._position = np.zeros(2)
        self._path = [self._position]
        self._best_column = 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[npt.NDArray[np.float32], dict[str, Any]]:
        """Put the point in the bottom-left corner."""
        super().reset(seed=seed)
        self._counter.reset()
        self._position = np.zeros(2)
        self._path = [self._position]
        self._best_column = 0
        return self._observe(), {}

    def step(
        self, action: npt.NDArray[np.float32]
    ) -> tuple[npt.NDArray[np.float32], float, bool, bool, dict[str, Any]]:
        """Move the point; at an interval's end reveal its reward."""
        velocity = np.asarray(action, np.float64)
        if velocity.shape != (2,) or not np.isfinite(velocity).all():
            raise ValueError(f"The action must be two finite numbers, got {action!r}.")
        # The reward of an interval depends on the states in which its actions were taken.
        self._best_column = max(self._best_column, column(self._position[0]))
        self._position = np.clip(self._position + np.clip(velocity, -1, 1), 0, SIZE)
        self._path.append(self._position)

        reached = bool(
            (self._position >= TARGET_LOW).all() and (self._position <= TARGET_HIGH).all()
        )
        truncated = len(self._path) > self.max_steps and not reached
        end = reached or truncated or self._counter.step + 1 == self.interval_spec.max_length
        reward = 0.0
        if end:
            reward = self._best_column + 10.0 * (reached - 1)
            self._best_column = 0
        info = {"interval": self._counter.count(end=end, revealed=end), "reached": reached}
        return self._observe(), reward, reached, truncated, info

    def render(self) -> npt.NDArray[np.uint8] | None:
        """Draw the columns, the target and the path walked so far."""
        if self.render_mode is None:
            gym.logger.warn('Nothing to render: make the environment with render_mode="rgb_array".')
            return None
        return draw_path(np.array(self._path))

    def _observe(self) -> npt.NDArray[np.float32]:
        if self.raw_observation:
            return self._position.astype(np.float32)
        return scale_position(self._position)


def scale_position(position: npt.NDArray[np.float64]) -> npt.NDArray[np.float32]:
    """Map positions in [0, 100]² to observations in [−1, 1]²."""
    return (position / (SIZE / 2) - 1).astype(np.float32)


def column(x: float) -> int:
    """Return which of the ten columns an x coordinate lies in."""
    return min(int(x // COLUMN_WIDTH), 9)


def draw_path(path: npt.NDArray[np.float64]) -> npt.NDArray[np.uint8]:
    """Draw the grid with a path of shape (steps, 2) on it."""
    pixels = int(SIZE * _PIXELS_PER_UNIT)
    image = np.empty((pixels, pixels, 3), np.uint8)
    shade = np.arange(pixels) // int(COLUMN_WIDTH * _PIXELS_PER_UNIT) / 9
    image[:] = np.stack([240 - 130 * shade, 246 - 80 * shade, 252 - 30 * shade], axis=-1)
    _fill(image, TARGET_LOW, TARGET_HIGH, (232, 104, 74))
    starts, ends = path[:-1], path[1:]
    for fraction in np.linspace(0, 1, _PIXELS_PER_UNIT):
        for point in starts + fraction * (ends - starts):
            _fill(image, point - 0.4, point + 0.4, (40, 40, 48))
    _fill(image, path[-1] - 1.2, path[-1] + 1.2, (190, 20, 40))
    return image


def _fill(
    image: npt.NDArray[np.uint8],
    low: npt.NDArray[np.float64],
    high: npt.NDArray[np.float64],
    colour: tuple[int, int, int],
) -> None:
    """Colour a rectangle given in grid coordinates, whose y axis points up."""
    pixels = image.shape[0]
    left, bottom = np.clip(np.rint(low * _PIXELS_PER_UNIT), 0, pixels).astype(int)
    right, top = np.clip(np.rint(high * _PIXELS_PER_UNIT), 0, pixels).astype(int)
    image[pixels - top : pixels - bottom, left:right] = colour
