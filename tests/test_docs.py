"""The documentation: its code runs, its links lead somewhere, and the site has all of it.

Nothing is built here: `make docs-check` does that.
"""

from __future__ import annotations

import csv
import dataclasses
import importlib.util
import re
import sys
from collections import Counter
from pathlib import Path
from types import ModuleType

import pytest

import belated
import belated.envs
import belated.methods
from belated.analysis.statistics import Estimate
from belated.analysis.summary import summarise

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def python_blocks(page: Path) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE)


def tool(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look there
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_code_on_a_page_runs(page: Path) -> None:
    namespace: dict[str, object] = {}
    for block in python_blocks(page):
        exec(compile(block, str(page), "exec"), namespace)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
        assert target.startswith("http") or (page.parent / target).exists(), target


def test_tables_are_those_of_the_runs() -> None:
    tables = tool("docs_tables")
    texts = {page: page.read_text() for page in tables.pages()}
    kinds = "|".join(tables.TABLES)
    places = {page: re.findall(f"<!-- ({kinds}): ", text) for page, text in texts.items()}
    assert {kind for found in places.values() for kind in found} == {*tables.TABLES}
    for page, text in texts.items():
        assert len(places[page]) == text.count("<!-- end -->"), page
        assert tables.filled(text) == text, f"make docs-tables fills in {page}"


def test_a_table_says_what_the_runs_say() -> None:
    asked = "crossq crossq-hc-singleton, each seed"
    row = tool("docs_scores").score_table(asked).splitlines()[-1]
    progress = ROOT / "results/crossq/HalfCheetah-sum-n20/crossq-hc-singleton-s10/progress.csv"
    rows = list(csv.DictReader(progress.read_text().splitlines()))
    last = [float(r["return_mean"]) for r in rows if r["return_mean"] and float(r["step"]) > 80_000]
    assert row.startswith(f"| `crossq-hc-singleton` | {sum(last) / len(last):,.0f}, ")


def test_a_table_of_curves_says_what_the_runs_say() -> None:
    scores = tool("docs_scores")
    asked = "crossq-ablation lambda-5, at 20k 60k, of length_mean"
    seeds = [line.split(" | ")[1:] for line in scores.curve_table(asked).splitlines()[2:]]
    assert [row[0] for row in seeds] == ["0", "1", "2"]
    assert seeds[0][1] == "1,000"
    each = []
    for seed in (0, 1, 2):
        file = ROOT / f"results/crossq-ablation/HalfCheetah-sum-n20/lambda-5-s{seed}/progress.csv"
        rows = {row["step"]: row for row in csv.DictReader(file.read_text().splitlines())}
        each.append(float(rows["40000"]["return_mean"]))
    averaged = scores.curve_table("crossq-ablation lambda-5, at 40k, mean").splitlines()[-1]
    assert averaged == f"| `lambda-5` | 3 | {sum(each) / 3:,.0f} |"
    with pytest.raises(ValueError, match="no option 'median'"):
        scores.curve_table("crossq-ablation lambda-5, at 40k, median")
    with pytest.raises(ValueError, match="no runs of typo"):
        scores.curve_table("crossq-ablation typo, at 40k")


@pytest.mark.parametrize(
    ("sides", "verdict"),
    [
        ([1, 1], "confirmed"),
        ([1, 0], "open"),
        ([0, 0], "open"),
        ([1, -1], "refuted"),
        ([0, -1], "refuted"),
    ],
)
def test_a_verdict_needs_every_comparison(
    sides: list[int], verdict: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables = tool("docs_claims")
    intervals = {1: (5, 1, 9), 0: (5, -1, 11), -1: (-5, -9, -1)}
    compared = [
        tables.Compared("a − b", "task", 0, "4 and 4", Estimate(*intervals[side])) for side in sides
    ]
    assert [each.side for each in compared] == sides
    monkeypatch.setattr(tables, "comparisons", lambda name: compared)
    assert tables.verdict_on("segments")[0] == verdict
    # One run that is missing, and nothing is shown.
    compared[:] = [dataclasses.replace(each, missing=1) for each in compared]
    assert tables.verdict_on("segments")[0] == "open"


def test_a_comparison_counts_the_runs_that_are_missing() -> None:
    tables = tool("docs_claims")
    summary = summarise(tables.runs_of("discrete"), mixed=True)
    planned = tables.declared("discrete")
    whole = tables._compared("crossq-hc-singleton > 0.5 dqn", "CartPole-v1-n20", summary, planned)
    a, b = (summary.group("CartPole-v1-n20", name) for name in ("crossq-hc-singleton", "dqn"))
    assert a is not None
    assert b is not None
    assert whole.difference.value == pytest.approx(a.mean.value - 0.5 * b.mean.value)
    assert (whole.missing, whole.seeds) == (0, "3 and 3")
    planned = planned + Counter({("CartPole-v1-n20", "dqn"): 2})
    more = tables._compared("crossq-hc-singleton > 0.5 dqn", "CartPole-v1-n20", summary, planned)
    assert more.missing == 2
    with pytest.raises(ValueError, match="No grid declares"):
        tables._compared("crossq-hc-singleton > typo", "CartPole-v1-n20", summary, planned)


def test_verdicts_on_the_theory_are_those_of_its_page() -> None:
    tables = tool("docs_claims")
    verdicts = {name: tables.verdict_on(name)[0] for name in ("fact-1", "fact-2", "fact-3", "sums")}
    assert list(verdicts.values()) == ["confirmed", "confirmed", "refuted", "refuted"]
    # This one says that something does not hold, and it does not.
    assert tables.verdict_on("past-invariance")[0] == "confirmed"


def test_readme_has_code_to_run() -> None:
    assert len(python_blocks(PAGES[0])) >= 2


def test_the_navigation_has_every_page_once_and_nothing_else() -> None:
    navigation = (ROOT / "mkdocs.yml").read_text().partition("\nnav:\n")[2]
    entries = re.findall(r"(\S+\.md)$", navigation, re.MULTILINE)
    under_docs = {page.relative_to(DOCS).as_posix() for page in PAGES[1:]}
    outside = {"CHANGELOG.md", "results/README.md", "results/PLAN.md"}
    assert sorted(entries) == sorted(under_docs | outside)
    assert all((ROOT / entry).is_file() for entry in outside)


def test_every_public_name_is_in_the_api_reference() -> None:
    pages = "\n".join(page.read_text() for page in (DOCS / "api").glob("*.md"))
    shown = {name.rpartition(".")[2] for name in re.findall(r"^::: (\S+)$", pages, re.MULTILINE)}
    public = {*belated.__all__, *belated.envs.__all__, *belated.methods.__all__}
    assert public <= shown


@pytest.mark.parametrize(
    ("page", "link", "on_the_site"),
    [
        ("docs/learning.md", "theory.md", "theory.md"),
        ("docs/learning.md", "../results/README.md#throughput", "results/README.md#throughput"),
        ("docs/methods/crossq.md", "../../results/PLAN.md", "../results/PLAN.md"),
        ("docs/deploying.md", "../examples/run_policy.py", "examples/run_policy.py.md"),
        ("docs/learning.md", "examples/inventory.md", "examples/inventory.md"),
        ("results/README.md", "../docs/statistics.md", "../statistics.md"),
        ("results/README.md", "../docs/examples/", "../examples/README.md"),
        ("docs/learning.md", "https://example.org", "https://example.org"),
        ("docs/learning.md", "no_such_page.md", "no_such_page.md"),
    ],
)
def test_links_that_leave_the_folder_lead_to_the_same_file_on_the_site(
    page: str, link: str, on_the_site: str
) -> None:
    rewritten = tool("docs_hook").rewritten
    assert rewritten(f"See [it]({link}).", ROOT / page) == f"See [it]({on_the_site})."


@pytest.mark.parametrize(
    ("name", "text", "loads"),
    [
        ("a.html", '<a href="https://example.org">elsewhere</a>', 0),
        ("a.html", '<link rel="canonical" href="https://example.org">', 0),
        ("a.html", '<img src="images/a.png"><script src="a.js"></script>', 0),
        ("a.html", '<img src="https://example.org/a.png">', 1),
        ("a.html", '<script src="//example.org/a.js"></script>', 1),
        ("a.html", '<link rel="stylesheet" href="https://example.org/a.css">', 1),
        ("a.html", "<style>@import 'https://example.org/a.css'</style>", 1),
        ("a.html", '<script>fetch("https://example.org")</script>', 1),
        ("a.html", '<pre class="mermaid">graph</pre>', 1),
        ("a.css", "a { background: url(https://example.org/a.png) }", 1),
        ("a.css", "a { background: url(data:image/png;base64,AAAA) }", 0),
        ("a.js", 'load("https://example.org/a.js") // see https://example.org', 1),
        ("a.js", 'load("https://unpkg.com/mermaid@11/dist/mermaid.min.js")', 0),
        ("a.json", '{"text": "https://example.org"}', 0),
    ],
)
def test_loads_from_elsewhere_are_found(name: str, text: str, loads: int, tmp_path: Path) -> None:
    file = tmp_path / name
    file.write_text(text)
    assert len(list(tool("check_site").loads_of(file))) == loads
