"""The pages of the guides: which there are, in what order, and a search in them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from hms_iceberg.docs.settings import settings_page

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
