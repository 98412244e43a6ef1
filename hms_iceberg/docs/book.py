"""The pages of the guides: which there are, in what order, a search in them, and all of them as one HTML page.

The page of settings is made from the tables and classes that the package itself reads.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from importlib.metadata import metadata
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hms_iceberg.arrow.storage.arrow_storage import PREVIEW_PROPERTY
from hms_iceberg.cached_properties import cached_property
from hms_iceberg.encryption.key_services import SERVICE_CLASS, SERVICE_TYPE
from hms_iceberg.hms.connection.client_settings import ClientSettings
from hms_iceberg.hms.locking.lock_settings import LockSettings
from hms_iceberg.hms.rows.table_rows import RowSettings
from hms_iceberg.hms.rows.unchanged_rows import TRUST_NOTIFICATIONS
from hms_iceberg.maintenance_policy import KINDS, Policy, property_of
from hms_iceberg.spec.table_properties import settings_rows

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token


# The front page of the project, which comes with the package's metadata.
_START = "START.md"
# In the order in which a newcomer reads; a page that stands here by no name comes behind these.
_FIRST = (
    *(_START, "docs/COOKBOOK.md", "spark/README.md", "table/README.md", "migration/README.md", "maintenance/README.md"),
    "ingest/README.md",
    *("docs/FROM-JAVA.md", "docs/FROM-PYICEBERG.md"),
    *("cli/README.md", "docs/OPERATIONS.md", "catalog/README.md", "catalog/ENGINES.md", "arrow/storage/README.md"),
    "docs/READING.md",
)
# This one is no file: it is made of the properties that the package reads.
_SETTINGS = "docs/SETTINGS.md"
_LAST = (_SETTINGS, "docs/FAQ.md", "docs/GLOSSARY.md", "docs/CHANGELOG.md")
_FENCE = re.compile(r"^```.*?^```$", re.M | re.S)
_LINK = re.compile(r"\[([^\]]+)\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^(#+) (.+)$", re.M)


@dataclass(frozen=True)
class Section:
    """A part of a page: its heading, and the text below it as Markdown."""

    heading: str
    text: str


@dataclass(frozen=True)
class Page:
    """A guide: the `topic` that names it (`spark`), its `place` in the package, with slashes, and its Markdown."""

    topic: str
    place: str
    text: str

    @property
    def title(self) -> str:
        """The page's first heading."""
        return self.sections[0].heading

    @property
    def summary(self) -> str:
        """The first paragraph below its title."""
        return self.sections[0].text.strip().partition("\n\n")[0].replace("\n", " ")

    @cached_property
    def sections(self) -> tuple[Section, ...]:
        """The page's parts, each from a heading to the next one."""
        hidden = _FENCE.sub(lambda found: " " * len(found[0]), self.text)  # a comment in a block is no heading
        headings = list(_HEADING.finditer(hidden))
        ends = [*(each.start() for each in headings[1:]), len(self.text)]
        return tuple(Section(each[2], self.text[each.end() : end]) for each, end in zip(headings, ends, strict=True))


def pages() -> list[Page]:
    """All guides that are installed, and the page of properties, in the order in which to read them."""
    root = Path(__file__).parents[1]
    found = {path.relative_to(root).as_posix(): path.read_text(encoding="utf-8") for path in root.rglob("*.md")}
    found[_SETTINGS] = settings_page()
    found[_START] = _getting_started(root)
    first = [place for place in _FIRST if place in found]
    last = [place for place in _LAST if place in found]
    order = [*first, *sorted(found.keys() - {*first, *last}), *last]
    return [Page(_topic(place), place, found[place]) for place in order]


def _getting_started(root: Path) -> str:
    """The front page as a guide: of the clone, or as it was installed."""
    of_clone = root.parent / "README.md"
    text = (
        of_clone.read_text(encoding="utf-8")
        if of_clone.exists()
        else str(metadata("hms_iceberg").json.get("description", ""))
    )
    text = re.sub(r"^# .*$", "# Getting started", text, count=1, flags=re.M)
    text = re.sub(r"^!\[.*\n\n", "", text, flags=re.M)  # a picture that is not installed
    return text.replace("](hms_iceberg/", "](")


