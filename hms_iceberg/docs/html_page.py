"""The guides as one HTML page with search, which needs no network."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from hms_iceberg.docs.book import Page, pages

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token


def book_page(chosen: Sequence[Page] | None = None) -> str:
    """One HTML page of the guides: contents at its side, a field to search in, every guide as an article.

    Args:
        chosen: the guides; all that are installed by default.

    Returns:
        The page. Style and script are inside of it.
    """
    from importlib.metadata import version

    from jinja2 import Environment, PackageLoader

    shown = pages() if chosen is None else chosen
    environment = Environment(
        loader=PackageLoader("hms_iceberg.docs"), autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    articles = [
        {"page": page, "sections": _sections(page), "html": _html(page, {each.place: each.topic for each in shown})}
        for page in shown
    ]
    return environment.get_template("book.html").render(articles=articles, version=version("hms_iceberg"))


def anchor(topic: str, heading: str) -> str:
    """The name of a heading in the page; headings of two guides may be the same.

    Args:
        topic: name of the guide.
        heading: the heading's text.
    """
    return f"{topic}--{slug(heading)}"


def slug(heading: str) -> str:
    """A heading as the part of a link behind `#`, as the pages of code hosts have it."""
    return re.sub(r"[^\w\- ]", "", heading).lower().replace(" ", "-")


def _sections(page: Page) -> list[tuple[str, str]]:
    return [(anchor(page.topic, each.heading), each.heading) for each in page.sections[1:]]


def _html(page: Page, topics: dict[str, str]) -> str:
    markdown = _parser()
    tokens = markdown.parse(page.text)
    for at, token in enumerate(tokens):
        if token.type == "heading_open":
            token.attrs["id"] = anchor(page.topic, tokens[at + 1].content)
        elif token.type == "inline":
            _lead_inside(token, page, topics)
    rendered: Any = markdown.renderer.render(tokens, markdown.options, {})
    return str(rendered).replace("<table>", '<div class="wide"><table>').replace("</table>", "</table></div>")


def _lead_inside(line: Token, page: Page, topics: dict[str, str]) -> None:
    """Lets links to other guides lead to their articles; those to files that are not in the page become plain text."""
    for each in line.children or ():
        if each.type != "link_open" or "://" in str(each.attrs["href"]):
            continue
        path, _, heading = str(each.attrs["href"]).partition("#")
        place = posixpath.normpath(posixpath.join(posixpath.dirname(page.place), path)) if path else page.place
        topic = topics.get(place)
        if topic is None:
            del each.attrs["href"]
        else:
            each.attrs["href"] = f"#{topic}--{heading}" if heading else f"#{topic}"


def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark", {"html": False}).enable("table")
