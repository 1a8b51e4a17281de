"""``belated methods``: which there are, and what can be set in them."""

from __future__ import annotations

import dataclasses
import inspect
import json as json_module
import re
from collections.abc import Iterator
from typing import Annotated, Any, NamedTuple

import tyro
from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from belated.methods import METHODS, find_method
from belated.ranges import allowed

STEMS = {
    "sac": "plain; biased when rewards are late",
    "oracle": "plain, told the hidden reward of each step: a yardstick",
    "q-rnn": "a GRU reads the interval: the paper's Q, in one piece",
    "hc-singleton": "H sums over single steps: the cheapest H",
    "hc-pairwise-1": "H sums over neighbours too: the paper's best; slower",
    "hc-pairwise-3": "pairs up to 3 steps apart; any hc-pairwise-K works",
    "hc-rnn": "H is a GRU: for rewards that depend on order; slow",
    "ircr": "pays each step by how its interval ranks in the replay",
    "ircr-original": "the same, its authors' settings and best episodes",
    "rrd": "pays each step a reward that is fitted to the sums",
    "hc-rrd": "rrd pays each step, H explains what that leaves",
    "ppo": "plain",
    "ppo-oracle": "plain, told the hidden reward of each step: a yardstick",
    "rudder": "pays each step by how an LSTM's prediction changes",
    "lirpg": "learns a reward of its own that helps to earn yours",
}
"""What methods are; td3-NAME, crossq-NAME and dqn-NAME are the same on another backbone."""

LEGEND = """\
Methods with hc have Q = H + C: H is what the interval has earned so far, C what
the action adds. They, ircr, rrd and rudder can say which steps earned a reward.
belated methods NAME shows what can be set in one."""


class Family(NamedTuple):
    """Methods with the same backbone."""

    name: str
    actions: str
    when: str


BOX, DISCRETE, BOTH = "Box actions", "discrete actions", "Box and discrete actions"
FAMILIES = {
    "SAC": Family("sac", BOTH, "The paper's own backbone, with its settings."),
    "CrossQ": Family(
        "crossq",
        BOTH,
        "SAC with batch normalisation: learns in fewer steps. crossq-hc-singleton is what `belated "
        "train` takes if you name none.",
    ),
    "TD3": Family("td3", BOX, "A deterministic policy with added noise."),
    "DQN": Family(
        "dqn", DISCRETE, "No policy, only values, and random actions as often as you say."
    ),
    "PPO": Family(
        "ppo", BOTH, "On-policy: needs more steps; for environments that are cheap to run."
    ),
    "LIRPG": Family("lirpg", BOTH, "PPO with a reward that is learned: a baseline."),
}


class Setting(NamedTuple):
    """A hyperparameter of a method."""

    name: str
    """As ``--set`` and keywords of `Agent` spell it."""
    part: str
    """The part that it belongs to, such as backbone or history."""
    type: str
    """The part's class."""
    default: Any
    allowed: str
    meaning: str


def methods(
    name: Annotated[str | None, tyro.conf.Positional] = None,
    /,
    json: bool = False,
    markdown: bool = False,
) -> int:
    """List the methods, or a method's hyperparameters.

    Set them with --set of `belated train` and `belated compare`, or as keywords of Agent.

    Examples:
        belated methods
        belated methods hc-singleton
        belated methods crossq-hc-pairwise-2 --json

    Args:
        name: The method whose hyperparameters to show; hc-pairwise-K works for any K, and
            your_module:NAME takes one of your own.
        json: Print JSON instead.
        markdown: Print the tables of docs/hyperparameters.md instead, for all methods.
    """
    if markdown:
        if name is not None or json:
            raise ValueError("--markdown is about all methods: leave out the rest.")
        from belated.cli.hyperparameters import as_markdown

        print(as_markdown())
    elif name is None:
        _list(json)
    else:
        _show(name, json)
    return 0


def about(name: str) -> str:
    """What a method is, in a line.

    >>> about("td3-oracle")
    'plain, told the hidden reward of each step: a yardstick'
    """
    return STEMS[stem_of(name)]


def stem_of(name: str) -> str:
    """What a method is called without its backbone.

    >>> stem_of("td3-oracle"), stem_of("dqn"), stem_of("rudder")
    ('oracle', 'sac', 'rudder')
    """
    return re.sub("^(td3|crossq|dqn)(-|$)", "", name) or "sac"


def family_of(name: str) -> str:
    """The name of a method's backbone."""
    return type(METHODS[name].backbone).__name__


def settings_of(part: Any, kind: str = "method") -> Iterator[Setting]:
    """The hyperparameters of a part and of those inside it, each with what its class says of it."""
    inner = []
    for field in dataclasses.fields(part):
        value = getattr(part, field.name)
        if dataclasses.is_dataclass(value):
            inner.append((value, field.name))
            continue
        meaning = meaning_of(type(part), field.name)
        yield Setting(
            field.name, kind, type(part).__name__, value, allowed(part, field.name), meaning
        )
    for value, name in inner:
        yield from settings_of(value, name)


def meaning_of(cls: type, name: str) -> str:
    """What the docstring of a class, or of one that it inherits from, says of a field."""
    for each in cls.__mro__:
        section = (inspect.getdoc(each) or "").partition("Attributes:\n")[2]
        found = re.search(rf"^    {name}: (.*(?:\n {{8}}.*)*)", section, re.MULTILINE)
        if found is not None:
            return " ".join(found[1].replace("``", "`").split())
    return ""


def spelt(settings: list[Setting]) -> list[Setting]:
    """Settings by names that tell them apart, as in ``critic.units`` and ``credit.units``."""
    names = [setting.name for setting in settings]
    return [
        each._replace(name=f"{each.part}.{each.name}") if names.count(each.name) > 1 else each
        for each in settings
    ]


def _families() -> Iterator[tuple[Family, list[str]]]:
    for backbone, family in FAMILIES.items():
        yield family, [name for name in METHODS if family_of(name) == backbone]


def _list(json: bool) -> None:
    if json:
        rows = [
            {"name": name, "family": family.name, "actions": family.actions, "about": about(name)}
            for family, names in _families()
            for name in names
        ]
        print(json_module.dumps(rows, indent=2))
        return
    console = Console(highlight=False)
    width = max(map(len, METHODS))
    for family, names in _families():
        console.print(Text.assemble((family.name, "bold"), f": {family.actions}. {family.when}"))
        for name in names:
            console.print(f"  {name:{width}}  {about(name)}")
        console.print()
    console.print(LEGEND)


def _show(name: str, json: bool) -> None:
    settings = spelt(list(settings_of(find_method(name))))
    if json:
        print(json_module.dumps([setting._asdict() for setting in settings], indent=2))
        return
    console = Console(highlight=False)
    if name in METHODS:
        console.print(Text(f"{name}: {about(name)}\n"))
    for part, cls in dict.fromkeys((setting.part, setting.type) for setting in settings):
        console.print(Text(f"{part}: {cls}", "bold"))
        for each in settings:
            if (each.part, each.type) == (part, cls):
                head = f"{each.name} = {as_text(each.default)}"
                console.print(Text(f"  {head:36}  {each.allowed}"))
                console.print(Padding(Text(each.meaning, "dim"), (0, 0, 0, 6)))
        console.print()
    first = settings[0]
    console.print(Text(f"Set them as in --set {first.name}={as_text(first.default)}."))


def as_text(value: Any) -> str:
    """A value as ``--set`` reads it; layers as [256,256]."""
    if isinstance(value, tuple):
        return "[" + ",".join(map(as_text, value)) + "]"
    return f"{value:g}" if isinstance(value, float) else str(value)
