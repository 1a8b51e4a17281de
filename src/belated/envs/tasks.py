"""The paper's tasks by name, and the function that makes delayed environments."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import Any

import gymnasium as gym
from gymnasium.envs.registration import WrapperSpec

from belated.envs.actions import options_of
from belated.envs.delay_reward import DelayReward, delay
from belated.envs.interval_phase import IntervalPhase
from belated.envs.intervals import AnyEnv, find_interval_spec
from belated.envs.lengths import LengthLike
from belated.envs.mark_intervals import Period, Predicate, mark
from belated.envs.named_function import not_found
from belated.envs.rewards import RewardLike

POINT_REACH = "belated/PointReach-v0"
TABULAR = {
    f"belated/Tabular{name}-v0": name
    for name in ("XOR", "FixedPointBias", "OffPolicyBias", "BigAndLittle")
}
"""The paper's small exact examples, by id."""


@dataclass(frozen=True)
class Task:
    """A Gymnasium environment whose reward is delayed in a given way.

    Attributes:
        base: the id of the environment with a reward at every step.
        reward: the interval reward's name.
        interval: the distribution of interval lengths, as text.
        overlap: c.
    """

    base: str
    reward: str
    interval: str
    overlap: int = 0

    @property
    def id(self) -> str:
        """The id under which Gymnasium knows the task."""
        name = self.base.rpartition("-")[0]
        lengths = self.interval.replace(":", "to")
        overlap = f"-c{self.overlap}" if self.overlap else ""
        return f"belated/{name}-{self.reward}-n{lengths}{overlap}-v0"


def _paper_tasks() -> dict[str, Task]:
    variants = [("sum", 0), ("sum", 5), ("sum", 10), ("max", 0), ("square", 0)]
    tasks = [
        Task(f"{base}-v5", reward, interval, overlap)
        for base in ("Hopper", "HalfCheetah", "Walker2d", "Ant", "Reacher")
        for reward, overlap in variants
        for interval in ("20", "15:20", "10:20")
    ]
    return {task.id: task for task in tasks}


TASKS: dict[str, Task] = _paper_tasks()
"""The paper's continuous-control tasks by id. Point Reach is not among them: its reward
is already late."""


def register_tasks() -> None:
    """Register every task with Gymnasium."""
    phase = IntervalPhase.wrapper_spec()
    if POINT_REACH not in gym.registry:
        gym.register(
            POINT_REACH,
            entry_point="belated.envs.point_reach:PointReachEnv",
            additional_wrappers=(phase,),
        )
    for task_id, name in TABULAR.items():
        if task_id not in gym.registry:
            gym.register(
                task_id,
                entry_point="belated.tabular.environment:TabularEnv",
                kwargs={"problem": name},
                additional_wrappers=(phase,),
            )
    for task_id, task in TASKS.items():
        if task_id not in gym.registry:
            _register(task_id, task, phase)


def _register(task_id: str, task: Task, phase: WrapperSpec) -> None:
    base = gym.spec(task.base)
    delayed = DelayReward.wrapper_spec(
        interval=task.interval, reward=task.reward, overlap=task.overlap
    )
    gym.register(
        task_id,
        entry_point=base.entry_point,
        max_episode_steps=base.max_episode_steps,
        kwargs=base.kwargs,
        additional_wrappers=(delayed, phase),
    )


