from __future__ import annotations

import csv
import json
import re
import shutil
import subprocess
from collections.abc import Sequence
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from belated.analysis.figures import draw_curves
from belated.analysis.markup import element
from belated.analysis.report import write_report
from belated.analysis.runs import find_runs
from belated.analysis.summary import summarise
from belated.analysis.svg import inline

EVIL = "<script>alert(1)</script>"
MINE = 'mine $1 "&' + 80 * "x"
METHODS = {"oracle": 4_000, "sac": 300, "hc-singleton": 3_000, "hc-rnn": 1_000, MINE: 90}
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
BROWSER = next(filter(None, map(shutil.which, BROWSERS)), None)


def write_run(folder: Path, task: str, method: str, seed: int, height: float) -> None:
    folder.mkdir(parents=True)
    config = {
        "env": task, "method": method, "seed": seed, "eval_every": 5_000, "set": [EVIL],
        "hyperparameters": {"critic": {"type": method}, "note": f"</td>{EVIL}"},
        "provenance": {"versions": {"jax": EVIL}, "cpu": "some <b>cpu</b>"},
    }  # fmt: skip
    (folder / "config.json").write_text(json.dumps(config))
    with (folder / "progress.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["step", "return_mean", "wall_time"])
        for step in range(5_000, 105_000, 5_000):
            value = height * step / 100_000 * (1 + 0.05 * seed) - 20
            writer.writerow([step, value, step / 100])


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    for task in ("Ant-sum-n20", EVIL):
        for place, (method, height) in enumerate(METHODS.items()):
            for seed in range(3):
                name = f"{task == EVIL}-{place}-{seed}"
                write_run(folder / name, task, method, seed, height * (1 + (task == EVIL)))
    credit = np.column_stack([np.arange(60), np.ones(60), np.ones(60), np.arange(60) % 20 == 19])
    header = "step,credit,dense_reward,reward"
    path = folder / "False-2-0" / "credit.csv"
    np.savetxt(path, credit, delimiter=",", header=header, comments="")
    summary = summarise(find_runs([folder]), ("hc-singleton", "sac"))
    return write_report(summary, tmp_path_factory.mktemp("page") / "report.html")


def test_text_is_escaped_and_html_is_not() -> None:
    inner = element("b", "<", title='"')
    assert inner == '<b title="&quot;">&lt;</b>'
    assert element("p", inner, "&") == f"<p>{inner}&amp;</p>"


def test_nothing_from_files_becomes_code(page: Path) -> None:
    text = page.read_text()
    assert text.count("<script") == 1
    assert "alert(1)&lt;/script&gt;" in text
    assert "<b>cpu" not in text


def test_the_page_needs_nothing_from_elsewhere(page: Path) -> None:
    text = page.read_text()
    assert not re.findall(r"(?:src|href|action)=[\"'](?!#)", text)
    assert not re.findall(r"https?:|@import|url\((?!#)", text)


def test_the_page_is_small_and_its_ids_are_unique(page: Path) -> None:
    text = page.read_text()
    assert len(text) < 500_000
    ids = re.findall(r'\bid="([^"]*)"', text)
    assert len(ids) == len({*ids})
    used = re.findall(r'(?:url\(|href=")#([^)"]+)', text)
    assert {*used} <= {*ids}


def test_sections_are_in_order(page: Path) -> None:
    heads = re.findall(r"<h2>([^<]*)</h2>", page.read_text())
    assert heads == [
        "Verdict", "To keep in mind", "Learning curves", "Scores", "Single runs", "Credit",
        "Settings", "Origins", "Speed",
    ]  # fmt: skip


def test_what_should_not_be_compared_is_said(tmp_path: Path) -> None:
    for seed, height in enumerate((100.0, 200.0)):
        write_run(tmp_path / str(seed), "Ant", "sac", seed, height)
    path = tmp_path / "1" / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"eval_every": 7}))
    summary = summarise(find_runs([tmp_path]), mixed=True)
    text = write_report(summary, tmp_path / "report.html").read_text()
    assert '<div class="warn" role="note"' in text
    assert "differ in eval_every" in text
    assert "No comparison was declared" in text
    assert "<details open" in text  # so few runs are shown at once


def test_a_broken_credit_file_is_named(tmp_path: Path) -> None:
    write_run(tmp_path / "a", "Ant", "sac", 0, 1.0)
    (tmp_path / "a" / "credit.csv").write_text("step,credit\n0,1\n")
    with pytest.raises(ValueError, match=r"credit\.csv should have the columns"):
        write_report(summarise(find_runs([tmp_path])), tmp_path / "report.html")


