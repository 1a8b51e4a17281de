"""``belated tasks``: the environments that come with the library."""

from __future__ import annotations

import inspect
import json as json_module
from typing import Annotated, Any

import gymnasium as gym
import tyro
from gymnasium.envs.registration import EnvSpec, load_env_creator

from belated.envs.tasks import TASKS, Task


def tasks(containing: Annotated[str, tyro.conf.Positional] = "", /, json: bool = False) -> int:
    """List the tasks that come with the library.

    Any other Gymnasium environment is a task too, with --interval of `belated train`. What the
    rewards sum, max and square are is said in docs/environments.md, under "From dense to late".

    Examples:
        belated tasks
        belated tasks Hopper-sum
        belated tasks --json

    Args:
        containing: List only those whose id contains this.
        json: Print JSON instead.
    """
    found = {
        spec.id: about(spec)
        for spec in gym.registry.values()
        if spec.namespace == "belated" and containing.lower() in spec.id.lower()
    }
    if not found:
        raise ValueError(f"No task's id contains {containing!r}. belated tasks lists all of them.")
    if json:
        rows = [{"id": name, "about": text} for name, text in found.items()]
        print(json_module.dumps(rows, indent=2))
    else:
        width = max(map(len, found))
        print("\n".join(f"{name:{width}}  {text}" for name, text in found.items()))
    return 0


def about(spec: EnvSpec) -> str:
    """What a task is, in a line."""
    if spec.id in TASKS:
        return _delayed(TASKS[spec.id])
    described: Any = spec.entry_point
    if "problem" in spec.kwargs:
        from belated.tabular.environment import EXAMPLES  # brings a part of SciPy

        described = EXAMPLES[spec.kwargs["problem"]]
    elif isinstance(described, str):
        described = load_env_creator(described)
    return (inspect.getdoc(described) or "").partition("\n")[0]


def _delayed(task: Task) -> str:
    """What is told of an environment, and when.

    >>> _delayed(Task("Hopper-v5", "sum", "15:20", overlap=5))
    'sum, every 15 to 20 steps, overlap 5'
    """
    overlap = f", overlap {task.overlap}" if task.overlap else ""
    return f"{task.reward}, every {task.interval.replace(':', ' to ')} steps{overlap}"
