"""The documentation: its code runs, its links lead somewhere, and the site has all of it.

Nothing is built here: `make docs-check` does that.
"""

from __future__ import annotations

import csv
import dataclasses
import importlib.util
import json
import math
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import belated
import belated.envs
import belated.methods
from belated.analysis.comparison import difference
from belated.analysis.intervals import Estimate
from belated.analysis.runs import Run

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
RESULTS = ROOT / "results"
PAGES = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def python_blocks(page: Path) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE)


def anchors(page: Path) -> set[str]:
    """What a link may name on a page: its headings, as code-hosting sites and MkDocs spell them."""
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\s-]", "", heading.lower()).replace(" ", "-") for heading in headings}


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


@pytest.mark.parametrize("page", [*PAGES, *RESULTS.glob("*.md")], ids=name_of)
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    for target, anchor in re.findall(r"\]\((?!http)([^)#]*)#?([^)]*)\)", page.read_text()):
        place = page.parent / target if target else page
        assert place.exists(), target
        assert not anchor or anchor in anchors(place), f"{target}#{anchor}"


def test_tables_are_those_of_the_runs() -> None:
    tables = tool("docs_tables")
    texts = {page: page.read_text() for page in tables.pages()}
    every = {*tables.TABLES, *tables.NUMBERS}
    kinds = "|".join(every)
    places = {page: re.findall(f"<!-- ({kinds}): ", text) for page, text in texts.items()}
    assert {kind for found in places.values() for kind in found} == every
    for page, text in texts.items():
        assert len(places[page]) == text.count("<!-- end -->"), page
        assert tables.filled(text) == text, f"make docs-tables fills in {page}"


def test_pictures_are_those_of_the_runs() -> None:
    pages, pictures = tool("docs_tables").pages(), tool("docs_pictures")
    shown = [picture for page in pages for picture in pictures.pictures(page)]
    assert shown
    for picture in shown:
        assert picture.is_current(), f"make docs-tables draws {picture.path}"


def test_a_picture_knows_what_it_was_drawn_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pictures = tool("docs_pictures")
    monkeypatch.setattr(pictures, "ROOT", tmp_path)
    runs = [made("a", 0, return_mean=[1.0, 2.0]), made("b", 0, return_mean=[3.0, 4.0])]
    monkeypatch.setattr(pictures, "runs_of", lambda *folders: runs)
    picture = pictures.Picture.of("p.png f a=ours")
    assert [run.method for run in picture.runs()] == ["ours"]
    assert not picture.is_current()
    picture.draw()
    assert picture.is_current()
    assert not pictures.Picture.of("p.png f a=yours").is_current()
    runs[1] = made("b", 0, return_mean=[3.0, 5.0])  # which is not in it
    assert picture.is_current()
    runs[0] = made("a", 0, return_mean=[1.0, 3.0])
    assert not picture.is_current()
    with pytest.raises(ValueError, match="no runs of typo"):
        pictures.Picture.of("p.png f typo").runs()
    with pytest.raises(ValueError, match="no option 'over miles'"):
        pictures.Picture.of("p.png f a, over miles")
    page = tmp_path / "page.md"
    page.write_text("<!-- picture: p.png f a -->\n![What it shows](p.png)\n")
    assert [found.path for found in pictures.pictures(page)] == [tmp_path / "p.png"]
    page.write_text("<!-- picture: p.png f a -->\n![What it shows](q.png)\n")
    with pytest.raises(ValueError, match=r"shows q\.png"):
        list(pictures.pictures(page))
    page.write_text("<!-- picture: p.png f a -->\n\n![What it shows](p.png)\n")
    with pytest.raises(ValueError, match="right below"):
        list(pictures.pictures(page))


def test_a_table_says_what_the_runs_say() -> None:
    asked = "crossq crossq-hc-singleton, each seed"
    row = tool("docs_scores").score_table(asked).splitlines()[-1]
    progress = ROOT / "results/crossq/HalfCheetah-sum-n20/crossq-hc-singleton-s10/progress.csv"
    rows = list(csv.DictReader(progress.read_text().splitlines()))
    last = [float(r["return_mean"]) for r in rows if r["return_mean"] and float(r["step"]) > 80_000]
    assert row.startswith(f"| `crossq-hc-singleton` | {sum(last) / len(last):,.0f}, ")


