"""Fill in the tables and numbers of README, docs and results from what is in results/.

A table stands between two comments, and the first says what is in it:

    <!-- scores: FOLDER+FOLDER METHOD METHOD ... -->
    <!-- scores: FOLDER+FOLDER METHOD METHOD ..., each seed -->
    <!-- differences: FOLDER+FOLDER METHOD METHOD METHOD ..., until 60k -->
    <!-- curves: FOLDER+FOLDER METHOD METHOD ..., at 20k 40k, of length_mean, mean -->
    <!-- claims: paper -->
    <!-- comparisons: paper -->
    <!-- throughput: FILE -->
    <!-- ratios: FILE METHOD METHOD ... -->
    <!-- clock: FOLDER -->
    <!-- scaling: interval_length METHOD METHOD ... -->
    <!-- seeds: FILE NUMBER METHOD METHOD ... -->
    <!-- truth: METHOD METHOD ... -->
    <!-- credit: FOLDER+FOLDER METHOD METHOD ... -->
    <!-- readme: HEADING -->
    <!-- end -->

A number inside a sentence stands between two, too, on one line, which begins with a word (a comment
that begins a line would end the paragraph):

    <!-- value: FILE PATH -->85.92<!-- end -->
    <!-- span: FILE PATH -->2.6 to 5.5<!-- end -->
    <!-- score-span: FOLDER TASK METHOD METHOD ... -->430 to 500<!-- end -->

`docs_scores`, `docs_claims`, `docs_speeds`, `docs_examples`, `docs_numbers` and `credit` say what
each of them is; `readme` is the first table under a heading of README.md, for a page of docs/.
Pictures (`docs_pictures`) are drawn again if their runs have changed.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from credit import credit_table
from docs_claims import claims_table, comparison_table
from docs_examples import seeds_table, truth_table
from docs_numbers import score_span, span, value
from docs_pictures import pictures
from docs_scores import RESULTS, ROOT, curve_table, difference_table, score_table
from docs_speeds import clock_table, ratio_table, scaling_table, throughput_table


def readme_table(heading: str) -> str:
    """The first table under a heading of README.md, with links as docs/ has them."""
    section = (ROOT / "README.md").read_text().partition(f"\n## {heading}\n")[2]
    found = re.search(r"^\|.*?\n(?!\|)", section, re.DOTALL | re.MULTILINE)
    if found is None:
        raise ValueError(f"README.md has no table under {heading!r}.")
    return found[0].strip().replace("](docs/", "](").replace("](results/", "](../results/")


TABLES = {
    "scores": score_table,
    "differences": difference_table,
    "curves": curve_table,
    "claims": claims_table,
    "comparisons": comparison_table,
    "throughput": throughput_table,
    "ratios": ratio_table,
    "clock": clock_table,
    "scaling": scaling_table,
    "seeds": seeds_table,
    "truth": truth_table,
    "credit": credit_table,
    "readme": readme_table,
}
NUMBERS = {"value": value, "span": span, "score-span": score_span}
PLACE = re.compile(rf"(<!-- ({'|'.join(TABLES)}): (.*?) -->\n).*?(<!-- end -->)", re.DOTALL)

SPOT = re.compile(rf"(<!-- ({'|'.join(NUMBERS)}): (.*?) -->).*?(<!-- end -->)")


def pages() -> list[Path]:
    """The pages that may have tables."""
    return [ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *RESULTS.glob("*.md")]


def filled(text: str) -> str:
    """A page with its tables and numbers as they should be."""
    if re.search(rf"^ *<!-- ({'|'.join(NUMBERS)}):", text, re.MULTILINE):
        raise ValueError(
            "A line may not begin with a number that is filled in: begin it with a word."
        )
    if len(PLACE.findall(text)) + len(SPOT.findall(text)) != text.count("<!-- end -->"):
        raise ValueError(
            "There is an end without a beginning, or a number that is not on one line."
        )
    text = PLACE.sub(lambda found: f"{found[1]}{TABLES[found[2]](found[3])}\n{found[4]}", text)
    return SPOT.sub(lambda found: f"{found[1]}{NUMBERS[found[2]](found[3])}{found[4]}", text)


def main() -> int:
    """Write tables and pictures, or with --check say which pages and files are out of date."""
    late = [page for page in pages() if filled(page.read_text()) != page.read_text()]
    shown = {picture.path: picture for page in pages() for picture in pictures(page)}
    stale = [picture for picture in shown.values() if not picture.is_current()]
    for path in (*late, *(picture.path for picture in stale)):
        print(path.relative_to(ROOT))
    if "--check" in sys.argv:
        return 1 if late or stale else 0
    for page in late:
        page.write_text(filled(page.read_text()))
    for picture in stale:
        picture.draw()
    return 0


if __name__ == "__main__":
    sys.exit(main())
