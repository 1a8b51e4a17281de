"""One page of HTML that shows all there is to see of a set of runs, without the network."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING

import numpy as np

from belated.analysis.agent_figures import draw_credit
from belated.analysis.figures import describe_curves, draw_curves
from belated.analysis.frame import words
from belated.analysis.looks import Look, looks
from belated.analysis.markup import Html, element, table, together
from belated.analysis.runs import LAST_PART, Run, by_task, flat
from belated.analysis.summary import Summary
from belated.analysis.summary_files import score_table
from belated.analysis.svg import SmallCurves, inline, named
from belated.analysis.wording import as_number

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FEW_RUNS = 12
"""Up to so many, the curves of single runs are shown without being asked for."""
CREDIT_STEPS = 200
"""Of more, single steps could not be seen; credit.csv and credit.png have all of them."""


def write_report(summary: Summary, path: Path, *, title: str = "") -> Path:
    """Write a page with verdicts, curves, tables, single runs, credit, settings and origins.

    It is one file that needs nothing else. Whatever comes from the runs' files is escaped.

    Args:
        summary: what to show.
        path: the file to write.
        title: the page's title (default: what was run on what).
    """
    styles = looks(summary.methods)
    sections = {
        "Learning curves": _curves(summary, styles),
        "Scores": _scores(summary, styles),
        "Single runs": _single_runs(summary, styles),
        "Credit": _credit(summary, styles),
        "Settings": _settings(summary.runs),
        "Origins": _origins(summary.runs),
        "Speed": _speed(summary, styles),
    }
    sections = {name: content for name, content in sections.items() if content}
    title = title or _title(summary)
    body = [element("h1", title), _scope(summary), _verdicts(summary), _notes(summary)]
    body.append(_contents(sections))
    for name, content in sections.items():
        body.append(element("section", element("h2", name), content, id=_anchor(name)))
    page = Template(files("belated.analysis").joinpath("report.html").read_text("utf-8"))
    path.parent.mkdir(parents=True, exist_ok=True)
    filled = page.substitute(title=escape(title), body=element("main", *body))
    path.write_text(filled, encoding="utf-8", errors="replace")
    return path


# The top of the page


def _title(summary: Summary) -> str:
    def some(names: Sequence[str], what: str) -> str:
        return names[0] if len(names) == 1 else f"{len(names)} {what}"

    return f"{some(summary.methods, 'methods')} on {some(summary.tasks, 'tasks')}"


def _scope(summary: Summary) -> Html:
    runs = f"{len(summary.runs)} run{'s' * (len(summary.runs) != 1)}"
    return element(
        "p",
        f"{runs}. Scores are the {words(summary.column)} ({summary.column}), the mean over the "
        f"last {LAST_PART:.0%} of a run's steps; intervals are 95% ones over seeds.",
        class_="soft",
    )


def _verdicts(summary: Summary) -> Html:
    said = [
        element("li", element("strong", each.where), f": {each.verdict}.")
        for each in summary.comparisons
    ]
    if summary.primary is None:
        said = [element("li", "No comparison was declared beforehand; this page only describes.")]
    elif not said:
        missing = f"No task has runs of both {summary.primary[0]} and {summary.primary[1]}."
        said = [element("li", missing)]
    return element(
        "div", element("h2", "Verdict"), element("ul", *said), class_="say", id="verdict"
    )


def _notes(summary: Summary) -> Html:
    if not summary.notes:
        return Html()
    notes = element("ul", *(element("li", note) for note in summary.notes))
    head = element("h2", "To keep in mind")
    return element("div", head, notes, class_="warn", role="note", id="notes")


def _anchor(name: str) -> str:
    return name.lower().replace(" ", "-")


def _contents(sections: Iterable[str]) -> Html:
    links = [element("li", element("a", name, href=f"#{_anchor(name)}")) for name in sections]
    return element("nav", element("ul", *links), aria_label="Contents")


# Sections


def _curves(summary: Summary, styles: Mapping[str, Look]) -> Html:
    panels = []
    for place, task in enumerate(summary.tasks):
        runs = [run for run in summary.runs if run.task == task]
        # Only this task's panel, but with the looks that methods have on the whole page.
        figure = draw_curves(runs, column=summary.column, legend=False, styles=styles)
        panels.append(element("figure", inline(figure, f"c{place}", f"Learning curves on {task}")))
    legend = [element("li", named(method, styles)) for method in styles]
    explained = element("p", describe_curves(summary.runs), class_="soft")
    drawn = element("div", *panels, class_="panels")
    return together([element("ul", *legend, class_="legend"), drawn, explained])


def _scores(summary: Summary, styles: Mapping[str, Look]) -> Html:
    parts = []
    for task in summary.tasks:
        header, rows = score_table(summary, task)
        shown = [[named(method, styles), *rest] for method, *rest in rows]
        parts += [element("h3", task), table(header, shown, f"Scores on {task}")]
    return together(parts)


def _single_runs(summary: Summary, styles: Mapping[str, Look]) -> Html:
    opened = {"open": ""} if len(summary.runs) <= FEW_RUNS else {}
    parts: list[str] = []
    for task, methods in by_task(summary.runs).items():
        runs = [run for method in styles for run in methods.get(method, [])]
        lines = SmallCurves(runs, summary.column, f"r{len(parts)}")
        cards = [_card(place, lines, summary.column, styles) for place in range(len(runs))]
        about = element("p", lines.scale, " Grey: the method's other seeds.", class_="soft")
        head = element("summary", f"{task}: {len(runs)} run{'s' * (len(runs) > 1)}")
        grid = element("div", *cards, class_="runs")
        parts.append(element("details", head, about, lines.definitions(), grid, **opened))
    return together(parts)


def _card(place: int, lines: SmallCurves, column: str, styles: Mapping[str, Look]) -> Html:
    run, last = lines.runs[place], lines.curves[place]
    speed = f", {run.speed:,.0f}/s" if np.isfinite(run.speed) else ""
    return element(
        "div",
        element("strong", run.method),
        f", seed {run.seed}",
        lines.plot(place, styles[run.method]),
        element("div", f"score {as_number(run.score(column))}"),
        element("div", f"last {as_number(last.values[-1])}"),
        element("div", f"{run.steps:,} steps{speed}"),
        element("div", "/".join(run.folder.parts[-2:]), class_="soft"),
        class_="run",
    )


def _credit(summary: Summary, styles: Mapping[str, Look]) -> Html:
    """One chart for each task and method: the others would say the same and make a large page."""
    parts: list[str] = []
    for group in summary.groups:
        having = [run for run in group.runs if (run.folder / "credit.csv").is_file()]
        if not having:
            continue
        run, *others = having
        chart = inline(_read_credit(run.folder / "credit.csv"), f"k{len(parts)}", run.name)
        more = f" ({len(others)} more in the folders of other seeds)" if others else ""
        where = f" on {run.task}, seed {run.seed}{more}"
        head = element("summary", named(group.method, styles), where)
        figure = element("figure", chart, class_="wide")
        parts.append(element("details", head, figure, **({} if parts else {"open": ""})))
    if not parts:
        return Html()
    about = (
        "What each step of an episode was credited with, beside what was revealed and what was "
        f"hidden: the first {CREDIT_STEPS} steps."
    )
    return together([element("p", about, class_="soft"), *parts])


def _read_credit(path: Path) -> Figure:
    columns = np.genfromtxt(path, delimiter=",", names=True, ndmin=1)
    wanted = ("credit", "dense_reward", "reward")
    if not {*wanted} <= {*(columns.dtype.names or ())} or not len(columns):
        raise ValueError(f"{path} should have the columns {', '.join(wanted)}, and rows.")
    first = columns[:CREDIT_STEPS]
    credit, dense, rewards = (np.asarray(first[name], np.float64) for name in wanted)
    ends = np.flatnonzero(rewards).tolist()
    return draw_credit(credit, dense=dense, rewards=rewards, ends=ends)


_NOT_SETTINGS = {"provenance", "earlier", "seed", "out", "label", "hyperparameters"}


def _settings(runs: Sequence[Run]) -> Html:
    """What differs between methods first, then what is the same for all."""
    methods: dict[str, dict[str, list[str]]] = {}
    for run in runs:
        own = methods.setdefault(run.method, {})
        top = {name: each for name, each in run.config.items() if name not in _NOT_SETTINGS}
        # (Hyperparameters last: they say what learning_starts was where the setting is none.)
        for name, value in (flat(top) | flat(run.config.get("hyperparameters", {}))).items():
            own.setdefault(name, []).append(value)
    names = list(dict.fromkeys(name for own in methods.values() for name in own))
    rows = {name: [_values(own.get(name, [])) for own in methods.values()] for name in names}
    if rows.get("method") == [*methods]:
        del rows["method"]  # the header says it
    different = [[name, *row] for name, row in rows.items() if len({*row}) > 1]
    shared = [[name, row[0]] for name, row in rows.items() if len({*row}) == 1]
    parts = []
    if different:
        parts.append(element("p", "Where methods differ:"))
        parts.append(table(["setting", *methods], different, "Where methods differ", "words"))
    title = "What all methods share" if len(methods) > 1 else "All settings"
    listed = table(["setting", "value"], shared, title, "words")
    parts.append(element("details", element("summary", f"{title} ({len(shared)})"), listed))
    return together(parts)


def _values(values: Sequence[str]) -> str:
    distinct = list(dict.fromkeys(values))
    more = f" and {len(distinct) - 4} more" if len(distinct) > 4 else ""
    return ", ".join(distinct[:4]) + more


def _origins(runs: Sequence[Run]) -> Html:
    counts: Counter[tuple[str, str]] = Counter()
    for run in runs:
        origins = [run.config.get("provenance", {}), *run.config.get("earlier", [])]
        # (The version is also in the settings, where older runs have nothing else.)
        version = {"versions": {"belated": run.config.get("belated", "not recorded")}}
        facts = [flat(origin) for origin in origins if origin] or [flat(version)]
        counts.update({fact for each in facts for fact in each.items()})
    unrecorded = sum(not run.config.get("provenance") for run in runs)
    rows = [[name, value, str(count)] for (name, value), count in sorted(counts.items())]
    parts = [table(["what", "value", "runs"], rows, "Code, versions and machines", "words")]
    if unrecorded:
        said = f"{unrecorded} of {len(runs)} runs do not say what code and versions made them."
        parts.insert(0, element("p", said))
    return together(parts)


def _speed(summary: Summary, styles: Mapping[str, Look]) -> Html:
    rows = []
    for group in summary.groups:
        minutes = [run.rows[-1].get("wall_time", np.nan) / 60 for run in group.runs]
        shown = [f"{group.speed:,.0f}", f"{np.median(minutes):,.1f}"]
        rows.append(
            [named(group.method, styles), group.task, f"{group.steps:,}"]
            + (shown if np.isfinite(group.speed) else ["", ""])
        )
    about = "Medians over seeds; the time is that of learning, evaluations not included."
    header = ["method", "task", "steps", "steps/s", "minutes per run"]
    return together([element("p", about, class_="soft"), table(header, rows, "Speed")])