def test_a_table_of_differences_says_what_the_runs_say() -> None:
    asked = "crossq crossq-hc-singleton oracle, until 60k"
    header, _, base, other = tool("docs_scores").difference_table(asked).splitlines()
    assert header == "|  | HalfCheetah | Hopper |"
    means = {}
    for name in ("crossq-hc-singleton", "oracle"):
        scores = []
        for file in (ROOT / "results/crossq/HalfCheetah-sum-n20").glob(f"{name}-s*/progress.csv"):
            rows = [r for r in csv.DictReader(file.read_text().splitlines()) if r["return_mean"]]
            last = [float(r["return_mean"]) for r in rows if 48_000 < float(r["step"]) <= 60_000]
            scores.append(sum(last) / len(last))
        means[name] = sum(scores) / len(scores)
        assert len(scores) == 8
    assert base.startswith(f"| `crossq-hc-singleton` | {means['crossq-hc-singleton']:,.0f} (")
    gap = f"{means['oracle'] - means['crossq-hc-singleton']:,.0f}".replace("-", "−")
    assert re.match(rf"\| `oracle` \| {gap} \(−[\d,]+ to −[\d,]+\), 8 seeds \|", other)


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
    several = scores.curve_table("crossq crossq-oracle oracle, at 100k, mean").splitlines()
    assert several[0] == "| task | method | seeds | 100k |"
    places = [tuple(line.split(" | ")[:2]) for line in several[2:]]
    assert places == [
        (f"| {task}", f"`{method}`")
        for task in ("HalfCheetah", "Hopper")
        for method in ("crossq-oracle", "oracle")
    ]
    one = scores.curve_table("crossq crossq-oracle oracle, on Hopper-sum-n20, at 100k, mean")
    assert [line.removeprefix("| Hopper ") for line in several[4:]] == one.splitlines()[2:]
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
def test_a_verdict_needs_every_comparison(sides: list[int], verdict: str) -> None:
    claims = tool("docs_claims")
    intervals = {1: (5, 1, 9), 0: (5, -1, 11), -1: (-5, -9, -1)}
    compared = [
        claims.Compared("a − b", "task", 0, "4 and 4", *[Estimate(*intervals[side])] * 2)
        for side in sides
    ]
    assert [each.side for each in compared] == sides
    assert claims.verdict_of_comparisons(compared)[0] == verdict
    # One run that is missing, and nothing is shown.
    waiting = [dataclasses.replace(each, missing=1) for each in compared]
    assert claims.verdict_of_comparisons(waiting)[0] == "open"
    # What would not stand out among so many refutes nothing.
    chance = [dataclasses.replace(each, strictly=Estimate(-5, -11, 1)) for each in compared]
    assert claims.verdict_of_comparisons(chance)[0] == verdict.replace("refuted", "open")


@pytest.mark.parametrize("interval", [(5, 5, 5), (0, 0, 0), (5, math.nan, math.nan)])
def test_scores_without_spread_show_nothing(interval: tuple[float, float, float]) -> None:
    claims = tool("docs_claims")
    assert claims.Compared("a − b", "task", 0, "3 and 3", Estimate(*interval)).side == 0
    with pytest.raises(ValueError, match="without comparisons"):
        claims.verdict_of_comparisons([])


def made(method: str, seed: int, **columns: list[float]) -> Run:
    """A run with a row after every thousand steps."""
    rows = [
        {"step": 1_000.0 * (i + 1), **dict(zip(columns, values, strict=True))}
        for i, values in enumerate(zip(*columns.values(), strict=True))
    ]
    return Run(Path(), {"task": "t", "label": method, "seed": seed}, tuple(rows))


