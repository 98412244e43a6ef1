"""`hms-iceberg docs`: the guides, without a network."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hms_iceberg.cli.output import say
from hms_iceberg.docs.book import Page, pages, search, terminal_text
from hms_iceberg.errors import InvalidInputError

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


def _complete(_ctx: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from click.shell_completion import CompletionItem

    return [CompletionItem(each.topic, help=each.title) for each in pages() if each.topic.startswith(incomplete)]


@click.command()
@click.argument("topic", required=False, shell_complete=_complete)
@click.option("-s", "--search", "words", metavar="WORDS", help="List the sections that have all of these words.")
@click.option(
    "--site",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="FOLDER",
    help="Write a site: all guides, and the API reference, made of docstrings.",
)
@click.option(
    "--to", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="Write all guides as one HTML page."
)
def docs(topic: str | None, words: str | None, site: Path | None, to: Path | None) -> None:
    """Read the guides: the list of topics, one topic, or all of them as one HTML page with search.

    Example: hms-iceberg docs cookbook
    """
    if site is not None:
        from hms_iceberg.docs.site import write_site

        write_site(site)
        say(f"Wrote {site}: open {site / 'index.html'}.")
    elif to is not None:
        from hms_iceberg.docs.book import book_page

        if not to.absolute().parent.is_dir():
            raise InvalidInputError(f"There is no folder {to.absolute().parent}. Make it, or write elsewhere.")
        to.write_text(book_page(), encoding="utf-8")
        say(f"Wrote {to}.")
    elif words is not None:
        _list_found(words)
    elif topic is not None:
        _show(_page(topic))
    else:
        _list_topics(pages())


def _page(topic: str) -> Page:
    known = pages()
    for page in known:
        if topic.lower() in (page.topic, page.place.lower()):
            return page
    near = get_close_matches(topic.lower(), [each.topic for each in known], 1)
    meant = f"Did you mean {near[0]}? " if near else ""
    raise InvalidInputError(
        f"There is no guide {topic!r}. {meant}Topics: {', '.join(each.topic for each in known)}. "
        f"To search in all of them: hms-iceberg docs --search {topic!r}"
    )


def _show(page: Page) -> None:
    """Prints with a pager and in colours on a terminal, and in a pipe as it was written."""
    if not sys.stdout.isatty():
        say(page.text)
        return
    from rich.console import Console
    from rich.markdown import Markdown

    console = Console()
    with console.capture() as captured:
        console.print(Markdown(terminal_text(page, pages()), hyperlinks=False))
    click.echo_via_pager(captured.get(), color=True)


def _list_topics(known: Iterable[Page]) -> None:
    from rich.console import Console
    from rich.table import Table

    grid = Table.grid(padding=(0, 2))
    for page in known:
        grid.add_row(page.topic, page.summary)
    Console(highlight=False).print(grid, markup=False)
    say("\nOne guide: hms-iceberg docs TOPIC. All as a page with search: hms-iceberg docs --to guides.html")


def _list_found(words: str) -> None:
    found = search(words)
    for page, section in found:
        say(f"{page.topic}: {section.heading}")
    if not found:
        raise InvalidInputError(f"No section has all of: {words}")
