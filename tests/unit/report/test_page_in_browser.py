"""The page of a warehouse in a browser: light and dark, on a wide screen and on a phone, from its one file."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from hms_iceberg.cli.migration.warehouse import migration_page
from hms_iceberg.migration.warehouse.warehouse_plan import State, TablePlan, WarehousePlan
from hms_iceberg.report import Failure, html_page, portrait_of
from hms_iceberg.report.portrait import Advice
from hms_iceberg.table import Table
from tests.support.browser import Browser, browser, find_browser

_TOO_WIDE = """
[...document.querySelectorAll("body *")]
  .filter(each => !each.closest(".wide, .graph") && each.getBoundingClientRect().right > innerWidth + 1)
  .map(each => each.outerHTML.slice(0, 80))
"""


_SHOWN = """
[...document.querySelectorAll("table.sorted tbody tr")]
  .filter(each => !each.hidden).map(each => each.cells[0].textContent)
"""


@pytest.fixture(scope="module")
def tab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    program = find_browser()
    if program is None:
        pytest.skip("there is no Chromium on PATH (apt install chromium)")
    with browser(program, tmp_path_factory.mktemp("browser")) as opened:
        yield opened


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_a_page_fits_reads_and_asks_nobody(
    tab: Browser, visits: Table, width: int, scheme: str, tmp_path: Path
) -> None:
    page = tmp_path / "page.html"
    failure = Failure("web.gone", "Cannot read s3://" + "a-long-name-without-a-gap" * 8)
    page.write_text(html_page("Tables of web", 0, [portrait_of(visits)] * 2, [failure]), encoding="utf-8")
    tab.show(page, width, scheme)

    assert tab.requests == [page.as_uri()] and tab.problems == []
    assert tab.value("document.documentElement.scrollWidth") <= width
    assert tab.value(_TOO_WIDE) == []
    text, back = (_light(tab.value(f"getComputedStyle(document.body).{name}")) for name in ("color", "backgroundColor"))
    assert (text < back) is (scheme == "light")
    assert (max(text, back) + 0.05) / (min(text, back) + 0.05) >= 7  # as WCAG 2 asks of good contrast
    assert tab.value("[...document.querySelectorAll('svg')].filter(each => each.getBoundingClientRect().width).length")
    tab.value("document.querySelector('summary').click()")
    assert tab.value("document.documentElement.scrollWidth") <= width and tab.value(_TOO_WIDE) == []


def test_a_thousand_tables_are_sorted_and_searched(tab: Browser, visits: Table, tmp_path: Path) -> None:
    one = portrait_of(visits)
    many = [replace(one, name=f"web.t{each}", rows=each, data_bytes=each % 7, advice=()) for each in range(1000)]
    many.append(replace(one, name="shop.orders", advice=(Advice("rewrite_manifests", "many", "hms-iceberg list"),)))
    page = tmp_path / "page.html"
    page.write_text(html_page("Tables", 0, many), encoding="utf-8")
    tab.show(page, 390, "light")
    names = _SHOWN
    sort_by_rows = "[...document.querySelectorAll('th button')].find(each => each.textContent == 'Rows').click()"

    tab.value(sort_by_rows)
    assert tab.value(names)[:3] == ["web.t999", "web.t998", "web.t997"]
    tab.value(sort_by_rows)
    assert tab.value(names)[:2] == ["web.t0", "web.t1"]
    tab.value("field.value = 'REWRITE shop'; field.dispatchEvent(new Event('input'))")
    assert tab.value(names) == ["shop.orders"]
    assert tab.value("[...document.querySelectorAll('article')].filter(each => !each.hidden).length") == 1
    assert tab.value("document.querySelector('.command code').textContent") == "hms-iceberg list"
    assert tab.value("document.documentElement.scrollWidth") <= 390 and tab.problems == []


@pytest.mark.parametrize("width", [1280, 390])
def test_the_page_of_a_migration_fits_sorts_and_searches(tab: Browser, width: int, tmp_path: Path) -> None:
    tables = [
        TablePlan(f"web.t{each}", State.READY if each % 2 else State.IMPOSSIBLE, bytes=each, reasons=("<no way>",))
        for each in range(30)
    ]
    page = tmp_path / "page.html"
    page.write_text(migration_page(WarehousePlan(tuple(tables))), encoding="utf-8")
    tab.show(page, width, "light")
    names = _SHOWN

    assert tab.requests == [page.as_uri()] and tab.problems == []
    assert tab.value("document.documentElement.scrollWidth") <= width and tab.value(_TOO_WIDE) == []
    tab.value("document.querySelectorAll('th button')[5].click()")
    assert tab.value(names)[:2] == ["web.t29", "web.t28"]
    tab.value("field.value = 'impossible t1'; field.dispatchEvent(new Event('input'))")
    assert sorted(tab.value(names)) == ["web.t10", "web.t12", "web.t14", "web.t16", "web.t18"]
    assert "<no way>" in tab.value("document.body.textContent")


def _light(color: str) -> float:
    """The relative luminance of `rgb(…)`."""
    parts = [int(each) / 255 for each in re.findall(r"\d+", color)[:3]]
    red, green, blue = (each / 12.92 if each <= 0.04045 else ((each + 0.055) / 1.055) ** 2.4 for each in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
