"""The guides as a book: their order, the search in them, and the one page in a browser."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import pytest
from click.testing import CliRunner

import hms_iceberg
from hms_iceberg.cli.main import cli, main
from hms_iceberg.docs.book import Page, book_page, code_style, pages, search, terminal_text
from hms_iceberg.maintenance_policy import Policy, property_of
from hms_iceberg.spec.table_properties import settings_rows
from tests.support.browser import Browser, browser, find_browser

_TOO_WIDE = """
[...document.querySelectorAll("body *")]
  .filter(each => !each.closest(".wide, pre") && each.getBoundingClientRect().right > innerWidth + 1)
  .map(each => each.outerHTML.slice(0, 80))
"""
_LOST = """
[...document.querySelectorAll("a[href^='#']")].map(each => each.getAttribute("href").slice(1))
  .filter(each => !document.getElementById(each))
"""
_SEARCH = """
field.value = %r; field.dispatchEvent(new Event("input"));
[...document.querySelectorAll("main h1, main h2")]
  .filter(each => !each.hidden && each.offsetParent).map(each => each.textContent)
"""


@pytest.fixture(scope="module")
def tab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    program = find_browser()
    if program is None:
        pytest.skip("there is no Chromium on PATH (apt install chromium)")
    with browser(program, tmp_path_factory.mktemp("browser")) as opened:
        yield opened


def test_every_guide_has_a_topic_of_its_own_a_title_and_a_summary() -> None:
    found = pages()

    assert len({each.topic for each in found}) == len(found) >= 11
    assert all(each.title and each.summary and "|" not in each.summary for each in found)
    assert [each.topic for each in found[:4]] == ["start", "cookbook", "spark", "python"]
    assert all(len(each.title.split()) <= 4 for each in found), "titles are entries of a list"


def test_every_property_that_is_read_is_in_the_page_of_settings() -> None:
    [page] = [each for each in pages() if each.topic == "settings"]

    for row in settings_rows():
        lines = [each for each in page.text.splitlines() if each.startswith(f"| `{row.name}` |")]
        assert any(f"| {row.default or '-'} | {row.about.split('|')[0]}" in each for each in lines), row.name
    headings = [each.heading for each in page.sections]
    assert len(set(headings)) == len(headings)


def test_every_property_of_catalogs_that_the_metastore_client_reads_is_in_a_guide() -> None:
    package = Path(hms_iceberg.__file__).parent
    read = re.compile(r'\.(?:text|integer|boolean|seconds|milliseconds)\(\s*"([a-z][\w.-]+)"')
    names = {name for path in package.joinpath("hms").rglob("*.py") for name in read.findall(path.read_text())}
    guides = "\n".join(page.text for page in pages())

    assert len(names) > 8
    assert not {name for name in names if f"`{name}" not in guides} - {"hive.table-property-max-size"}  # an old name
    for field in fields(Policy):
        assert f"| `{property_of(field.name)}` |" in guides
    assert "|  |" not in guides


def test_a_comment_in_a_block_of_code_is_no_section() -> None:
    assert not any(section.heading.startswith("or") for page in pages() for section in page.sections)


def test_a_search_finds_the_sections_with_all_words() -> None:
    found = {(page.topic, section.heading) for page, section in search("stuck LOCK")}

    assert ("cookbook", "A stuck lock") in found
    assert ("glossary", "Glossary") not in found


@pytest.mark.parametrize("width", [1280, 390])
def test_the_page_fits_asks_nobody_and_its_links_lead_somewhere(tab: Browser, width: int, tmp_path: Path) -> None:
    page = tmp_path / "guides.html"
    page.write_text(book_page(), encoding="utf-8")
    tab.show(page, width, "light")

    assert tab.value(_TOO_WIDE) == []
    assert tab.value(_LOST) == []
    assert tab.requests == [page.as_uri()]
    assert tab.problems == []


def test_the_page_s_search_shows_only_the_sections_with_all_words(tab: Browser, tmp_path: Path) -> None:
    page = tmp_path / "guides.html"
    page.write_text(book_page(), encoding="utf-8")
    tab.show(page, 1280, "light")
    every = tab.value(_SEARCH % "")

    assert tab.value(_SEARCH % "stuck lock holder") == ["A stuck lock"]
    assert tab.value(_SEARCH % "xyzzy") == []
    assert tab.value(_SEARCH % "") == every


def test_the_command_lists_topics_shows_one_and_refuses_another(tmp_path: Path) -> None:
    runner = CliRunner()

    assert "cookbook" in runner.invoke(cli, ["docs"]).output
    assert runner.invoke(cli, ["docs", "glossary"]).output.startswith("# Glossary")
    assert "Topics: start, cookbook, spark" in str(runner.invoke(cli, ["docs", "nothing"]).exception)
    assert "cookbook: A stuck lock" in runner.invoke(cli, ["docs", "--search", "stuck lock"]).output
    assert runner.invoke(cli, ["docs", "--to", str(tmp_path / "guides.html")]).exit_code == 0
    assert "<article" in (tmp_path / "guides.html").read_text(encoding="utf-8")


def test_links_of_a_guide_are_commands_on_a_terminal() -> None:
    known = pages()
    [page] = [each for each in known if each.topic == "start"]
    told = terminal_text(page, known)
    assert "guide (`hms-iceberg docs spark`)" in told and "changes (`hms-iceberg docs changes`)" in told
    assert "](" not in re.sub(r"\]\(https?://", "", told)
    assert "# Getting started" in told and "demo.svg" not in told


def test_code_is_highlighted_in_light_and_in_dark() -> None:
    page = Page("t", "T.md", "# T\n\n```python\nimport this\n```\n\n```nosuch\nx < y\n```\n")
    shown = book_page([page])
    assert '<span class="kn">import</span>' in shown and "x &lt; y" in shown
    assert shown.count("pre code .kn ") == 2 and "prefers-color-scheme: dark" in code_style()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["docs", "cookbok"], "There is no guide 'cookbok'. Did you mean cookbook?"),
        (["docs", "--to", "nosuch/guides.html"], "/nosuch. Make it, or write elsewhere."),
    ],
)
def test_what_is_asked_for_wrongly_is_answered_with_what_may_be_meant(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 1
    assert said in capsys.readouterr().err


@pytest.mark.slow
def test_the_site_has_guides_and_a_reference_without_dead_links(tmp_path: Path) -> None:
    pytest.importorskip("pdoc", reason="needs pdoc: pip install 'hms_iceberg[docs]'")
    assert main(["docs", "--site", str(tmp_path)]) == 0
    written = {path: path.read_text(encoding="utf-8") for path in tmp_path.rglob("*.html")}
    dead = []
    for path, text in written.items():
        for link in re.findall(r'<a[^>]* href="([^"]+)"', text):
            target, _, anchor = link.partition("#")
            if "://" in target or "${" in link:  # which a script fills in
                continue
            found = written.get((path.parent / target).resolve() if target else path)
            if found is None or (anchor and f'id="{anchor}"' not in found):
                dead.append(f"{path.relative_to(tmp_path)}: {link}")
    assert not dead
    reference = written[tmp_path / "api" / "hms_iceberg" / "catalog" / "catalog.html"]
    assert "create_table" in reference and "TableAlreadyExistsError" in reference
    assert 'href="api/index.html"' in written[tmp_path / "index.html"]