def search(words: str) -> list[tuple[Page, Section]]:
    """The sections that have all of some words, parted by spaces, in whatever case, in the order of the book."""
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
    """One HTML page of some guides (by default of all), with contents and a search field, style and script inside."""
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
    return environment.get_template("book.html").render(
        articles=articles, version=version("hms_iceberg"), code_style=code_style()
    )


def anchor(topic: str, heading: str) -> str:
    """The name of a heading in the page; headings of two guides may be the same."""
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
        if each.type != "link_open" or "://" in str(each.attrs["href"]) or str(each.attrs["href"]).endswith(".html"):
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

    return MarkdownIt("commonmark", {"html": False, "highlight": _highlighted}).enable("table")


def _highlighted(code: str, language: str, _attributes: str) -> str:
    """Code as HTML with classes for its words; empty for a language that is not known, which is then plain."""
    from pygments import highlight
    from pygments.formatters import HtmlFormatter
    from pygments.lexers import get_lexer_by_name
    from pygments.util import ClassNotFound

    try:
        lexer = get_lexer_by_name(language)
    except ClassNotFound:
        return ""
    return str(highlight(code, lexer, HtmlFormatter(nowrap=True)))


def code_style() -> str:
    """The style of highlighted code, for light and for dark screens."""
    from pygments.formatters import HtmlFormatter

    light, dark = (
        "\n".join(re.findall(r"^pre code \..*$", HtmlFormatter(style=name).get_style_defs("pre code"), re.M))
        for name in ("default", "github-dark")
    )
    return f"{light}\n@media (prefers-color-scheme: dark) {{\n{dark}\n}}"


def terminal_text(page: Page, known: Sequence[Page]) -> str:
    """The page for a terminal: a link to another guide says the command that shows it, one to a section its text
    alone."""
    topics = {each.place: each.topic for each in known}

    def with_command(found: re.Match[str]) -> str:
        text, target = found[1], found[2]
        if "://" in target:
            return found[0]
        path = target.partition("#")[0]
        topic = topics.get(posixpath.normpath(posixpath.join(posixpath.dirname(page.place), path)), "") if path else ""
        return f"{text} (`hms-iceberg docs {topic}`)" if topic else text

    return _LINK.sub(with_command, page.text)


# ------------------------------------------------------------------------------------------ the page of settings


Row = tuple[str, str, str, str]
"""A property: its name, its values, its default, and what it means."""


def settings_page() -> str:
    """Markdown: a table for each reader of properties, with name, values, default and meaning."""
    parts = [
        "# Properties",
        "What `set_properties`, `create table … tblproperties` and `hms-iceberg properties` take, with its default; "
        "below, the [properties of catalogs](#properties-of-catalogs).",
        "Properties that are not listed are kept, and change nothing here.",
    ]
    order = {each.reader: number for number, each in reversed(list(enumerate(settings_rows())))}
    rows = sorted(settings_rows(), key=lambda each: order[each.reader])
    for reader, listed in groupby(rows, key=lambda each: each.reader):
        of_reader = ((each.name, ", ".join(each.choices) or each.kind, each.default, each.about) for each in listed)
        parts += [f"## {reader[:1].upper()}{reader[1:]}", _table(of_reader)]
    parts += [
        "## Maintenance service",
        "Of a table; in a policy file the same without `maintenance.` or `hms_iceberg.`, with dashes for dots "
        "(`retain-age: 90d`); see [maintenance](../maintenance/README.md).",
        _table(_of_policy()),
        "## Properties of catalogs",
        "Arguments of `load_catalog`, `-p KEY=VALUE` of a command, lines of `.pyiceberg.yaml`, or variables such as "
        "`PYICEBERG_CATALOG__PROD__URI`. Times without a unit are seconds, those that end in `-ms` milliseconds. "
        "How to log in to a metastore is in the guide on the [catalog](../catalog/README.md); `s3.*`, `gcs.*`, "
        "`adls.*` and `hdfs.*` are in the guide on [storage](../arrow/storage/README.md).",
        _table(_of_catalogs()),
    ]
    return "\n\n".join(parts) + "\n"


