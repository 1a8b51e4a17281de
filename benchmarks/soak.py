"""An hour of learning with a checkpoint every minute: memory and open files must not grow.

The replay is small, so that it is full after the first minutes and its memory no longer grows.
"""

from __future__ import annotations

import json as json_module
import os
import time
from pathlib import Path

import tyro

import belated


class Gauge(belated.Callback):
    """Writes down every so often what the process holds."""

    def __init__(self, every: float, minutes: float) -> None:
        self.every = every
        self.rows: list[dict[str, float]] = []
        self.started = time.monotonic()
        self.ends = self.started + 60 * minutes
        self._next = self.started

    def on_step(self, agent: belated.Agent) -> bool | None:
        """Measure if it is time; stop when the time is over."""
        now = time.monotonic()
        if now >= self._next:
            self._next += self.every
            pages = int(Path("/proc/self/statm").read_text().split()[1])
            self.rows.append(
                {
                    "seconds": now - self.started,
                    "steps": agent.steps,
                    "megabytes": pages * os.sysconf("SC_PAGE_SIZE") / 2**20,
                    "files": len(list(Path("/proc/self/fd").iterdir())),
                }
            )
        return now < self.ends


def draw(rows: list[dict[str, float]], path: Path) -> None:
    """Draw memory and open files against time."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 3), layout="constrained")
    memory, files = figure.subplots(1, 2)
    minutes = [row["seconds"] / 60 for row in rows]
    for axes, name, label in ((memory, "megabytes", "MB resident"), (files, "files", "open files")):
        axes.plot(minutes, [row[name] for row in rows])
        axes.set(xlabel="minutes", ylabel=label, ylim=(0, None))
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=120)


def main(minutes: float = 60.0, out: Path = Path("runs/soak"), json: Path | None = None) -> None:
    """Learn, measure and say how much was gained since the replay was full.

    Args:
        minutes: How long.
        out: The run folder.
        json: Where to write the rows; a picture of them goes beside it.
    """
    env = belated.make("HalfCheetah-v5", interval="20")
    agent = belated.Agent(
        "crossq-hc-singleton", env, replay_size=20_000, precision="bfloat16", seed=0
    )
    gauge = Gauge(every=minutes, minutes=minutes)  # one row a sixtieth, of an hour a minute
    agent.learn(100_000_000, callback=gauge, out=out, checkpoint_minutes=1.0, eval_every=50_000)
    full = [row for row in gauge.rows if row["steps"] > 30_000] or gauge.rows
    first, last = full[0], full[-1]
    print(
        f"{last['steps']:,.0f} steps in {last['seconds'] / 60:.0f} minutes; since the replay is "
        "full: "
        f"{last['megabytes'] - first['megabytes']:+.1f} MB of {last['megabytes']:.0f}, "
        f"{last['files'] - first['files']:+.0f} files of {last['files']:.0f}"
    )
    if json is not None:
        json.write_text(json_module.dumps(gauge.rows, indent=2) + "\n")
        draw(gauge.rows, json.with_suffix(".png"))


if __name__ == "__main__":
    tyro.cli(main)
