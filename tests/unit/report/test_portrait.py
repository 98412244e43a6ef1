"""What is told of a table, compared with what went into it."""

from __future__ import annotations

import datetime as dt
import io
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pyarrow as pa
import pytest
from rich.console import Console

from hms_iceberg.catalog import Catalog
from hms_iceberg.report import Failure, html_page, portrait_of
from hms_iceberg.report.portrait import Advice
from hms_iceberg.report.terminal import print_portrait, sparkline
from hms_iceberg.table import Table

DAYS = [dt.date(2026, 1, day) for day in (1, 1, 2, 3)]
ROWS = pa.table({"id": pa.array([1, 2, 3, 4], pa.int64()), "day": DAYS, "page": ["/", "/buy", None, "/<b>"]})


def test_counts_are_those_of_the_files(visits: Table) -> None:
    told = portrait_of(visits)
    assert (told.name, told.format_version, told.rows, told.data_files) == ("web.visits", 3, 5, 4)
    assert (told.position_delete_files, told.deletion_vectors, told.equality_delete_files) == (0, 1, 0)
    assert (told.deleted_positions, told.delete_files) == (1, 1)
    assert (told.partitioned_by, told.sorted_by) == (("day",), ())
    paths = {task.file.file_path for task in visits.scan().plan_files()}
    assert told.data_bytes == sum(Path(re.sub("^file:", "", path)).stat().st_size for path in paths)
    assert sum(each.count for each in told.file_sizes) == told.data_files
    assert [(each.low, each.count) for each in told.deletes_per_file] == [(0, 3), (1, 1)]


def test_partitions_are_told_by_size_and_snapshots_from_the_newest(visits: Table) -> None:
    told = portrait_of(visits, most_partitions=2)
    assert told.partition_count == 3
    assert len(told.partitions) == 2
    assert told.partitions[0].bytes >= told.partitions[1].bytes
    every = portrait_of(visits).partitions
    assert {(each.name, each.rows, each.files, each.delete_files) for each in every} == {
        ("day=2026-01-01", 2, 1, 1),
        ("day=2026-01-02", 1, 1, 0),
        ("day=2026-01-03", 2, 2, 0),
    }
    assert [(each.operation, each.refs, each.is_current) for each in told.snapshots] == [
        ("delete", ("main",), True),
        ("append", ("audit",), False),
        ("append", (), True),
        ("append", (), True),
    ]


def test_a_table_of_very_many_snapshots_is_advised_to_keep_fewer(
    visits: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "expire_snapshots" not in {each.action for each in portrait_of(visits).advice}
    monkeypatch.setattr("hms_iceberg.maintenance.expire_with_files.MANY_SNAPSHOTS", 4)
    advice = portrait_of(visits).advice[0]
    assert advice.action == "expire_snapshots" and advice.why.startswith("4 snapshots are read and written by every")
    assert "history.expire.max-snapshot-age-ms" in advice.why


@pytest.mark.parametrize(("width", "place"), [(40, 0), (100, -1)])
def test_what_would_help_comes_first_where_the_screen_is_narrow(visits: Table, width: int, place: int) -> None:
    advised = replace(
        portrait_of(visits), advice=(Advice("rewrite_manifests", "too many", "hms-iceberg list web.visits"),)
    )
    console = Console(file=io.StringIO(), width=width, color_system=None)
    print_portrait(advised, console)
    assert isinstance(console.file, io.StringIO)
    parts = [each for each in console.file.getvalue().split("\n\n") if each.strip()]
    assert "What would help" in parts[place] and "hms-iceberg list web.visits" in parts[place]
    assert all(len(line.rstrip()) <= width for line in console.file.getvalue().splitlines())
    assert all(str(each.snapshot_id) in console.file.getvalue() for each in advised.snapshots), "ids are whole"


def test_a_table_without_rows_is_told(lake: Catalog) -> None:
    told = portrait_of(lake.create_table("web.empty", ROWS.schema))
    assert (told.rows, told.data_files, told.file_sizes, told.snapshots, told.partitions) == (0, 0, (), (), ())
    assert "web.empty" in html_page("web.empty", 0, [told])


class Page(HTMLParser):
    """Checks that tags are closed in order, and collects what would be fetched from elsewhere."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.foreign: list[str] = []
        self.scripts = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "script":
            self.scripts += 1
        self.foreign += [
            f"{name}={value}" for name, value in attrs if name in ("src", "href") and not (value or "").startswith("#")
        ]
        if tag not in ("meta", "br", "input"):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        pass

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_page_is_whole_and_needs_nothing_from_elsewhere(visits: Table) -> None:
    visits.set_properties({"owner": "<script>alert(1)</script>"})
    text = html_page("All of <web>", 0, [portrait_of(visits)] * 2, [Failure("web.gone", "no <metadata>")])
    page = Page()
    page.feed(text)
    assert page.open == []
    assert page.foreign == []
    assert page.scripts == 1  # the page's own, and none that a table's properties hold
    assert "url(" not in text and "@import" not in text
    assert "&lt;script&gt;alert(1)" in text
    assert "no &lt;metadata&gt;" in text
    assert text.count('class="curve"') == 4  # rows and bytes of both


def test_a_sparkline_has_the_newest_value_last_and_is_as_wide_as_there_is_room() -> None:
    assert sparkline([0, 7], 10) == "▁█"
    assert sparkline([0], 10) == "▁"
    assert len(sparkline(list(range(1000)), 40)) <= 40
    assert sparkline([5, 5, 5, 0], 2)[-1] == "▁"


def test_notebooks_show_what_one_works_with(lake: Catalog, visits: Table) -> None:
    visits.set_properties({"comment": "<b>"})
    for shown in (
        *(lake, visits, visits.schema(), visits.spec(), visits.snapshots()[0], visits.scan("page = '<b>'")),
        lake.create_table("web.empty", visits.schema()),
    ):
        text = shown._repr_html_()
        page = Page()
        page.feed(text)
        assert page.open == [] and page.scripts == 0
        assert "<table>" in text
    text = visits._repr_html_()
    assert "web.visits" in text
    assert "<td>/buy</td>" in text and "<td>null</td>" in text and "&lt;b&gt;" in text  # rows, and a value of theirs
    assert "<td>audit</td>" in text and "<td>append</td>" in text
    assert "visits" in lake._repr_html_()


def test_a_notebook_shows_a_table_whose_files_are_gone(visits: Table) -> None:
    for task in visits.scan().plan_files():
        Path(task.file.file_path.removeprefix("file://")).unlink()

    assert "web.visits" in visits._repr_html_()
