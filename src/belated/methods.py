"""One table: method name -> backbone with its parts, and settings of training.

Compose your own from the same parts:

    >>> from belated.methods import HC, SAC, Method, Pairwise, ReplayTraining
    >>> critic = HC(Pairwise(reach=2, units=(32, 32)), regularizer=1.0)
    >>> method = Method(SAC(critic=critic, gamma=0.98), ReplayTraining(batch_size=256))
    >>> agent = belated.Agent(method, env)  # doctest: +SKIP
"""

from __future__ import annotations

import pkgutil
import re
from dataclasses import dataclass, replace
from typing import Any

from belated.backbones import DQN, LIRPG, PPO, SAC, TD3, Backbone, CrossQ
from belated.backbones.averaged import Averaged
from belated.backbones.base import require_part
from belated.backbones.normalized import Normalized
from belated.credit import IRCR, RRD, Dense, Revealed, Rudder
from belated.critics import HC, Markov, Pairwise, Recurrent, Segment, Singleton
from belated.envs.named_function import not_found
from belated.experience.base import Training
from belated.experience.off_policy import ReplayTraining
from belated.experience.on_policy import RolloutTraining
from belated.parts import did_you_mean, override, register

__all__ = [
    "DQN",
    "HC",
    "IRCR",
    "LIRPG",
    "METHODS",
    "PPO",
    "RRD",
    "SAC",
    "TD3",
    "CrossQ",
    "Dense",
    "Markov",
    "Method",
    "Pairwise",
    "Recurrent",
    "ReplayTraining",
    "Revealed",
    "RolloutTraining",
    "Rudder",
    "Segment",
    "Singleton",
    "find_method",
]


@register
@dataclass(frozen=True)
class Method:
    """A way to learn.

    Attributes:
        backbone: what acts and learns, with its critic and credit rule.
        training: how steps are kept and how often they are learned from; by default as the
            backbone usually is trained.
    """

    backbone: Backbone
    training: Training = None  # type: ignore[assignment]  # filled in below

    def __post_init__(self) -> None:
        require_part(self, self.backbone, Backbone, "needs a backbone")
        kind = self.backbone.learns_from
        if self.training is None:
            object.__setattr__(self, "training", self.backbone.usual_training)
        require_part(self.backbone, self.training, kind, f"is trained by {kind.__name__}")

    @property
    def trained(self) -> Backbone:
        """The backbone, behind what averages its policy and what normalises observations for it."""
        backbone = self.backbone
        if self.training.policy_average:
            backbone = Averaged(backbone, self.training.policy_average)
        if self.training.normalize_observations:
            backbone = Normalized(backbone)
        return backbone

    @property
    def gamma(self) -> float:
        """The discount of a unit of time; 1 if the backbone knows of none."""
        return float(getattr(self.backbone, "gamma", 1.0))


_PARTS: dict[str, dict[str, Any]] = {
    "sac": {},
    "oracle": {"credit": Dense()},
    "q-rnn": {"critic": Segment(128)},
    "hc-singleton": {"critic": HC(Singleton((64, 64)), regularizer=0.05)},
    "hc-pairwise-1": {"critic": HC(Pairwise(1, (64, 64)), regularizer=0.5)},
    "hc-pairwise-3": {"critic": HC(Pairwise(3, (48, 48)), regularizer=5.0)},
    "hc-rnn": {"critic": HC(Recurrent(48), regularizer=5.0)},
    "ircr": {"credit": IRCR()},
    "rrd": {"credit": RRD()},
}
"""What methods on SAC differ in; on others they are td3-NAME, crossq-NAME and dqn-NAME."""


def _on_crossq(**parts: Any) -> Method:
    """The method with the same parts, but one H for both critics."""
    if isinstance(parts.get("critic"), HC):
        parts["critic"] = replace(parts["critic"], shared=True)
    return Method(CrossQ(**parts))


METHODS: dict[str, Method] = {
    **{name: Method(SAC(**parts)) for name, parts in _PARTS.items()},
    **{
        "td3" if name == "sac" else f"td3-{name}": Method(TD3(**parts))
        for name, parts in _PARTS.items()
    },
    **{
        "crossq" if name == "sac" else f"crossq-{name}": _on_crossq(**parts)
        for name, parts in _PARTS.items()
        if name != "q-rnn"  # (its critic needs a target)
    },
    **{
        "dqn" if name == "sac" else f"dqn-{name}": Method(DQN(**parts))
        for name, parts in _PARTS.items()
        if name != "q-rnn"  # (a policy that is greedy in it would need the history)
    },
    "crossq-hc-rrd": _on_crossq(
        critic=HC(Singleton((64, 64)), regularizer=0.05), credit=RRD(reward_units=(64, 64))
    ),
    "ircr-original": Method(
        SAC(
            credit=IRCR(),
            tau=0.001,
            smooth_l1=True,
            max_gradient_norm=1.0,
            initial_temperature=0.1,
            temperature_learning_rate=1e-4,
        ),
        ReplayTraining(best_episodes=10),
    ),
    "ppo": Method(PPO()),
    "ppo-oracle": Method(PPO(credit=Dense())),
    "rudder": Method(PPO(credit=Rudder())),
    "lirpg": Method(LIRPG()),
}


def find_method(name: str) -> Method:
    """Return the method of a name; hc-pairwise-K works for any K, on every backbone.

    ``your_module:NAME`` imports your_module and takes the method or backbone that it calls so.

    >>> find_method("hc-pairwise-2").backbone.critic
    HC(history=Pairwise(reach=2, units=(48, 48)), regularizer=5.0, shared=False)
    """
    if name in METHODS:
        return METHODS[name]
    if ":" in name:
        return _imported(name)
    pairwise = re.fullmatch(r"(td3-|crossq-|dqn-)?hc-pairwise-([1-9]\d*)", name)
    if pairwise is None:
        similar = did_you_mean(name.replace("_", "-"), METHODS)
        raise ValueError(
            f"There is no method {name!r}. {similar}There are {', '.join(METHODS)}, and "
            "hc-pairwise-K for any K from 1 on."
        )
    three = METHODS[f"{pairwise[1] or ''}hc-pairwise-3"]
    return override(three, {"reach": int(pairwise[2])})


def _imported(name: str) -> Method:
    try:
        found = pkgutil.resolve_name(name)
    except ModuleNotFoundError as error:
        why = not_found(error, name.partition(":")[0])
        raise ValueError(f"Cannot import the method {name!r}: {why}") from error
    except (ImportError, AttributeError, ValueError) as error:
        raise ValueError(f"Cannot import the method {name!r}: {error}.") from error
    if not isinstance(found, (Method, Backbone)) or isinstance(found, type):
        raise ValueError(f"{name} is no method and no backbone, but {found!r}.")
    return as_method(found)


def as_method(method: str | Method | Backbone) -> Method:
    """Make a method of a name or of a backbone alone."""
    if isinstance(method, str):
        return find_method(method)
    return method if isinstance(method, Method) else Method(method)
