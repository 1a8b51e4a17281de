"""One table: method name -> backbone, critic, credit and hyperparameters.

Compose your own from the same parts:

    >>> from belated.methods import HC, SAC, Method, Pairwise
    >>> method = Method(SAC(gamma=0.98), HC(Pairwise(reach=2, units=(32, 32)), regularizer=1.0))
    >>> agent = belated.Agent(method, env)  # doctest: +SKIP
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from belated.backbones import LIRPG, PPO, SAC, TD3, Backbone
from belated.credit import IRCR, RRD, Credit, Dense, Revealed, RolloutCredit, Rudder
from belated.critics import HC, CriticConfig, Markov, Pairwise, Recurrent, Segment, Singleton
from belated.envs.lengths import non_negative_int, positive_int

__all__ = [
    "HC",
    "IRCR",
    "LIRPG",
    "METHODS",
    "PPO",
    "RRD",
    "SAC",
    "TD3",
    "Dense",
    "Markov",
    "Method",
    "Pairwise",
    "Recurrent",
    "Revealed",
    "Rudder",
    "Segment",
    "Singleton",
    "find_method",
    "from_json",
    "override",
    "to_json",
]


PRECISIONS = ("float32", "bfloat16")


@dataclass(frozen=True)
class Method:
    """A way to learn: what is trained, from what reward, and how often.

    Attributes:
        backbone: SAC or TD3; or PPO or LIRPG, which learn from rollouts and use neither the critic
            nor anything that concerns the replay.
        critic: what values depend on.
        credit: what reward the TD target, or PPO, sees.
        hidden: the hidden layers of the actor and of state-action networks.
        batch_size: how many steps an update looks at.
        replay_size: how many steps are kept.
        learning_starts: how many uniformly random steps come first.
        best_episodes: how many episodes with the highest returns are kept beside the replay; if
            any, half of each batch comes from them.
        updates_per_step: how many updates each environment step brings.
        updates_per_dispatch: how many updates are run in one go. More than one saves overhead;
            the policy then acts for as many steps before it is updated.
        precision: of the factors of hidden layers' products in an update, "float32" or "bfloat16".
            The latter is faster on CPUs with instructions for it; sums, parameters, and what enters
            or leaves a network, stay float32.
    """

    backbone: Backbone = field(default_factory=SAC)
    critic: CriticConfig = field(default_factory=Markov)
    credit: Credit | RolloutCredit = field(default_factory=Revealed)
    hidden: tuple[int, ...] = (256, 256)
    batch_size: int = 128
    replay_size: int = 1_000_000
    learning_starts: int = 5_000
    best_episodes: int = 0
    updates_per_step: int = 1
    updates_per_dispatch: int = 1
    precision: str = "float32"

    def __post_init__(self) -> None:
        for name in ("batch_size", "replay_size", "updates_per_step", "updates_per_dispatch"):
            positive_int(getattr(self, name), name)
        for name in ("learning_starts", "best_episodes"):
            non_negative_int(getattr(self, name), name)
        object.__setattr__(self, "hidden", tuple(self.hidden))
        if self.precision not in PRECISIONS:
            raise ValueError(
                f"There is no precision {self.precision!r}; there are {' and '.join(PRECISIONS)}."
            )
        self._check_parts()

    def _check_parts(self) -> None:
        backbone, credit = type(self.backbone).__name__, type(self.credit).__name__
        needed, source = (
            (RolloutCredit, "rollouts") if self.backbone.on_policy else (Credit, "a replay")
        )
        if not isinstance(self.credit, needed):
            raise ValueError(
                f"{backbone} learns from {source}, for which {credit} has no reward. Revealed has "
                "one for every backbone."
            )
        if self.backbone.on_policy and self.precision != "float32":
            raise ValueError(f"{backbone} learns in float32 only, not in {self.precision}.")
        if self.backbone.on_policy and self.learning_starts > 0:
            raise ValueError(
                f"{backbone} can only learn from its own actions, not from {self.learning_starts} "
                "random ones: set learning_starts=0."
            )


METHODS: dict[str, Method] = {
    "sac": Method(),
    "oracle": Method(credit=Dense()),
    "q-rnn": Method(critic=Segment(128)),
    "hc-singleton": Method(critic=HC(Singleton((64, 64)), regularizer=0.05)),
    "hc-pairwise-1": Method(critic=HC(Pairwise(1, (64, 64)), regularizer=0.5)),
    "hc-pairwise-3": Method(critic=HC(Pairwise(3, (48, 48)), regularizer=5.0)),
    "hc-rnn": Method(critic=HC(Recurrent(48), regularizer=5.0)),
    "ircr": Method(credit=IRCR()),
    "rrd": Method(credit=RRD()),
}
METHODS |= {
    "td3" if name == "sac" else f"td3-{name}": dataclasses.replace(method, backbone=TD3())
    for name, method in METHODS.items()
}
METHODS["ircr-original"] = Method(
    backbone=SAC(
        tau=0.001,
        smooth_l1=True,
        max_gradient_norm=1.0,
        initial_temperature=0.1,
        temperature_learning_rate=1e-4,
    ),
    credit=IRCR(),
    best_episodes=10,
)


def _on_policy(backbone: Backbone, credit: Credit | RolloutCredit) -> Method:
    return Method(backbone, credit=credit, hidden=(64, 64), learning_starts=0)


METHODS |= {
    "ppo": _on_policy(PPO(), Revealed()),
    "ppo-oracle": _on_policy(PPO(), Dense()),
    "rudder": _on_policy(PPO(), Rudder()),
    "lirpg": _on_policy(LIRPG(), Revealed()),
}


def find_method(name: str) -> Method:
    """Return the method of a name; hc-pairwise-K and td3-hc-pairwise-K work for any K.

    >>> find_method("hc-pairwise-2").critic
    HC(history=Pairwise(reach=2, units=(48, 48)), regularizer=5.0)
    """
    if name in METHODS:
        return METHODS[name]
    pairwise = re.fullmatch(r"(td3-)?hc-pairwise-([1-9]\d*)", name)
    if pairwise is None:
        raise ValueError(
            f"There is no method {name!r}. There are {', '.join(METHODS)}, and hc-pairwise-K "
            "for any K from 1 on."
        )
    three = METHODS[f"{pairwise[1] or ''}hc-pairwise-3"]
    return override(three, {"reach": int(pairwise[2])})


def override(method: Method, changes: Mapping[str, Any]) -> Method:
    """Return a method with some hyperparameters changed, whichever part of it they belong to.

    >>> override(find_method("hc-singleton"), {"gamma": 0.9, "units": (32,)}).critic.history
    Singleton(units=(32,))
    """
    known = _fields(method)
    unknown = [name for name in changes if name not in known]
    if unknown:
        raise ValueError(
            f"There is no hyperparameter {', '.join(unknown)}; this method has "
            f"{', '.join(sorted(known))}."
        )
    tuples = {name: tuple(v) if isinstance(v, list) else v for name, v in changes.items()}
    changed: Method = _replace(method, tuples)
    return changed


def _parts(config: Any) -> dict[str, Any]:
    values = {f.name: getattr(config, f.name) for f in dataclasses.fields(config)}
    return {name: value for name, value in values.items() if dataclasses.is_dataclass(value)}


def _fields(config: Any) -> set[str]:
    names = {f.name for f in dataclasses.fields(config)}
    return names.union(*(_fields(part) for part in _parts(config).values()))


def _replace(config: Any, changes: Mapping[str, Any]) -> Any:
    own = {f.name for f in dataclasses.fields(config)}
    new = {name: _replace(part, changes) for name, part in _parts(config).items()}
    return dataclasses.replace(config, **new | {k: v for k, v in changes.items() if k in own})


_CONFIGS = {
    config.__name__: config
    for config in (
        Method, SAC, TD3, PPO, LIRPG, Markov, Segment, HC, Singleton, Pairwise, Recurrent,
        Revealed, Dense, IRCR, RRD, Rudder,
    )
}  # fmt: skip


def to_json(config: Any) -> Any:
    """Turn a method into plain values that a JSON file can hold."""
    if dataclasses.is_dataclass(config):
        values = {f.name: to_json(getattr(config, f.name)) for f in dataclasses.fields(config)}
        return {"type": type(config).__name__} | values
    return list(config) if isinstance(config, tuple) else config


def from_json(values: Any) -> Any:
    """Undo `to_json`; only configs of this package are made, nothing else is ever called."""
    if isinstance(values, dict):
        kind = values.get("type")
        if kind not in _CONFIGS:
            raise ValueError(f"There is no part of a method called {kind!r}.")
        fields = {name: from_json(value) for name, value in values.items() if name != "type"}
        return _CONFIGS[kind](**fields)
    return tuple(values) if isinstance(values, list) else values
