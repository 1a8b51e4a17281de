"""Other libraries' SAC on the same late task, as run folders that can be compared with ours.

They run as their users would run them, but with the paper's batch size and rate, and with as many
random steps first as ours have. An evaluation plays the same episodes as ours, and its time does
not count. There are no checkpoints: a run that is interrupted starts anew.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from belated.experience.spaces import Spaces
from belated.training.evaluation import evaluate
from belated.training.logging import CSVWriter
from belated.training.persistence import write_json
from belated.training.run import CONFIG, PROGRESS, RunSettings, describe

_MODULES = {"sb3-sac": "stable_baselines3", "sbx-sac": "sbx"}
PEERS = tuple(_MODULES)
PAPER: dict[str, Any] = {"batch_size": 128, "learning_rate": 3e-4, "learning_starts": 5_000}

Tell = Callable[[int, float | None], None]
"""Takes how many steps there were, and the last evaluation's return."""


def is_peer(method: str) -> bool:
    """Whether a method is another library's."""
    return method in _MODULES


def run_peer(settings: RunSettings, folder: Path, tell: Tell) -> None:
    """Train another library's SAC and write ``config.json`` and ``progress.csv``.

    Raises:
        ValueError: if the library is not installed.
    """
    try:
        library = importlib.import_module(_MODULES[settings.method])
    except ImportError as error:
        raise ValueError(
            f"{settings.method} needs another library: pip install 'belated[bench]' ({error})."
        ) from error
    env = settings.make_env()  # (whose module is then loaded, and can be described)
    hyperparameters = PAPER | settings.overrides()
    document = describe(settings) | {
        "hyperparameters": {"type": settings.method, **hyperparameters}
    }
    document["provenance"]["versions"] |= _versions()
    write_json(folder / CONFIG, document)
    learner = library.SAC("MlpPolicy", env, seed=settings.seed, **hyperparameters)
    _Run(settings, folder, tell, learner).learn()


def _versions() -> dict[str, str]:
    installed = {each.metadata["Name"]: each.version for each in importlib.metadata.distributions()}
    names = ("stable_baselines3", "sbx-rl", "torch")
    return {name: installed[name] for name in names if name in installed}


class _Run:
    """A peer that learns, evaluated every now and then on an environment of its own."""

    def __init__(self, settings: RunSettings, folder: Path, tell: Tell, learner: Any) -> None:
        self._settings = settings
        self._tell = tell
        self._learner = learner
        self._env = settings.make_env()
        self._spaces = Spaces.of(self._env)
        self._csv = CSVWriter(folder / PROGRESS)
        self._outcome: float | None = None

    def learn(self) -> None:
        """Learn all steps, one evaluation after another."""
        spent, done, total = 0.0, 0, self._settings.total_steps
        while done < total:
            goal = min(done + self._settings.eval_every, total)
            started = time.monotonic()
            self._learner.learn(goal - done, callback=self._watch, reset_num_timesteps=done == 0)
            spent += time.monotonic() - started
            done = goal
            self._evaluate(done, spent)

    def _watch(self, values: dict[str, Any], globals_: dict[str, Any]) -> bool:
        steps = int(self._learner.num_timesteps)
        if steps % 100 == 0:
            self._tell(steps, self._outcome)
        return True

    def _evaluate(self, step: int, seconds: float) -> None:
        outcome = evaluate(
            self._env,
            self._policy,
            self._spaces,
            episodes=self._settings.eval_episodes,
            seed=self._settings.seed,
            gamma=self._learner.gamma,
        ).summary()
        self._outcome = outcome["return_mean"]
        speed = {"wall_time": seconds, "steps_per_second": step / seconds}
        self._csv.write({"step": step, **outcome, **speed})
        self._tell(step, self._outcome)

    def _policy(self, observation: Any) -> Any:
        """From observations to actions in [−1, 1], as `evaluate` wants them."""
        action, _ = self._learner.predict(observation, deterministic=True)
        action = np.reshape(action, (*np.shape(observation)[:-1], -1))
        low, high = np.asarray(self._spaces.low), np.asarray(self._spaces.high)
        return (2 * (action - low) / (high - low) - 1).astype(np.float32)
