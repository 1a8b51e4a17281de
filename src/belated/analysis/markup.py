"""HTML that cannot be broken by the text in it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape


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