def test_a_comparison_is_of_the_declared_runs() -> None:
    claims = tool("docs_claims")
    planned = {("t", method, seed): 5_000 for method in ("a", "b") for seed in (0, 1)}
    runs = [
        made("a", 0, return_mean=[0, 0, 0, 0, 8]),
        made("a", 1, return_mean=[0, 0, 0, 0, 12]),
        made("b", 0, return_mean=[0, 0, 0, 0, 3]),
        made("b", 1, return_mean=[0, 0, 0, 0, 5]),
    ]
    whole = claims.between_methods("a > 0.5 b", "t", claims.finished(runs, planned), planned)
    assert whole.difference.value == pytest.approx(10 - 0.5 * 4)
    assert (whole.missing, whole.seeds) == (0, "2 and 2")
    # A run that is not finished is not there; one that nobody declared is refused.
    short = [*runs[:3], made("b", 1, return_mean=[0, 0, 0, 5])]
    part = claims.between_methods("a > b", "t", claims.finished(short, planned), planned)
    assert (part.missing, part.seeds) == (1, "2 and 1")
    # Of many comparisons one may look large: it takes a wider interval to refute a claim.
    how = claims.How(level=0.99)
    strict = claims.between_methods("a > b", "t", claims.finished(runs, planned), planned, how)
    assert strict.strictly.high > strict.difference.high
    with pytest.raises(ValueError, match="No grid declares t/b-s7"):
        claims.finished([*runs[:3], made("b", 7, return_mean=[0] * 5)], planned)
    with pytest.raises(ValueError, match="No grid declares typo"):
        claims.between_methods("a > typo", "t", runs, planned)
    longer = [*runs[:3], made("b", 1, return_mean=[0] * 6)]
    with pytest.raises(ValueError, match="different numbers of steps"):
        claims.between_methods("a > b", "t", longer, planned)
    cut = [claims.cut(run, 5_000) for run in longer]
    assert claims.between_methods("a > b", "t", cut, planned).difference.value == 10 - 1.5


def test_a_claim_says_how_its_runs_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    claims = tool("docs_claims")
    asked = {"folders": ["f"], "metric": "length_mean", "pairs": ["a > b", "b > a"]}
    planned = {("t", method, seed): 5_000 for method in ("a", "b") for seed in (0, 1)}
    runs = [
        made("a", 0, length_mean=[9, 0, 0, 1, 8]),
        made("a", 1, length_mean=[7, 0, 0, 1, 12]),
        made("b", 0, length_mean=[0, 0, 0, 0, 3]),
        made("b", 1, length_mean=[0, 0, 0, 0, 5]),
    ]
    monkeypatch.setattr(claims, "declared", lambda *folders: planned)
    monkeypatch.setattr(claims, "runs_of", lambda *folders: runs)

    def first_of(**more: object) -> Any:
        monkeypatch.setattr(claims, "claims", lambda: {"claim": asked | more})
        claims.comparisons.cache_clear()
        return claims.comparisons("claim")[0]

    ends, whole, early = first_of(), first_of(whole=True), first_of(until=1_000)
    assert [each.difference.value for each in (ends, whole, early)] == pytest.approx([6, 3, 8])
    # There are two comparisons, so what refutes is an interval of 97.5 %.
    assert ends.strictly == difference([[8, 12]], [[3, 5]], level=0.975)
    claims.comparisons.cache_clear()


def test_columns_are_compared_within_runs() -> None:
    claims = tool("docs_claims")
    planned = {("t", "probe", seed): 2_000 for seed in (0, 1, 2)}
    runs = [made("probe", seed, x=[5 + seed, 7 + seed], y=[1, 3]) for seed in (0, 1)]
    compared = claims.between_columns("x > y", "t", runs, planned)
    assert compared.difference.value == pytest.approx(4.5)
    assert (compared.missing, compared.seeds) == (1, "2")
    relative = claims.between_columns("x / y > y", "t", runs, planned)
    assert relative.what == "`x` / `y` − `y`"
    assert relative.difference.value == pytest.approx((6 / 2 + 7 / 2) / 2 - 2)
    with pytest.raises(ValueError, match="has no z"):
        claims.between_columns("x > z", "t", runs, planned)


def test_a_run_that_falls_back_does_not_stay() -> None:
    claims = tool("docs_claims")
    assert claims.best_five(np.array([0, 9, 9, 9, 9, 4, 0.0])) == 8


def test_hopes_are_judged_by_the_declared_runs() -> None:
    claims = tool("docs_claims")
    hope = claims.claims()["hoped-lowest"]
    verdict, seen = claims.verdict_on_reaching(hope)
    assert verdict == "reached"
    assert claims.verdict_on_reaching(hope | {"reaches": 1e5}) == ("missed", seen)
    assert claims.verdict_on_reaching(hope | {"statistic": "mean"})[1] != seen


