"""The demo, at toy size."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from belated.analysis.animation import write_gif
from belated.cli.demo import demo
from belated.cli.sweep import Where


def test_demo_leaves_all_that_it_promises(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MUJOCO_GL", "disable")  # as on machines that cannot draw
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", str(tmp_path / "compiled"))
    for size in ("EVALUATIONS", "EPISODES"):
        monkeypatch.setattr(sys.modules[demo.__module__], size, 1)
    assert demo(steps=60, seeds=1, out=tmp_path, where=Where(on="here")) == 0
    said = capsys.readouterr().out
    assert "cannot tell crossq-hc-singleton from sac" in said  # one seed is no verdict
    assert "MuJoCo cannot draw here" in said
    assert "Credit" in (tmp_path / "report.html").read_text()
    assert (tmp_path / "curves.png").is_file()
    assert list(tmp_path.glob("runs/*/crossq-hc-singleton-s0/credit.png"))


def test_a_shorter_film_stops_at_its_last_picture(tmp_path: Path) -> None:
    def film(length: int) -> list[tuple[Any, float]]:
        return [(np.full((8, 8, 3), 60 * place, np.uint8), float(place)) for place in range(length)]

    write_gif({"long": film(4), "short": film(2)}, tmp_path / "film.gif")
    with Image.open(tmp_path / "film.gif") as picture:
        picture.seek(3)  # the last one
        pixels = np.asarray(picture.convert("L"), np.float64)
        with pytest.raises(EOFError):
            picture.seek(4)
    left, right = (half.min() for half in np.array_split(pixels[60:], 2, axis=1))
    assert abs(left - 180) < 8
    assert abs(right - 60) < 8