def test_figures_take_the_ink_of_the_page(tmp_path: Path) -> None:
    write_run(tmp_path / "a", "Ant", "oracle", 0, 1.0)
    svg = inline(draw_curves(find_runs([tmp_path]), legend=False), "key", EVIL)
    assert "currentColor" in svg
    assert "#000000" not in svg
    assert "<style" not in svg
    assert svg.startswith('<svg viewBox="0 0 ')


SELF_TEST = """<script>
const errors = [];
addEventListener("error", (event) => errors.push(event.message));
addEventListener("securitypolicyviolation", (event) => errors.push(event.violatedDirective));
addEventListener("load", () => {
  for (const each of document.querySelectorAll("details")) each.open = true;
  const root = document.documentElement;
  const table = document.querySelector("#scores table");
  const column = (place) => Array.from(table.tBodies[0].rows, (row) => row.cells[place].innerText);
  const click = (place) => {
    const header = table.tHead.rows[0].cells[place];
    header.querySelector("button").click();
    return [header.getAttribute("aria-sort"), column(place)];
  };
  const button = table.querySelector("thead button");
  button.focus();
  const boxes = Array.from(document.querySelectorAll("svg:not(.defined)"), (svg) => {
    const box = svg.getBoundingClientRect(), drawn = svg.getBBox();
    return box.width > 0 && box.height > 0 && drawn.width > 0;
  });
  const verdict = {
    names: click(0), means: click(3), again: click(3), focused: document.activeElement === button,
    figures: boxes.length, empty: boxes.filter((full) => !full).length,
    width: innerWidth, overflow: root.scrollWidth - root.clientWidth,
    page: getComputedStyle(document.body).backgroundColor,
    ink: getComputedStyle(document.querySelector("figure svg text")).fill,
    requests: performance.getEntriesByType("resource").map((entry) => entry.name),
    scripts: document.scripts.length, errors,
  };
  parent.postMessage(JSON.stringify(verdict), "*");
});
</script>"""

# In a frame, because a browser's window cannot be as narrow as a telephone.
FRAME = """<!DOCTYPE html><html style="color-scheme: light dark"><pre></pre><script>
addEventListener("message", (event) => document.querySelector("pre").textContent = event.data);
</script><iframe src="page.html" style="width: WIDTHpx; height: 900px; border: 0"></iframe>"""


def browse(page: Path, folder: Path, *, width: int, dark: bool) -> dict[str, Any]:
    """Open a page in a browser and let it test itself."""
    assert BROWSER is not None
    tested = page.read_text().replace("</head>", f"{SELF_TEST}</head>", 1)
    (folder / "page.html").write_text(tested)
    (folder / "frame.html").write_text(FRAME.replace("WIDTH", str(width)))
    command: Sequence[str] = [
        BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
        "--disable-background-networking", "--disable-component-update", "--disable-sync",
        "--disable-dev-shm-usage", f"--user-data-dir={folder / 'profile'}",
        "--enable-logging=stderr", "--v=0", "--force-device-scale-factor=1",
        f"--blink-settings=preferredColorScheme={0 if dark else 1}",
        "--window-size=1500,1000", "--dump-dom", (folder / "frame.html").as_uri(),
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert "CONSOLE" not in done.stderr, done.stderr
    found = re.search(r"<pre>(.+?)</pre>", done.stdout, re.DOTALL)
    assert found is not None, done.stdout[-2_000:]
    verdict: dict[str, Any] = json.loads(unescape(found[1]))
    return verdict


@pytest.mark.skipif(BROWSER is None, reason=f"there is no browser: none of {', '.join(BROWSERS)}")
@pytest.mark.parametrize(("width", "dark"), [(390, True), (1400, False)])
def test_the_page_works_in_a_browser(page: Path, tmp_path: Path, width: int, dark: bool) -> None:
    seen = browse(page, tmp_path, width=width, dark=dark)
    assert (seen["errors"], seen["requests"], seen["scripts"]) == ([], [], 2)
    assert (seen["width"], seen["overflow"]) == (width, 0)
    assert seen["figures"] > 30
    assert seen["empty"] == 0
    assert seen["focused"]
    dark_page, light_ink = ("rgb(21, 23, 26)", "rgb(230, 232, 234)")
    assert (seen["page"] == dark_page, seen["ink"] == light_ink) == (dark, dark)

    direction, names = seen["names"]
    assert direction == "ascending"
    assert names == ["hc-rnn", "hc-singleton", MINE, "oracle", "sac"]
    for (direction, texts), wanted in zip(
        (seen["means"], seen["again"]), ("ascending", "descending"), strict=True
    ):
        assert direction == wanted
        values = [float(text.split(" ")[0].replace(",", "")) for text in texts]
        assert values == sorted(values, reverse=direction == "descending")
        assert max(values) > 3_000  # as texts, 3,000 would be below 90