def test_tables_of_examples_and_speeds_say_what_their_files_say() -> None:
    examples, speeds = tool("docs_examples"), tool("docs_speeds")
    bills = examples.seeds_table("inventory.txt bill dqn")
    assert bills.splitlines()[-1] == "| `dqn` | 185.9 | 147.0 | 168.1 |"
    trips = examples.seeds_table("traffic_light.json trip_time dqn")
    assert trips.splitlines()[-1] == "| `dqn` | 63.8 | 710.4 | 150.1 |"
    assert examples.truth_table("dqn q-rnn").splitlines()[-1] == "| 11 of 23 | 23 of 23 |"
    credit = tool("credit")
    line = {"folder": "f", "task": "t", "method": "m", "seed": 1, "correlation": 0.5}
    other, newer = line | {"folder": "e"}, line | {"correlation": 0.7}
    assert credit.merged([line, other], [newer]) == [other, newer]
    told = json.loads((ROOT / "results/credit.json").read_text())
    first = next(line for line in told if line["method"] == "crossq-rrd")
    row = credit.credit_table(f"{first['folder']} crossq-rrd").splitlines()[-1]
    assert f" {first['correlation']:.2f}" in row
    report = json.loads((ROOT / "results/throughput.json").read_text())
    ratios = [report["methods"][f"sac{end}"]["ratio_to_sb3"] for end in ("", ", bfloat16")]
    row = speeds.ratio_table("throughput.json sac").splitlines()[-1]
    assert row == f"| `sac` | {ratios[0]:.1f} | {ratios[1]:.1f} |"
    assert f" {ratios[0]:.2f} " in speeds.throughput_table("throughput.json")
    for table in (
        examples.truth_table,
        lambda name: credit.credit_table(f"{first['folder']} {name}"),
        lambda name: examples.seeds_table(f"inventory.txt x {name}"),
    ):
        with pytest.raises(ValueError, match="no runs of typo"):
            table("typo")


def test_numbers_in_sentences_say_what_their_files_say() -> None:
    numbers, tables = tool("docs_numbers"), tool("docs_tables")
    assert numbers.value("inventory.txt best, 2 digits") == "85.92"
    assert numbers.value("traffic_light.json runs/method=dqn/seed=1/trip_time") == "710.4"
    assert numbers.span("traffic_light.json runs/method=dqn/trip_time") == "63.8 to 710.4"
    assert numbers.span("traffic_light.json fixed_time/*") == "57.2 to 64.0"
    with pytest.raises(ValueError, match="has 3 numbers"):
        numbers.value("traffic_light.json runs/method=dqn/trip_time")
    scores = [run.score() for run in tool("docs_scores").runs_of("discrete")
              if run.task == "CartPole-v1-n20" and run.method == "dqn"]  # fmt: skip
    spanned = numbers.score_span("discrete CartPole-v1-n20 dqn")
    assert spanned == f"{min(scores):.0f} to {max(scores):.0f}"
    stale = "It costs <!-- value: inventory.txt best, 2 digits -->7<!-- end --> at best."
    assert tables.filled(stale) == stale.replace("7", "85.92")
    for wrong in ("inventory.txt typo", "traffic_light.json runs/method=typo/trip_time"):
        with pytest.raises(ValueError, match="has no"):
            numbers.span(wrong)
    with pytest.raises(ValueError, match="not on one line"):
        tables.filled(stale.replace("7", "7\n"))
    with pytest.raises(ValueError, match="may not begin"):
        tables.filled(stale.replace(" <!-- value", "\n<!-- value"))


def test_verdicts_on_the_theory_are_those_of_its_page() -> None:
    tables = tool("docs_claims")
    hoped = tables.claims_of("hoped")
    assert {tables.verdict_on(name)[0] for name in hoped} <= {"reached", "missed", "open"}
    others = [name for name in tables.claims() if name not in hoped]
    words = {tables.verdict_on(name)[0] for name in others}
    assert words <= {"confirmed", "refuted", "open"}
    verdicts = {name: tables.verdict_on(name)[0] for name in ("fact-1", "fact-2", "fact-3", "sums")}
    assert list(verdicts.values()) == ["confirmed", "confirmed", "refuted", "refuted"]
    # This one says that something does not hold, and it does not.
    assert tables.verdict_on("past-invariance")[0] == "confirmed"
    # Two statements about one reward, and they differ.
    square = {"theory": "Reward Square: is past-invariant"}
    assert tables.verdict_of_the_theory(square)[0] == "confirmed"
    square = {"theory": "Reward Square: is strongly past-invariant"}
    assert tables.verdict_of_the_theory(square)[0] == "refuted"


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
