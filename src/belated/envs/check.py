"""Is this a well-formed delayed-reward environment?"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np

from belated.envs.intervals import AnyEnv, IntervalInfo, IntervalSpec, find_interval_spec
from belated.envs.layers import has_time_limit_outside_intervals
from belated.envs.lengths import positive_int


@dataclass(frozen=True)
class Problem:
    """Something that a learner would trip over.

    Attributes:
        code: a short name for the kind of problem.
        message: what is wrong and what to do about it, with the first place where it was seen.
        count: how often it was seen.
    """

    code: str
    message: str
    count: int = 1

    def __str__(self) -> str:
        return f"{self.message} ({self.count} times)" if self.count > 1 else self.message


@dataclass(frozen=True)
class CheckReport:
    """What `check_delayed_env` saw."""

    problems: tuple[Problem, ...]
    steps: int
    episodes: int
    intervals: int

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problems

    def __str__(self) -> str:
        seen = f"{self.steps} steps, {self.episodes} finished episodes, {self.intervals} intervals"
        if self.ok:
            return f"well-formed ({seen})"
        count = "1 problem" if len(self.problems) == 1 else f"{len(self.problems)} problems"
        return "\n".join([f"{count} ({seen})", *map(str, self.problems)])


def check_delayed_env(env: AnyEnv, *, steps: int = 2_000, seed: int = 0) -> CheckReport:
    """Run an environment with random actions and report what is wrong with it.

    Args:
        env: the environment, wrapped as for training.
        steps: how many steps to run; they are run twice, to see whether seeds reproduce.
        seed: seeds the environment and the actions.

    Example:
        >>> import gymnasium as gym
        >>> print(check_delayed_env(gym.make("belated/PointReach-v0")))
        well-formed (2000 steps, 4 finished episodes, 100 intervals)
        >>> check_delayed_env(gym.make("Pendulum-v1")).problems[0].code
        'no-interval-spec'
    """
    if not isinstance(env, gym.Env):
        raise TypeError(
            f"Expected one gymnasium.Env, got {type(env).__name__}. "
            "Check one environment of a vector environment at a time."
        )
    positive_int(steps, "The number of steps")
    findings = _Findings()
    _check_action_space(env, findings)
    spec = find_interval_spec(env)
    if spec is None:
        findings.add(
            "no-interval-spec",
            "The environment declares no interval_spec, so nothing is known about its intervals: "
            "use belated.delay for a reward at every step, belated.mark for one that is late "
            "already.",
        )
    run = _run(env, steps, seed, findings)
    for step in run:
        _check_values(env, step, findings)
    intervals = _check_intervals(env, run, spec, findings)
    if "error" not in findings.problems:
        _check_reproducible(run, _run(env, steps, seed, findings), findings)
    return CheckReport(
        problems=tuple(findings.problems.values()),
        steps=sum(step.action_taken for step in run),
        episodes=sum(step.episode_end for step in run),
        intervals=intervals,
    )


class _Findings:
    """Problems by code; only the first place of each is told, the others are counted."""

    def __init__(self) -> None:
        self.problems: dict[str, Problem] = {}

    def add(self, code: str, message: str) -> None:
        first = self.problems.get(code)
        self.problems[code] = (
            Problem(code, message)
            if first is None
            else Problem(code, first.message, first.count + 1)
        )


class _Step(NamedTuple):
    """What one call of reset or step returned."""

    episode: int
    time: int  # 0 for reset
    observation: Any
    reward: Any = 0.0
    terminated: bool = False
    truncated: bool = False
    info: dict[str, Any] = {}  # noqa: RUF012 (only ever read)

    @property
    def action_taken(self) -> bool:
        return self.time > 0

    @property
    def episode_end(self) -> bool:
        return self.terminated or self.truncated

    @property
    def place(self) -> str:
        return f"episode {self.episode}, " + (f"step {self.time}" if self.time else "reset")


def _run(env: AnyEnv, steps: int, seed: int, findings: _Findings) -> list[_Step]:
    # Another seed than the environment's, whose random numbers the actions would equal.
    env.action_space.seed(seed + 2**30)
    run: list[_Step] = []
    episode, time = 0, 0
    try:
        for _ in range(steps):
            if time == 0:
                run.append(_Step(episode, 0, _copy(env.reset(seed=seed + episode)[0])))
            time += 1
            observation, reward, terminated, truncated, info = env.step(env.action_space.sample())
            run.append(
                _Step(
                    episode,
                    time,
                    _copy(observation),
                    reward,
                    bool(terminated),
                    bool(truncated),
                    dict(info),
                )
            )
            if terminated or truncated:
                episode, time = episode + 1, 0
        with warnings.catch_warnings():
            # The run stops in mid-episode, which wrappers may rightly warn about.
            warnings.simplefilter("ignore")
            env.reset(seed=seed)
    except Exception as error:
        findings.add(
            "error",
            f"episode {episode}, step {time}: the environment raised "
            f"{type(error).__name__}: {error}",
        )
    return run


def _copy(observation: Any) -> Any:
    return observation.copy() if isinstance(observation, np.ndarray) else observation


def _check_action_space(env: AnyEnv, findings: _Findings) -> None:
    space = env.action_space
    if not isinstance(space, gym.spaces.Box):
        findings.add(
            "action-space", f"The action space is {space}; SAC and TD3 need a continuous Box."
        )
    elif not space.is_bounded():
        findings.add(
            "action-space",
            "The action space is unbounded; policies scale their actions to its bounds. Give the "
            "Box finite bounds, for example with gymnasium.wrappers.RescaleAction.",
        )


def _check_values(env: AnyEnv, step: _Step, findings: _Findings) -> None:
    observation = step.observation
    if isinstance(observation, np.ndarray) and not np.isfinite(observation).all():
        findings.add("not-finite", f"{step.place}: the observation holds NaN or infinity.")
    elif not env.observation_space.contains(observation):
        findings.add(
            "observation-space",
            f"{step.place}: the observation {observation!r} is not in {env.observation_space}.",
        )
    if not _is_number(step.reward):
        findings.add(
            "reward-type",
            f"{step.place}: the reward is {step.reward!r}, not a number. A step without a "
            "revealed reward has reward 0.0.",
        )
    elif not math.isfinite(step.reward):
        findings.add("not-finite", f"{step.place}: the reward is {step.reward}.")


def _check_intervals(
    env: AnyEnv, run: list[_Step], spec: IntervalSpec | None, findings: _Findings
) -> int:
    """Follow the intervals through the run and return how many ended."""
    intervals = revealed = 0
    since_start = index = 0
    for step in run:
        if not step.action_taken:
            since_start = index = 0
            _check_phase(env, step, 0, spec, findings)
            continue
        interval = _interval_of(step, findings)
        if interval is None:
            continue
        _check_flags(step, interval, since_start, index, findings)
        since_start += 1
        if spec is not None and since_start == spec.max_length + 1:
            findings.add(
                "too-long",
                f"{step.place}: an interval has more than the declared {spec.max_length} steps. "
                "Raise max_length in interval_spec, or end the interval earlier.",
            )
        if interval["end"]:
            intervals, index, since_start = intervals + 1, index + 1, 0
            revealed += interval["revealed"]
        elif step.episode_end:
            findings.add("open-interval", _open_interval(env, step))
        _check_phase(env, step, since_start, spec, findings)
    if intervals and not revealed:
        findings.add(
            "never-revealed",
            f"None of the {intervals} intervals had its reward revealed: there is nothing to "
            "learn from. Look at how revealed rewards are recognised.",
        )
    return intervals


def _interval_of(step: _Step, findings: _Findings) -> IntervalInfo | None:
    interval = step.info.get("interval")
    missing = IntervalInfo.__required_keys__ - set(interval or {})
    if interval is None:
        findings.add(
            "no-interval-flag",
            f'{step.place}: info["interval"] is missing, so the learner cannot tell when a reward '
            "is revealed.",
        )
    elif missing:
        findings.add(
            "interval-flag", f'{step.place}: info["interval"] lacks {", ".join(sorted(missing))}.'
        )
    else:
        return interval  # type: ignore[no-any-return]
    return None


def _check_flags(
    step: _Step, interval: IntervalInfo, since_start: int, index: int, findings: _Findings
) -> None:
    expected = {
        "step": since_start,
        "index": index,
        "length": since_start + 1 if interval["end"] else -1,
    }
    for key, value in expected.items():
        if interval[key] != value:  # type: ignore[literal-required]
            findings.add(
                "interval-flag",
                f'{step.place}: info["interval"]["{key}"] is {interval[key]}; '  # type: ignore[literal-required]
                f"counting from the last end it should be {value}.",
            )
    if interval["revealed"] and not interval["end"]:
        findings.add(
            "interval-flag", f"{step.place}: a reward is revealed, but the interval goes on."
        )
    if _is_number(step.reward) and step.reward != 0 and not interval["end"]:
        findings.add(
            "early-reward",
            f"{step.place}: a reward of {step.reward:g} inside an interval. Rewards belong to "
            "the interval's last step; a learner takes the others for noise.",
        )
    elif _is_number(step.reward) and step.reward != 0 and not interval["revealed"]:
        findings.add(
            "unrevealed-reward",
            f"{step.place}: a reward of {step.reward:g} on a step that is marked as not revealed.",
        )


def _check_phase(
    env: AnyEnv, step: _Step, since_start: int, spec: IntervalSpec | None, findings: _Findings
) -> None:
    """Compare the observation's last number with the phase of the step that comes next."""
    space = env.observation_space
    if spec is None or not isinstance(space, gym.spaces.Box):
        return
    expected = since_start / spec.max_length
    observed = np.ravel(step.observation)[-1]
    if not math.isclose(observed, expected, abs_tol=1e-5):
        out_of_range = "" if 0 <= observed < 1 else ", out of the range [0, 1)"
        findings.add(
            "phase",
            f"{step.place}: the observation ends with {observed:g}{out_of_range}; the phase is "
            f"{expected:g}. Wrap the environment in belated.IntervalPhase, outermost.",
        )


