"""Tables of speeds: what the benchmarks have left in results/."""

from __future__ import annotations

import json
from typing import Any

from docs_scores import RESULTS, runs_of

from belated.analysis.summary import summarise
from belated.analysis.summary_files import markdown_table
from belated.experiments.reproduce.clock import Clock

ROUNDED = ", bfloat16"
PARTS = ("quickest update", "products")


def throughput_table(asked: str) -> str:
    """Steps per second beside a peer: "FILE", one of results/, made by benchmarks/throughput.py."""
    report = _read(asked)
    header = ["steps/s", "ratio", "quickest update, ms", "products, ms"]
    rows = [
        [f"{name}, in float32", *_speeds(figures), "", "", *[""] * len(header)]
        for name, figures in report["peers"].items()
    ]
    for name, figures in report["methods"].items():
        if not name.endswith(ROUNDED):
            rounded = report["methods"].get(name + ROUNDED)
            own = _speeds(figures) + _parts(figures)
            both = own + (_speeds(rounded) + _parts(rounded) if rounded else [""] * len(header))
            method, *options = name.removesuffix(", CartPole").split(", ")
            rows.append([", ".join([f"`{method}`", *options]), *both])
    labels = [f"{precision}: {header[0]}" for precision in ("float32", "bfloat16")]
    return markdown_table(["", labels[0], *header[1:], labels[1], *header[1:]], rows)


def ratio_table(asked: str) -> str:
    """The same as ratios to Stable-Baselines3's steps per second: "FILE METHOD ..."."""
    file, *names = asked.split()
    methods = _read(file)["methods"]
    rows = [
        [f"`{name}`", *(f"{methods[name + end]['ratio_to_sb3']:.1f}" for end in ("", ROUNDED))]
        for name in names
    ]
    return markdown_table(["", "float32", "bfloat16"], rows)


def _speeds(figures: dict[str, Any]) -> list[str]:
    return [f"{figures['steps_per_second']:,.0f}", f"{figures['ratio_to_sb3']:.2f}"]


def _parts(figures: dict[str, Any]) -> list[str]:
    milliseconds = [figures["milliseconds"][part] for part in PARTS]
    return [f"{value:.1f}" if value >= 1 else f"{value:.2f}" for value in milliseconds]


def scaling_table(asked: str) -> str:
    """How the time of an update grows: "WHAT METHOD ...", a part of results/scaling.json."""
    what, *methods = asked.split()
    measured = _read("scaling.json")[what]
    sizes = list(measured[methods[0]])
    rows = [[f"`{name}`", *(f"{measured[name][size]:.1f}" for size in sizes)] for name in methods]
    return markdown_table([what.replace("_", " "), *sizes], rows)


def clock_table(folder: str) -> str:
    """How long methods took to reach some returns: a folder of results/."""
    header, rows = Clock().table(summarise(runs_of(folder), mixed=True))
    return markdown_table(header, rows)


def _read(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((RESULTS / name).read_text())
    return found