def make(
    env_id: str,
    *,
    interval: LengthLike | None = None,
    reward: RewardLike | None = None,
    overlap: int | None = None,
    phase: bool = True,
    max_length: int | None = None,
    info_key: str | None = None,
    when: Predicate | str | None = None,
    period: Period | None = None,
    **kwargs: Any,
) -> AnyEnv:
    """Make a delayed environment, for training or for evaluation.

    If an environment that is to be delayed or marked says in ``info["action_mask"]`` which discrete
    actions are allowed, agents take no others.

    Args:
        env_id: a task of the paper, any other environment that declares its intervals, an
            environment with a reward at every step, which is then delayed (``interval``), or one
            whose reward is late already, which is then marked (``info_key``, ``when``, ``period``).
        interval: as for `belated.delay`.
        reward: as for `belated.delay`, ``"sum"`` by default.
        overlap: as for `belated.delay` and `belated.mark`, 0 by default.
        phase: False turns the phase off; otherwise it is as ``env_id`` has it, on for every task.
        max_length: as for `belated.mark`.
        info_key: as for `belated.mark`.
        when: as for `belated.mark`.
        period: as for `belated.mark`.
        **kwargs: passed on to ``gym.make``, for example ``render_mode``.

    Example:
        >>> import belated
        >>> task = belated.make("belated/Hopper-sum-n15to20-v0")
        >>> own = belated.make("Hopper-v5", interval="15:20", reward="sum")
        >>> task.get_wrapper_attr("interval_spec") == own.get_wrapper_attr("interval_spec")
        True
    """
    marks = _given(max_length=max_length, info_key=info_key, when=when, period=period)
    delays = _given(interval=interval, reward=reward)
    shared = _given(overlap=overlap)
    if marks and delays:
        raise ValueError(
            f"{_names(delays)} is for a reward at every step, {_names(marks)} for one that is late "
            "already. Give one or the other."
        )
    env = make_plain(env_id, **kwargs)
    if find_interval_spec(env) is not None:
        if delays or marks or shared:
            raise ValueError(
                f"{env_id} has intervals of its own; leave out {_names(delays | marks | shared)}, "
                "or name the environment underneath."
            )
        return env if phase else _without_phase(env)
    if interval is None and not marks:
        raise ValueError(
            f"{env_id} does not say how its reward is delayed. Give interval=20, interval='15:20' "
            "or similar for a reward at every step. If it is late already, say when it is "
            "revealed: period=20, or info_key='lab_report' with max_length=30."
        )
    how = shared | {"phase": phase, "action_masks": _tells_masks(env)}
    return mark(env, **marks, **how) if marks else delay(env, **delays, **how)


def _given(**values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def _names(values: dict[str, Any]) -> str:
    return ", ".join(values)


def _tells_masks(env: AnyEnv) -> bool:
    """Whether a fresh environment says which of its discrete actions are allowed."""
    return bool(options_of(env.action_space)) and "action_mask" in env.reset()[1]


def _without_phase(env: AnyEnv) -> AnyEnv:
    """Turn off the phase of an environment that declares its intervals."""
    if not isinstance(env, IntervalPhase):
        raise ValueError(
            f"Cannot turn off the phase of {env}: its outermost wrapper is no IntervalPhase. Make "
            "it without one, and then wrap it: belated.IntervalPhase(env, phase=False)."
        )
    masks = env.interval_spec.action_masks
    return IntervalPhase(env.env, phase=False, action_masks=masks)


def make_plain(env_id: str, **kwargs: Any) -> AnyEnv:
    """Make an environment by its id, as ``gym.make`` does, with an error that lists the tasks.

    Raises:
        ValueError: if there is no such environment.
    """
    try:
        return gym.make(env_id, **kwargs)
    except gym.error.UnregisteredEnv as error:
        module, _, name = env_id.rpartition(":")
        similar = difflib.get_close_matches(name, sorted(gym.registry), n=5, cutoff=0.5)
        raise ValueError(
            f"There is no environment {env_id!r}. "
            + (f"{module} was imported, but registers no {name}. " if module else "")
            + (f"Similar ones: {', '.join(similar)}. " if similar else "")
            + f"The delayed tasks are {POINT_REACH} and belated/ENV-REWARD-LENGTHS-v0 with ENV one "
            "of Hopper, HalfCheetah, Walker2d, Ant, Reacher; REWARD one of sum, max, square; "
            "LENGTHS one of n20, n15to20, n10to20, for sum also with -c5 or -c10. "
            "Name an environment of your own as your_module:YourEnv-v0."
        ) from error
    except SyntaxError as error:
        where = f"{error.filename}, line {error.lineno}"
        raise ValueError(f"Cannot make {env_id!r}: {error.msg} ({where}).") from error
    except TypeError as error:
        if "was raised from the environment creator" not in str(error):
            raise
        raise ValueError(f"Cannot make {env_id!r}: {str(error).rstrip('.')}.") from error
    except ModuleNotFoundError as error:
        cause = error.__cause__ if isinstance(error.__cause__, ModuleNotFoundError) else error
        why = not_found(cause, env_id.rpartition(":")[0])
        raise ValueError(f"Cannot make {env_id!r}: {why}") from error
