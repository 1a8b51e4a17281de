"""How to make a run's environment again: Gymnasium's spec of it, wrappers included, as JSON."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

import gymnasium as gym
from gymnasium.envs.registration import EnvSpec

from belated.envs.copies import made_from
from belated.envs.delay_reward import DelayReward
from belated.envs.interval_phase import IntervalPhase
from belated.envs.intervals import AnyEnv
from belated.envs.mark_intervals import MarkIntervals
from belated.envs.rewards import names_code

Recipe = dict[str, Any]

_KNOWN = {
    each.wrapper_spec().entry_point: each for each in (DelayReward, MarkIntervals, IntervalPhase)
}
"""The wrappers that run no code of others, but for what their arguments name."""


def recipe_of(env: AnyEnv) -> Recipe | None:
    """What a file has to hold so that an environment can be made again from it.

    Returns:
        None if there is no such thing: it is not registered, or was made with a function.
    """
    spec = env.spec
    if spec is None or any(each.kwargs is None for each in spec.additional_wrappers):
        return None
    given = [spec.kwargs, *(each.kwargs for each in spec.additional_wrappers)]
    if not all(map(_keeps_its_keys, given)):
        return None
    try:
        recipe: Recipe = json.loads(spec.to_json())
    except (TypeError, ValueError):  # something in it is no text and no number
        return None
    made_by = [recipe["entry_point"], *(each["entry_point"] for each in _wrappers(recipe))]
    # What a script defines is not there in another process.
    return None if any(str(each).startswith("__main__:") for each in made_by) else recipe


def usual_recipe(env_id: str, delay: dict[str, Any], phase: bool) -> Recipe | None:
    """The recipe of what `belated.make` makes of an id that every process knows, without masks.

    Args:
        env_id: the id.
        delay: the arguments of `DelayReward`, if the environment is to be delayed.
        phase: whether to tell the phase.
    """
    registered = gym.registry.get(env_id)
    if registered is None or not _is_ours(registered.entry_point):
        return None
    spec = copy.deepcopy(registered)
    if delay:
        phased = IntervalPhase.wrapper_spec(phase=phase, action_masks=False)
        spec.additional_wrappers += (DelayReward.wrapper_spec(**delay), phased)
    recipe: Recipe = json.loads(spec.to_json())
    return recipe


def make_again(recipe: Recipe, **kwargs: Any) -> AnyEnv:
    """Make an environment from its recipe.

    Args:
        recipe: what `recipe_of` returned.
        **kwargs: passed on to ``gym.make``.

    Raises:
        ValueError: if that cannot be done here.
    """
    try:
        return made_from(EnvSpec.from_json(json.dumps(recipe)), **kwargs)
    except (ImportError, AttributeError, KeyError, TypeError, gym.error.Error) as error:
        raise ValueError(
            f"Cannot make the run's environment {recipe.get('id')!r} again: {error}. Start belated "
            "where its module can be imported."
        ) from error


def code_in(recipe: Recipe) -> Iterator[str]:
    """What a recipe names that has to be imported from outside Gymnasium and this library."""
    registered = gym.registry.get(str(recipe.get("id")))
    entry_point = str(recipe.get("entry_point"))
    known = registered is not None and registered.entry_point == entry_point
    if registered is None or not known or not _is_ours(entry_point):
        yield entry_point
    else:  # it may be told to read a file, say
        for name, value in _mapping(recipe.get("kwargs")).items():
            plain = value is None or isinstance(value, (bool, int, float))
            if not plain and registered.kwargs.get(name) != value:
                yield f"{recipe['id']} with {name}={value!r}"
    for wrapper in _wrappers(recipe):
        if str(wrapper.get("entry_point")) not in _KNOWN:
            yield str(wrapper.get("entry_point"))
        arguments = _mapping(wrapper.get("kwargs"))
        reward, predicate = arguments.get("reward"), arguments.get("when")
        if isinstance(reward, str) and names_code(reward):
            yield reward
        if predicate is not None:
            yield str(predicate)


def _keeps_its_keys(value: Any) -> bool:
    """Whether JSON gives back a value's mappings as they are: their keys must be text."""
    if isinstance(value, dict):
        return all(isinstance(key, str) and _keeps_its_keys(value[key]) for key in value)
    return not isinstance(value, (list, tuple)) or all(map(_keeps_its_keys, value))


def _mapping(value: Any) -> dict[str, Any]:
    if value is not None and not isinstance(value, dict):
        raise ValueError(f"A recipe is damaged: {value!r} should be arguments by name.")
    return value or {}


def _is_ours(entry_point: Any) -> bool:
    return str(entry_point).split(".")[0] in ("gymnasium", "belated")


def _wrappers(recipe: Recipe) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = recipe.get("additional_wrappers") or []
    return found