def _open_interval(env: AnyEnv, step: _Step) -> str:
    message = f"{step.place}: the episode ended, but its last interval is still open. "
    if has_time_limit_outside_intervals(env):
        return message + "A TimeLimit is outside the intervals; it must be inside."
    return message + 'Set info["interval"]["end"] when an episode terminates or is truncated.'


def _check_reproducible(first: list[_Step], second: list[_Step], findings: _Findings) -> None:
    for a, b in zip(first, second, strict=False):
        for what, x, y in (
            ("observation", a.observation, b.observation),
            ("reward", a.reward, b.reward),
            ("end of an episode", a.episode_end, b.episode_end),
            ('info["interval"]', a.info.get("interval"), b.info.get("interval")),
        ):
            if not _same(x, y):
                findings.add(
                    "seed",
                    f"{a.place}: the same seed and actions gave another {what}. Draw all "
                    "randomness from a generator that reset(seed=...) seeds; without that runs "
                    "cannot be repeated or resumed.",
                )
                return


def _same(x: Any, y: Any) -> bool:
    if isinstance(x, dict) and isinstance(y, dict):
        return x.keys() == y.keys() and all(_same(x[key], y[key]) for key in x)
    if isinstance(x, tuple) and isinstance(y, tuple):
        return len(x) == len(y) and all(map(_same, x, y))
    try:
        return np.array_equal(x, y, equal_nan=True)
    except TypeError:
        return bool(x == y)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
