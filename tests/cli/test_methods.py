from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest

import belated
from belated.cli import main
from belated.cli.hyperparameters import as_markdown
from belated.cli.methods import (
    BOTH,
    BOX,
    DISCRETE,
    FAMILIES,
    as_text,
    family_of,
    settings_of,
    spelt,
)
from belated.methods import METHODS, find_method
from belated.parts import override
from belated.training.run import as_overrides

PAGE = Path(__file__).parents[2] / "docs" / "hyperparameters.md"


def listed(*arguments: str, capsys: pytest.CaptureFixture[str]) -> Any:
    assert main(["methods", *arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_every_method_has_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["methods"]) == 0
    lines = capsys.readouterr().out.splitlines()
    own = {line.split()[0]: line for line in lines if line.startswith("  ")}
    assert own.keys() == METHODS.keys()
    assert max(map(len, own.values())) <= 80
    rows = listed(capsys=capsys)
    assert {row["name"] for row in rows} == METHODS.keys()
    assert all(row["about"] for row in rows)


@pytest.mark.parametrize("name", FAMILIES)
def test_families_take_the_actions_that_they_are_said_to(name: str) -> None:
    def takes(base: str) -> bool:
        env = belated.delay(gym.make(base), interval=5)
        method = next(method for each, method in METHODS.items() if family_of(each) == name)
        try:
            belated.Agent(method, env, hidden=(8, 8))
        except ValueError:
            return False
        return True

    told = FAMILIES[name].actions
    assert takes("Pendulum-v1") == (told in (BOX, BOTH))
    assert takes("CartPole-v1") == (told in (DISCRETE, BOTH))


@pytest.mark.parametrize("name", [*METHODS, "dqn-hc-pairwise-2"])
def test_every_hyperparameter_is_explained_and_can_be_set_as_it_is_shown(name: str) -> None:
    method = find_method(name)
    settings = spelt(list(settings_of(method)))
    assert len({setting.name for setting in settings}) == len(settings)
    for setting in settings:
        assert setting.meaning, setting
        assert setting.allowed, setting
        shown = as_overrides([f"{setting.name}={as_text(setting.default)}"])
        assert override(method, shown) == method


def test_a_method_shows_its_own_defaults(capsys: pytest.CaptureFixture[str]) -> None:
    def default_of(method: str, setting: str) -> Any:
        rows = listed(method, capsys=capsys)
        return next(row["default"] for row in rows if row["name"] == setting)

    assert default_of("hc-singleton", "regularizer") == 0.05
    assert default_of("hc-pairwise-7", "reach") == 7
    assert main(["methods", "crossq-hc-rrd"]) == 0
    said = capsys.readouterr().out
    assert "regularizer = 0.05" in said
    assert "A number of at least 0" in said
    assert "λ, the weight of" in said
    assert main(["methods", "hc-singelton"]) == 2
    assert "Did you mean hc-singleton?" in capsys.readouterr().err


def test_the_page_shows_what_the_classes_declare(capsys: pytest.CaptureFixture[str]) -> None:
    """If this fails, put what `belated methods --markdown` prints at the end of the page."""
    assert PAGE.read_text().endswith(f"\n{as_markdown()}\n")
    assert main(["methods", "--markdown"]) == 0
    assert capsys.readouterr().out == f"{as_markdown()}\n"
    assert main(["methods", "sac", "--markdown"]) == 2


def test_the_tables_have_every_hyperparameter_and_who_differs() -> None:
    tables = as_markdown()
    for method in METHODS.values():
        for setting in settings_of(method):
            assert f"| `{setting.name}` |" in tables
            assert f"**`{setting.type}`**" in tables
    assert "| `best_episodes` | `0`, `10` in `ircr-original` | A whole" in tables
    assert "| `shared` | `False`, `True` in `CrossQ` |" in tables
    assert "`5` in `hc-rnn`" in tables


def test_the_sizes_of_h_are_its_own() -> None:
    """What the page says of `hidden` and `units`."""
    method = override(find_method("hc-singleton"), {"hidden": (8, 8)})
    history: Any = method.backbone.critic.history  # type: ignore[attr-defined]
    assert history.units == (64, 64)
