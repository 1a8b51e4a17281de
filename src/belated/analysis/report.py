"""One page of HTML that shows all there is to see of a set of runs, without the network."""

from __future__ import annotations

import io
import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

import matplotlib
import numpy as np
from matplotlib.figure import Figure

from belated.analysis import figures
from belated.analysis.figures import Look, looks, words
from belated.analysis.runs import LAST_PART, Curve, Floats, Run, by_task
from belated.analysis.summary import Summary, as_number, score_table

FEW_RUNS = 12
"""Up to so many, the curves of single runs are shown without being asked for."""
CREDIT_STEPS = 200
"""Of more, single steps could not be seen; credit.csv and credit.png have all of them."""
POINTS = 200
"""The curves of single runs are small: more points could not be seen."""


class Html(str):
    """Text that is HTML already. All other text is escaped: it may come from anyone's files."""


def element(name: str, *children: str, **attributes: str) -> Html:
    """An element of HTML; an underscore in an attribute's name is a hyphen, the last one nothing.

    >>> print(element("p", "1 < 2 ", element("b", "&"), class_="soft"))
    <p class="soft">1 &lt; 2 <b>&amp;</b></p>
    """
    named = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(value)}"'
        for key, value in attributes.items()
    )
    return Html(f"<{name}{named}>{together(children)}</{name}>")


def together(parts: Iterable[str]) -> Html:
    """Put parts one after the other, and escape those that are not HTML."""
    return Html("".join(part if isinstance(part, Html) else escape(part) for part in parts))


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
        figure = figures.draw_curves(runs, column=summary.column, legend=False, styles=styles)
        panels.append(element("figure", inline(figure, f"c{place}", f"Learning curves on {task}")))
    legend = [element("li", _named(method, styles)) for method in styles]
    explained = element("p", figures.describe_curves(summary.runs), class_="soft")
    drawn = element("div", *panels, class_="panels")
    return together([element("ul", *legend, class_="legend"), drawn, explained])


def _scores(summary: Summary, styles: Mapping[str, Look]) -> Html:
    parts = []
    for task in summary.tasks:
        header, rows = score_table(summary, task)
        named = [[_named(method, styles), *rest] for method, *rest in rows]
        parts += [element("h3", task), table(header, named, f"Scores on {task}")]
    return together(parts)


def _single_runs(summary: Summary, styles: Mapping[str, Look]) -> Html:
    opened = {"open": ""} if len(summary.runs) <= FEW_RUNS else {}
    parts: list[str] = []
    for task, methods in by_task(summary.runs).items():
        runs = [run for method in styles for run in methods.get(method, [])]
        lines = _Lines(runs, summary.column, f"r{len(parts)}")
        cards = [_card(place, lines, summary.column, styles) for place in range(len(runs))]
        about = element("p", lines.scale, " Grey: the method's other seeds.", class_="soft")
        head = element("summary", f"{task}: {len(runs)} run{'s' * (len(runs) > 1)}")
        grid = element("div", *cards, class_="runs")
        parts.append(element("details", head, about, lines.definitions(), grid, **opened))
    return together(parts)


class _Lines:
    """The curves of some runs as small drawings on one scale; each is written once and reused."""

    width, height = 200, 84

    def __init__(self, runs: Sequence[Run], column: str, key: str) -> None:
        self.runs, self.key = runs, key
        self.curves = [_thinned(run.curve(column)) for run in runs]
        values = np.concatenate([curve.values for curve in self.curves])
        self.low, self.high = float(values.min()), float(values.max())
        self.steps = max(float(curve.steps[-1]) for curve in self.curves)
        self.scale = (
            f"All to one scale: 0 to {self.steps:,.0f} steps, {words(column)} "
            f"{as_number(self.low)} to {as_number(self.high)}."
        )

    def definitions(self) -> Html:
        lines = []
        for place, curve in enumerate(self.curves):
            across = curve.steps / self.steps * (self.width - 4) + 2
            pairs = zip(across, self._up(curve.values), strict=True)
            points = " ".join(f"{x:.1f},{y:.1f}" for x, y in pairs)
            lines.append(element("polyline", id=f"{self.key}-{place}", points=points, fill="none"))
        return element("svg", element("defs", *lines), width="0", height="0", class_="defined")

    def _up(self, values: Floats) -> Floats:
        share = (values - self.low) / ((self.high - self.low) or 1)
        return np.asarray(self.height - 3 - share * (self.height - 6))

    def plot(self, place: int, look: Look) -> Html:
        """One run's curve, in front of those of the method's other seeds."""
        run = self.runs[place]
        others = [at for at, each in enumerate(self.runs) if each.method == run.method]
        drawn = [element("use", href=f"#{self.key}-{at}") for at in others if at != place]
        drawn.append(element("use", href=f"#{self.key}-{place}", class_="own"))
        if self.low < 0 < self.high:
            zero = f"{self._up(np.zeros(1))[0]:.1f}"
            drawn.insert(0, element("line", x1="0", x2=str(self.width), y1=zero, y2=zero))
        return element(
            "svg", *drawn, class_="plot", viewBox=f"0 0 {self.width} {self.height}", role="img",
            aria_label=f"Curve of {run.name}", style=f"--own: {_colour(look)}",
        )  # fmt: skip


