"""Is this a well-formed delayed-reward environment?"""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np

from belated.envs.actions import options_of, sample
from belated.envs.intervals import AnyEnv, IntervalSpec
from belated.envs.rules import Finding, IntervalRules, allowed_in, spec_of, unfit
from belated.ranges import positive_int

LARGEST_SEED = 2**32 - 1
"""The largest seed of an episode: see `belated.experience.lanes.episode_seed`."""


@dataclass(frozen=True)
class CheckReport:
    """What `check_delayed_env` found."""

    findings: tuple[Finding, ...]
    steps: int
    episodes: int
    intervals: int

    @property
    def ok(self) -> bool:
        """Whether an agent can learn in the environment: no finding is fatal."""
        return not any(finding.fatal for finding in self.findings)

    def __str__(self) -> str:
        seen = f"{self.steps} steps, {self.episodes} finished episodes, {self.intervals} intervals"
        count = len(self.findings)
        found = "" if count == 0 else "1 finding, " if count == 1 else f"{count} findings, "
        verdict = "well-formed" if self.ok else "not well-formed"
        return "\n".join([f"{verdict} ({found}{seen})", *map(str, self.findings)])


def check_delayed_env(env: AnyEnv, *, steps: int = 2_000, seed: int = 0) -> CheckReport:
    """Run an environment with random actions and report what is wrong with it.

    Args:
        env: the environment, wrapped as for training.
        steps: how many steps to run; the run is repeated to see whether its seed reproduces it.
        seed: seeds the environment and the actions.

    Example:
        >>> import gymnasium as gym
        >>> print(check_delayed_env(gym.make("belated/PointReach-v0")))
        well-formed (2000 steps, 4 finished episodes, 100 intervals)
        >>> check_delayed_env(gym.make("Pendulum-v1")).findings[0].code
        'no-interval-spec'
    """
    if not isinstance(env, gym.Env):
        raise TypeError(
            f"Expected one gymnasium.Env, got {type(env).__name__}. "
            "Check one environment of a vector environment at a time."
        )
    steps = positive_int(steps, "The number of steps")
    findings = _Findings()
    findings.add(unfit(env))
    run = _run(env, steps, seed, findings)
    ends = _intervals_of(run)
    if ends and not any(interval["revealed"] for interval in ends):
        findings.warn(
            "never-revealed",
            f"None of the {len(ends)} intervals had its reward revealed: there is nothing to learn "
            "from. Check how revealed rewards are recognised.",
        )
    _check_bounds(env, run, findings)
    if "error" not in findings.by_code:
        _check_reproducible(run, _run(env, steps, seed, _Findings()), findings)
    return CheckReport(
        findings=tuple(findings.by_code.values()),
        steps=sum(call.is_step for call in run),
        episodes=sum(call.ended for call in run),
        intervals=len(ends),
    )


class _Findings:
    """Findings by code: the first of each is kept, the others are only counted."""

    def __init__(self) -> None:
        self.by_code: dict[str, Finding] = {}

    def add(self, findings: Iterable[Finding]) -> None:
        for finding in findings:
            first = self.by_code.get(finding.code)
            if first is not None:
                finding = dataclasses.replace(first, count=first.count + 1)
            self.by_code[finding.code] = finding

    def warn(self, code: str, message: str) -> None:
        self.add([Finding(code, message, fatal=False)])


class _Call(NamedTuple):
    """What one call to reset or step returned."""

    place: str
    observation: Any
    reward: Any = 0.0
    ended: bool = False
    info: dict[str, Any] = {}  # noqa: RUF012 (only ever read)
    is_step: bool = False


def _run(env: AnyEnv, steps: int, seed: int, findings: _Findings) -> list[_Call]:
    """Play random actions and add every broken rule to the findings."""
    # Not the environment's seed: the actions would repeat its random numbers.
    actions = env.action_space  # the same one throughout, although resets may make others
    actions.seed(seed + 2**30)
    space = env.observation_space
    options = options_of(actions)
    rules = IntervalRules(spec_of(env) or IntervalSpec(steps), (space.shape or (0,))[0], options)
    has_rules = not {"no-interval-spec", "observation-space"} & findings.by_code.keys()
    run: list[_Call] = []
    ended, rules.episode = True, -1
    try:
        for _ in range(steps):
            if ended:
                rules.episode += 1
                observation = _copy(env.reset(seed=seed + rules.episode)[0])
                broken = list(rules.reset(observation))
                run.append(_Call(rules.place, observation))
                findings.add(broken if has_rules else ())
            action = sample(actions, allowed_in(env, observation))
            observation, reward, terminated, truncated, info = env.step(action)
            ended = bool(terminated or truncated)
            observation, info = _copy(observation), dict(info)
            broken = list(rules.step(observation, reward, terminated, truncated, info))
            run.append(_Call(rules.place, observation, reward, ended, info, is_step=True))
            findings.add(broken if has_rules else ())
        with warnings.catch_warnings():
            # The run stops mid-episode, which wrappers may rightly warn about.
            warnings.simplefilter("ignore")
            findings.add(_large_seed(env))
            env.reset(seed=seed)
    except Exception as error:
        place = f"episode {rules.episode}, step {rules.time + 1}"
        message = f"{place}: the environment raised {type(error).__name__}: {error}"
        findings.add([Finding("error", message)])
    return run


def _large_seed(env: AnyEnv) -> Iterator[Finding]:
    """Try the largest seed that an episode may have; those of the run were small."""
    try:
        env.reset(seed=LARGEST_SEED)
    except Exception as error:
        yield Finding(
            "large-seed",
            f"reset(seed={LARGEST_SEED}) raised {type(error).__name__}: {error}. Agents seed "
            "episodes with numbers of 32 bits, below 2**32. If your simulator takes only smaller "
            "ones, pass it seed % 2**31.",
        )


def _copy(observation: Any) -> Any:
    return observation.copy() if isinstance(observation, np.ndarray) else observation


def _intervals_of(run: list[_Call]) -> list[dict[str, Any]]:
    """``info["interval"]`` at the end of each interval."""
    said = [call.info.get("interval") or {} for call in run]
    return [interval for interval in said if interval.get("end") and "revealed" in interval]


def _check_bounds(env: AnyEnv, run: list[_Call], findings: _Findings) -> None:
    space = env.observation_space
    for call in run:
        if np.shape(call.observation) == space.shape and not space.contains(call.observation):
            findings.warn(
                "bounds",
                f"{call.place}: the observation {call.observation!r} is not in {space}.",
            )


def _check_reproducible(first: list[_Call], second: list[_Call], findings: _Findings) -> None:
    for a, b in zip(first, second, strict=False):
        for what, x, y in (
            ("observation", a.observation, b.observation),
            ("reward", a.reward, b.reward),
            ("end of an episode", a.ended, b.ended),
            ('info["interval"]', a.info.get("interval"), b.info.get("interval")),
        ):
            if not _same(x, y):
                findings.warn(
                    "seed",
                    f"{a.place}: the same seed and actions gave another {what}. Draw all "
                    "randomness from a generator seeded by reset(seed=...); otherwise runs "
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
