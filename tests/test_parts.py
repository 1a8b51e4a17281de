"""Parts from outside: registered, written, read, told apart."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import gymnasium as gym
import numpy as np
import pytest
from small_agents import delayed, small_agent

import belated
from belated import parts
from belated.credit.base import Unlearned
from belated.envs.rewards import IntervalReward, Sum, Window, as_text, names_code, parse_reward
from belated.methods import (
    HC,
    METHODS,
    PPO,
    RRD,
    SAC,
    Markov,
    Method,
    ReplayTraining,
    Rudder,
    Singleton,
)
from belated.parts import from_json, override, register, to_json


@register
@dataclass(frozen=True)
class Scaled(Unlearned):
    """A credit rule with a hyperparameter that critics have too."""

    units: tuple[int, ...] = (1,)
    gamma: float = 2.0

    def reward(self, state: None, batch: Any) -> Any:
        return self.gamma * batch.reward


@register
@dataclass(frozen=True)
class Product(IntervalReward):
    """A reward form of one's own, with an argument."""

    factor: float = 1.0

    name: ClassVar[str] = "product"

    @classmethod
    def parse(cls, arguments: str) -> Product:
        return cls(float(arguments or 1))

    def __call__(self, window: Window) -> float:
        return self.factor * float(np.prod(window.rewards))

    def __str__(self) -> str:
        return f"product:{self.factor}"


AMBIGUOUS = Method(SAC(HC(Singleton((64,)), 0.05), Scaled()))


@pytest.mark.parametrize("name", METHODS)
def test_every_method_survives_json(name: str) -> None:
    assert from_json(json.loads(json.dumps(to_json(METHODS[name])))) == METHODS[name]


def test_parts_with_the_same_setting_are_told_apart() -> None:
    changed = override(AMBIGUOUS, {"critic.units": [8], "credit.units": (4,), "credit.gamma": 3.0})
    assert changed.backbone == SAC(HC(Singleton((8,)), 0.05), Scaled((4,), 3.0))
    assert override(AMBIGUOUS, {"backbone.gamma": 0.5}).backbone.gamma == 0.5  # type: ignore[attr-defined]
    assert override(AMBIGUOUS, {"regularizer": 1}).backbone.critic.regularizer == 1.0  # type: ignore[attr-defined]


def test_an_ambiguous_setting_is_refused_and_applied_to_neither() -> None:
    said = r"units: say backbone\.critic\.history\.units or backbone\.credit\.units\."
    with pytest.raises(ValueError, match=said):
        override(AMBIGUOUS, {"units": (8,)})
    with pytest.raises(ValueError, match="More than one part has a hyperparameter gamma"):
        override(AMBIGUOUS, {"gamma": 0.5})


@pytest.mark.parametrize("name", ["units.critic", "actor.units", "critic.units.size", "critic."])
def test_an_unknown_setting_lists_what_there_is(name: str) -> None:
    with pytest.raises(ValueError, match=r"no hyperparameter .*This method has .*gamma"):
        override(AMBIGUOUS, {name: 3})


def test_a_part_can_be_replaced_as_a_whole_and_changed_inside_at_once() -> None:
    changed = override(METHODS["hc-rnn"], {"critic": HC(Singleton(), 1.0), "regularizer": 2.0})
    assert changed.backbone.critic == HC(Singleton(), 2.0)  # type: ignore[attr-defined]


def test_only_frozen_dataclasses_can_be_registered_and_names_are_unique() -> None:
    with pytest.raises(TypeError, match=r"above @dataclass\(frozen=True\)"):
        register(type("Loose", (), {}))
    with pytest.raises(ValueError, match="A part called Markov is registered already"):
        register(dataclass(frozen=True)(type("Markov", (), {})))
    assert register(Scaled) is Scaled  # again, as in a notebook
    assert from_json(to_json(Markov())) == Markov()


def test_an_unregistered_part_is_refused_before_it_learns() -> None:
    @dataclass(frozen=True)
    class Stranger(Scaled):
        pass

    with pytest.raises(ValueError, match=r"Stranger is not registered.*@belated\.register"):
        small_agent(SAC(credit=Stranger()))


def test_a_file_that_names_an_unknown_part_says_what_to_import(tmp_path: Path) -> None:
    small_agent(SAC(credit=Scaled())).save(tmp_path / "agent")
    manifest = tmp_path / "agent" / "manifest.json"
    document = json.loads(manifest.read_text())
    assert document["method"]["backbone"]["credit"]["module"] == __name__
    assert belated.Agent.load(tmp_path / "agent").method.backbone.credit == Scaled()  # type: ignore[attr-defined]
    document["method"]["backbone"]["credit"] |= {"type": "Elsewhere", "module": "their.module"}
    manifest.write_text(json.dumps(document))
    said = r"no part called 'Elsewhere'. It was defined in 'their\.module'.*import its module"
    with pytest.raises(ValueError, match=said):
        belated.Agent.load(tmp_path / "agent")
    assert "their" not in sys.modules


@pytest.mark.parametrize(
    "values",
    [{"type": "os.system"}, {"type": ["Markov"]}, {}, {"type": "Markov", "units": 3}],
    ids=str,
)
def test_nothing_but_registered_parts_is_made(values: Any) -> None:
    with pytest.raises(ValueError, match=r"no part called|Markov is another one: it has units"):
        from_json(values)