def _of_policy() -> Iterable[Row]:
    about = dict(re.findall(r"^ +(\w+): (.+?)$", Policy.__doc__ or "", re.M))
    for each in fields(Policy):
        meaning = about.get(each.name, "")
        default = "" if each.default is None else str(each.default)
        yield (
            property_of(each.name),
            KINDS[str(each.type)].shown,
            default.lower() if isinstance(each.default, bool) else default,
            f"{meaning[:1].upper()}{meaning[1:]}",
        )


def _of_catalogs() -> Iterable[Row]:
    client, locks, rows = ClientSettings, LockSettings, RowSettings
    yield (
        "type",
        "hive, rest, hadoop",
        "by the URI",
        "A Hive Metastore, a server of the REST protocol, or tables in folders.",
    )
    yield "uri", "text", "", "`thrift://host:9083`, several with commas; `http://host:8181` for REST."
    yield "warehouse", "text", "the metastore's", "Where new databases and tables are put."
    preview = "Whether tables of format version 4 are read, as far as its draft is settled; they are never changed."
    yield PREVIEW_PROPERTY, "true, false", "false", preview
    timeout = "hive.metastore.client.connection.timeout"
    yield timeout, "time", f"{client.connect_timeout:g}s", "How long to wait for a connection."
    yield (
        "hive.metastore.client.socket.timeout",
        "time",
        f"{client.socket_timeout:g}s",
        "How long to wait for an answer.",
    )
    yield "hive.metastore.connect.retries", "integer", str(client.attempts), "How often a connection is tried."
    delay = "hive.metastore.client.connect.retry.delay"
    yield delay, "time", f"{client.retry_delay:g}s", "The wait between two rounds over the addresses."
    yield "clients", "integer", str(client.idle_connections), "Connections that are kept open while nobody uses them."
    yield "ugi", "text", "the server's choice", "Whom calls act for, as `user:group1,group2`; without a login only."
    lock = "Whether commits take the metastore's lock; `auto`: only if the server cannot compare and swap."
    yield "iceberg.engine.hive.lock-enabled", "true, false, auto", "true", lock
    compare = "Whether a server that can compares as well while the lock is held."
    yield "iceberg.hive.lock-compare-enabled", "true, false", str(locks.compare).lower(), compare
    for name, default, about in (
        ("lock-timeout", locks.timeout, "How long a commit waits for the lock."),
        ("lock-creation-timeout", locks.creation_timeout, "How long asking for a lock may take."),
        ("lock-creation-min-wait", locks.creation_min_wait, "The first wait before a lock is asked for again."),
        ("lock-creation-max-wait", locks.creation_max_wait, "The longest such wait."),
        ("lock-check-min-wait", locks.check_min_wait, "The first wait before a waiting lock is looked at again."),
        ("lock-check-max-wait", locks.check_max_wait, "The longest such wait."),
        ("lock-heartbeat-interval", locks.heartbeat_interval, "How often a held lock gives a sign of life."),
    ):
        yield f"iceberg.hive.{name}-ms", "integer", f"{default * 1000:g}", about
    keys = "Where the keys of [encrypted tables](../encryption/README.md) are; others by entry points."
    yield SERVICE_TYPE, "keystore, aws, vault", "", keys
    yield SERVICE_CLASS, "text", "", "The Python class of a key service, as `module:Class`, in place of a type."
    size = "The longest parameter or column type that the metastore holds; 4000 for old databases."
    yield "iceberg.hive.table-property-max-size", "integer", str(rows.max_value_length), size
    trusts = "Whether a table's row is read again only after [a notification](../catalog/README.md) of the metastore."
    yield TRUST_NOTIFICATIONS, "true, false", "false", trusts
    engine = "Whether Hive itself is to read the tables."
    yield "iceberg.engine.hive.enabled", "true, false", str(rows.hive_engine).lower(), engine
    zone = "false shows timestamps with zone as Hive 3's type, which Spark cannot read."
    yield "hive.hive2-compatible", "true, false", str(not rows.local_time_zone).lower(), zone


def _table(rows: Iterable[Row]) -> str:
    lines = [f"| `{name}` | {values} | {default or '-'} | {_cell(about)} |" for name, values, default, about in rows]
    return "\n".join(["| property | values | default | meaning |", "|---|---|---|---|", *lines])


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
