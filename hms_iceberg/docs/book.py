"""The pages of the guides: which there are, in what order, and a search in them."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hms_iceberg.docs.settings import settings_page

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token


# In the order in which a newcomer reads; a page that stands here by no name comes behind these.
_FIRST = (
    *("docs/COOKBOOK.md", "spark/README.md", "table/README.md", "migration/README.md", "maintenance/README.md"),
    *("cli/README.md", "catalog/README.md", "catalog/ENGINES.md", "arrow/storage/README.md"),
)
# This one is no file: it is made of the properties that the package reads.
_SETTINGS = "docs/SETTINGS.md"
_LAST = (_SETTINGS, "docs/FAQ.md", "docs/GLOSSARY.md", "docs/CHANGELOG.md")
_FENCE = re.compile(r"^```.*?^```$", re.M | re.S)
_HEADING = re.compile(r"^(#+) (.+)$", re.M)


@dataclass(frozen=True)
class Section:
    """A part of a page: its heading, and the text below it as Markdown."""

    heading: str
    text: str


@dataclass(frozen=True)
class Page:
    """A guide.

    Attributes:
        topic: the word that names it: `spark`, `cookbook`.
        place: its path in the package, with slashes.
        text: its Markdown.
    """

    topic: str
    place: str
    text: str

    @property
    def title(self) -> str:
        """Its first heading."""
        return self.sections[0].heading

    @property
    def summary(self) -> str:
        """The first paragraph below its title."""
        return self.sections[0].text.strip().partition("\n\n")[0].replace("\n", " ")

    @cached_property
    def sections(self) -> tuple[Section, ...]:
        """Its parts, each from a heading to the next one."""
        hidden = _FENCE.sub(lambda found: " " * len(found[0]), self.text)  # a comment in a block is no heading
        headings = list(_HEADING.finditer(hidden))
        ends = [*(each.start() for each in headings[1:]), len(self.text)]
        return tuple(Section(each[2], self.text[each.end() : end]) for each, end in zip(headings, ends, strict=True))


def pages() -> list[Page]:
    """All guides that are installed, and the page of properties, in the order in which to read them."""
    root = Path(__file__).parents[1]
    found = {path.relative_to(root).as_posix(): path.read_text(encoding="utf-8") for path in root.rglob("*.md")}
    found[_SETTINGS] = settings_page()
    first = [place for place in _FIRST if place in found]
    last = [place for place in _LAST if place in found]
    order = [*first, *sorted(found.keys() - {*first, *last}), *last]
    return [Page(_topic(place), place, found[place]) for place in order]


def search(words: str) -> list[tuple[Page, Section]]:
    """The sections that have all of some words, in the order of the book.

    Args:
        words: separated by spaces; upper and lower case are the same.
    """
    wanted = words.lower().split()
    return [
        (page, section)
        for page in pages()
        for section in page.sections
        if all(word in f"{page.title}\n{section.heading}\n{section.text}".lower() for word in wanted)
    ]


def _topic(place: str) -> str:
    folder, _, name = place.rpartition("/")
    name = folder.rpartition("/")[2] if name == "README.md" else name.removesuffix(".md").lower()
    return {"cli": "commands", "table": "python", "changelog": "changes"}.get(name, name)


# ---------------------------------------------------------------------------------------------- as one HTML page


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