@pytest.mark.parametrize("value", [{1: 2}, np.zeros(2), lambda: 0], ids=["dict", "array", "call"])
def test_what_no_file_can_hold_is_refused(value: Any) -> None:
    with pytest.raises(ValueError, match="cannot be written as JSON"):
        to_json(dataclasses.replace(Scaled(), units=value))


def test_combinations_without_a_meaning_cannot_be_written_down() -> None:
    with pytest.raises(TypeError, match="critic"):
        PPO(critic=Markov())  # type: ignore[call-arg]
    with pytest.raises(ValueError, match="SAC needs a recipe for critics, not RRD"):
        SAC(RRD())  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="Method needs a backbone, not Rudder"):
        Method(Rudder())  # type: ignore[arg-type]


def test_a_registered_reward_is_known_by_its_name() -> None:
    assert parse_reward("product") == Product()
    assert parse_reward(str(Product(2.5))) == Product(2.5)
    assert not names_code("product:2.5")
    env = belated.delay(gym.make("scripted/Random-v0"), interval=3, reward="product:2")
    assert env.spec is not None
    assert gym.make(env.spec).get_wrapper_attr("interval_reward") == Product(2.0)
    with pytest.raises(ValueError, match=r"There are sum, .*product"):
        parse_reward("produkt")


def test_a_registered_critic_is_loaded_in_another_process(tmp_path: Path) -> None:
    small_agent(SAC(credit=Scaled())).save(tmp_path / "agent")
    load = f"import belated; belated.Agent.load({str(tmp_path / 'agent')!r})"
    stranger = subprocess.run([sys.executable, "-c", load], capture_output=True, text=True)
    assert "no part called 'Scaled'" in stranger.stderr
    known = f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r}); import test_parts; "
    subprocess.run([sys.executable, "-c", known + load], check=True)


def test_a_backbone_alone_is_a_method() -> None:
    agent = belated.Agent(SAC(hidden=(4,)), delayed(), batch_size=16)
    assert agent.method == override(Method(SAC(hidden=(4,))), {"batch_size": 16})


@register
@dataclass(frozen=True)
class Scaling(IntervalReward):
    """A reward form with a setting that its text does not hold."""

    scale: float = 1.0

    name: ClassVar[str] = "scaling"

    def __call__(self, window: Window) -> float:
        return self.scale * sum(window.rewards)


def test_a_copy_of_an_environment_has_the_same_reward_whatever_its_text_says() -> None:
    env = belated.delay(gym.make("scripted/Random-v0"), interval=3, reward=Scaling(100.0))
    agent = small_agent(env=env, num_envs=2)
    assert agent.evaluation_env().get_wrapper_attr("interval_reward") == Scaling(100.0)


def test_a_reward_form_cannot_take_anothers_name() -> None:
    @register
    @dataclass(frozen=True)
    class MySum(Sum):
        pass

    assert parse_reward("sum") == Sum()
    assert as_text(MySum()) is None
    named: Any = dataclass(frozen=True)(type("OtherSum", (Sum,), {"name": "sum"}))
    register(named)
    try:
        with pytest.raises(ValueError, match="Two interval rewards are called 'sum'"):
            parse_reward("sum")
    finally:
        del parts._REGISTERED["OtherSum"]


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: SAC(anything(Markov)), r"SAC needs a recipe for critics: write Markov\(\.\.\.\)"),
        (
            lambda: belated.Agent(anything(SAC), delayed()),
            r"Method needs a backbone: write SAC\(\.\.\.\)",
        ),
        (lambda: HC(anything(Markov()), 0.1), "HC needs a function of the history, not Markov"),
        (lambda: ReplayTraining(batch_size=9, replay_size=8), r"at least batch_size \(9\), got 8"),
        (lambda: override(AMBIGUOUS, {"tau": 0, "backbone.tau": 1}), "given twice, among tau, "),
        (lambda: register(type("Bare", (Scaled,), {})), r"above @dataclass\(frozen=True\)"),
        (lambda: register(with_field("type")), "No setting of a part can be called type"),
        (lambda: from_json({"type": "Pairwise"}), "The file's Pairwise is another one: .*reach"),
        (lambda: small_agent(SAC(credit=Scaled(units=anything([1])))), "use tuples"),
    ],
)
def test_slips_are_told_in_plain_words(make: Any, said: str) -> None:
    with pytest.raises((ValueError, TypeError), match=said):
        make()


def anything(value: Any) -> Any:
    """Hide a type that mypy would refuse too."""
    return value


def with_field(name: str) -> type:
    return dataclasses.make_dataclass("Odd", [(name, int, 0)], frozen=True)


def test_a_part_that_was_defined_again_can_still_be_saved() -> None:
    old = Scaled((2,))
    again: Any = dataclass(frozen=True)(type("Scaled", (Unlearned,), {"__qualname__": "Scaled"}))
    again.__module__ = __name__
    try:
        register(again)  # as when a notebook's cell runs again
        assert to_json(old)["units"] == [2]
    finally:
        register(Scaled)


class Backwards(NamedTuple):
    key: Any
    actor: Any


def test_a_state_that_does_not_start_with_its_actor_is_refused() -> None:
    @register
    @dataclass(frozen=True)
    class Wrong(SAC):
        def init(self, seed: int, shape: Any) -> Any:
            state = super().init(seed, shape)
            return Backwards(state.key, state.actor)

    with pytest.raises(TypeError, match=r"must be the actor, not Backwards\.key"):
        small_agent(Wrong())