def _thinned(curve: Curve) -> Curve:
    known = np.flatnonzero(np.isfinite(curve.values))
    chosen = known[np.linspace(0, len(known) - 1, min(len(known), POINTS)).round().astype(int)]
    return Curve(curve.steps[chosen], curve.values[chosen])


def _card(place: int, lines: _Lines, column: str, styles: Mapping[str, Look]) -> Html:
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
        head = element("summary", _named(group.method, styles), where)
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
    return figures.draw_credit(credit, dense=dense, rewards=rewards, ends=ends)


_NOT_SETTINGS = {"provenance", "earlier", "seed", "out", "label", "hyperparameters"}


def _settings(runs: Sequence[Run]) -> Html:
    """What differs between methods first, then what is the same for all."""
    methods: dict[str, dict[str, list[str]]] = {}
    for run in runs:
        own = methods.setdefault(run.method, {})
        top = {name: each for name, each in run.config.items() if name not in _NOT_SETTINGS}
        # (Hyperparameters last: they say what learning_starts was where the setting is none.)
        for name, value in (_flat(top) | _flat(run.config.get("hyperparameters", {}))).items():
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


def _flat(value: Any, name: str = "") -> dict[str, str]:
    """Nested settings as one level of names and texts.

    >>> _flat({"critic": {"type": "HC", "units": [64, 64]}})
    {'critic.type': 'HC', 'critic.units': '[64, 64]'}
    """
    if isinstance(value, Mapping):
        inner = [_flat(each, f"{name}.{key}" if name else str(key)) for key, each in value.items()]
        return {key: text for part in inner for key, text in part.items()}
    return {name: value if isinstance(value, str) else json.dumps(value)}


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
        facts = [_flat(origin) for origin in origins if origin] or [_flat(version)]
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
            [_named(group.method, styles), group.task, f"{group.steps:,}"]
            + (shown if np.isfinite(group.speed) else ["", ""])
        )
    about = "Medians over seeds; the time is that of learning, evaluations not included."
    header = ["method", "task", "steps", "steps/s", "minutes per run"]
    return together([element("p", about, class_="soft"), table(header, rows, "Speed")])


# Pieces


def _colour(look: Look) -> str:
    return "currentColor" if look.colour == figures.INK else look.colour


def _named(method: str, styles: Mapping[str, Look]) -> Html:
    """A method's name with a piece of its line."""
    look = styles[method]
    dashes = " ".join(f"{2.2 * length:g}" for length in look.dashes)
    line = element(
        "line", x1="0", y1="5", x2="30", y2="5", stroke=_colour(look), stroke_width="2.4",
        stroke_dasharray=dashes or "none",
    )  # fmt: skip
    swatch = element("svg", line, class_="swatch", viewBox="0 0 30 10", aria_hidden="true")
    return element("span", swatch, element("span", method), class_="method")


def table(
    header: Sequence[str], rows: Sequence[Sequence[str]], label: str, class_: str = "numbers"
) -> Html:
    """A table that sorts when a header is clicked, in a box that scrolls if it is too wide."""
    head = [element("th", element("button", name, type="button"), scope="col") for name in header]
    body = [
        element("tr", element("th", first, scope="row"), *(element("td", each) for each in rest))
        for first, *rest in rows
    ]
    inner = [element("thead", element("tr", *head)), element("tbody", *body)]
    whole = element("table", *inner, class_=class_)
    return element("div", whole, class_="scroll", role="region", aria_label=label, tabindex="0")


def inline(figure: Figure, key: str, label: str) -> Html:
    """A figure as SVG inside a page: see-through, in the page's ink, with ids of its own.

    Args:
        figure: the figure.
        key: what the ids start with.
        label: what is read aloud instead of it.
    """
    file = io.StringIO()
    with matplotlib.rc_context(figures.STYLE | {"svg.fonttype": "none"}):
        figure.savefig(file, format="svg", transparent=True, metadata={"Date": None})
    text = file.getvalue()
    root = re.search(r"<svg [^>]*?viewBox=\"([^\"]*)\"[^>]*>", text)
    if root is None:
        raise RuntimeError("matplotlib wrote no <svg> with a viewBox.")
    drawn = text[root.end() : text.rindex("</svg>")]
    # Its style sheet would apply to the whole page; the page has the same rule for figures.
    drawn = re.sub(r"<(metadata|style)\b.*?</\1>|<!--.*?-->", "", drawn, flags=re.DOTALL)
    used = set(re.findall(r'(?:url\(|href=")#([^)"]+)', drawn))
    drawn = re.sub(r' id="([^"]*)"', lambda m: f' id="{key}-{m[1]}"' * (m[1] in used), drawn)
    drawn = re.sub(r'(url\(|href=")#', rf"\1#{key}-", drawn)
    drawn = re.sub(r' (?:d|points)="[^"]*"', _rounded, drawn)
    drawn = re.sub(r">\s+<", "><", drawn)
    drawn = drawn.replace(figures.INK, "currentColor").replace(figures.GRID, "var(--line)")
    return element("svg", Html(drawn), viewBox=root[1], role="img", aria_label=label)


def _rounded(path: re.Match[str]) -> str:
    """Coordinates with one digit after the point: a hundredth of a point cannot be seen."""
    text = re.sub(r"\d+\.\d+", lambda number: f"{float(number[0]):.1f}", path[0])
    return re.sub(r"\s+", " ", text)
