"""Parts of a method: registering one's own, writing them as JSON, changing their settings.

A part is a frozen dataclass: a backbone, a critic, a history function, a credit rule, or the reward
form of an environment. What a part learns is never in it.
"""

from __future__ import annotations

import dataclasses
import difflib
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

Class = TypeVar("Class", bound=type)
Config = TypeVar("Config")

_REGISTERED: dict[str, type] = {}


def register(cls: Class) -> Class:
    """Make a part of your own known, so that it can be logged, saved and loaded.

    Put it above ``@dataclass(frozen=True)``. A file holds the class's name only; loading makes
    parts that are registered and nothing else.

    >>> import belated
    >>> @belated.register
    ... @dataclasses.dataclass(frozen=True)
    ... class Mine:
    ...     size: int = 3
    >>> from_json(to_json(Mine(4)))
    Mine(size=4)
    """
    params = vars(cls).get("__dataclass_params__")  # not a base class's
    if params is None or not params.frozen:
        raise TypeError(
            f"{cls.__name__} must be a frozen dataclass: write @belated.register above "
            "@dataclass(frozen=True)."
        )
    reserved = {"type", "module"} & {field.name for field in dataclasses.fields(cls)}
    if reserved:
        raise ValueError(f"No setting of a part can be called {reserved.pop()}: files use that.")
    known = _REGISTERED.get(cls.__name__)
    if known is not None and _home(known) != _home(cls):
        raise ValueError(
            f"A part called {cls.__name__} is registered already, from {known.__module__}. Files "
            "name parts by their class, so choose another name."
        )
    _REGISTERED[cls.__name__] = cls
    return cls


def _home(cls: type) -> tuple[str, str]:
    return cls.__module__, cls.__qualname__


def registered(base: type[Any]) -> Iterator[type[Any]]:
    """The registered parts of a kind."""
    return (cls for cls in _REGISTERED.values() if issubclass(cls, base))


def to_json(part: Any) -> Any:
    """Turn a part into plain values that a JSON file can hold.

    Raises:
        ValueError: if it could not be loaded again.
    """
    if dataclasses.is_dataclass(part):
        cls = type(part)
        known = _REGISTERED.get(cls.__name__)
        if known is None or _home(known) != _home(cls):
            raise ValueError(
                f"{cls.__name__} is not registered, so that no file could be loaded that names "
                "it. Write @belated.register above the class."
            )
        values = {f.name: to_json(getattr(part, f.name)) for f in dataclasses.fields(part)}
        return {"type": cls.__name__} | _origin(cls) | values
    if isinstance(part, (tuple, list)):
        return [to_json(value) for value in part]
    if part is None or isinstance(part, (bool, int, float, str)):
        return part
    raise ValueError(f"{part!r} cannot be written as JSON; a part holds numbers, words and parts.")


def require_savable(part: Any) -> None:
    """Refuse now what could not be saved or compiled after hours of learning.

    Raises:
        ValueError: if a part is not registered, or holds a list.
    """
    to_json(part)
    try:
        hash(part)
    except TypeError as error:
        raise ValueError(f"A part holds something that can change ({error}): use tuples.") from None


def _origin(cls: type) -> dict[str, str]:
    """Where a part from outside was defined: a hint for people, never imported."""
    module = cls.__module__
    if module.split(".")[0] == __package__:
        return {}
    if module == "__main__":
        module = Path(getattr(sys.modules[module], "__file__", None) or module).stem
    return {"module": module}


def from_json(values: Any) -> Any:
    """Undo `to_json`. Only registered parts are made; nothing is imported or called by name."""
    if isinstance(values, list):
        return tuple(from_json(value) for value in values)
    if not isinstance(values, dict):
        return values
    name, module = values.get("type"), values.get("module")
    cls = _REGISTERED.get(name) if isinstance(name, str) else None
    if cls is None:
        origin = f" It was defined in {module!r}." if isinstance(module, str) else ""
        raise ValueError(
            f"There is no part called {name!r}.{origin} If it is one of your own, import its "
            "module, where @belated.register stands above it, before you load the file."
        )
    fields = {k: from_json(v) for k, v in values.items() if k not in ("type", "module")}
    unknown = fields.keys() - {f.name for f in dataclasses.fields(cls)}
    if unknown:
        names = ", ".join(sorted(unknown))
        raise ValueError(f"The file's {name} is another one: it has {names}, this one has not.")
    try:
        return cls(**fields)
    except TypeError as error:
        raise ValueError(f"The file's {name} is another one: {error}.") from None


Place = tuple[str, ...]


def override(part: Config, changes: Mapping[str, Any]) -> Config:
    """Return a part with some settings changed, whichever part inside it they belong to.

    A setting that only one part has goes by its name. Where several have it, name the part too, as
    in ``critic.units`` and ``credit.units``.

    >>> from belated.methods import find_method
    >>> override(find_method("hc-singleton"), {"gamma": 0.9, "critic.units": [32]}).backbone.critic
    HC(history=Singleton(units=(32,)), regularizer=0.05, shared=False)

    Raises:
        ValueError: if there is no such setting, or more than one.
    """
    found = {name: _find(part, name) for name in changes}
    if len(set(found.values())) < len(found):
        raise ValueError(f"A hyperparameter is given twice, among {', '.join(found)}.")
    changed: Config = _changed(part, {found[name]: value for name, value in changes.items()})
    return changed


def _find(part: Any, name: str) -> Place:
    """The path of the one setting that a spelling means."""
    paths = list(_paths(part))
    words = tuple(name.split("."))
    meant = [path for path in paths if path == words] or [
        path for path in paths if path[-1] == words[-1] and _in_order(words, path)
    ]
    if not meant:
        names = sorted({path[-1] for path in paths})
        similar = did_you_mean(words[-1], names)
        raise ValueError(
            f"There is no hyperparameter {name}. {similar}This method has {', '.join(names)}."
        )
    if len(meant) > 1:
        spellings = " or ".join(".".join(path) for path in meant)
        raise ValueError(f"More than one part has a hyperparameter {name}: say {spellings}.")
    return meant[0]


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """A question to put into an error message, or nothing where no name is similar.

    >>> did_you_mean("batchsize", ["batch_size", "gamma"])
    'Did you mean batch_size? '
    """
    similar = difflib.get_close_matches(name.lower(), names, n=1)
    return f"Did you mean {similar[0]}? " if similar else ""


def _paths(part: Any, above: Place = ()) -> Iterator[Place]:
    for field in dataclasses.fields(part):
        path = (*above, field.name)
        yield path
        value = getattr(part, field.name)
        if dataclasses.is_dataclass(value):
            yield from _paths(value, path)


def _in_order(words: Place, path: Place) -> bool:
    remaining = iter(path)
    return all(word in remaining for word in words)


def _changed(part: Any, changes: Mapping[Place, Any]) -> Any:
    """Make all changes of a part at once: what it checks may depend on several of them."""
    new = {place[0]: value for place, value in changes.items() if len(place) == 1}
    new = {name: tuple(v) if isinstance(v, list) else v for name, v in new.items()}
    for name in {place[0] for place in changes if len(place) > 1}:
        inside = {p[1:]: v for p, v in changes.items() if p[0] == name and len(p) > 1}
        new[name] = _changed(new.get(name, getattr(part, name)), inside)
    return dataclasses.replace(part, **new)
