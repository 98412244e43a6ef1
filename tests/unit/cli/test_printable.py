"""What a terminal would obey in names, comments, properties, paths and values is shown, and not obeyed."""

from __future__ import annotations

import json
import logging
import re
import unicodedata
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hms_iceberg.cli
from hms_iceberg.catalog import Catalog
from hms_iceberg.cli.commands import COMMANDS
from hms_iceberg.errors import NoSuchTableError
from hms_iceberg.expressions import EqualTo
from hms_iceberg.printable import PrintableFormatter, printable, printable_html, printable_json, printable_lines
from hms_iceberg.report.page import html_page
from hms_iceberg.report.portrait import Failure
from hms_iceberg.schema import Schema
from hms_iceberg.table import Table
from hms_iceberg.types import LongType, NestedField, StructType
from tests.unit.cli.conftest import Run
from tests.unit.cli.test_output import ELSEWHERE, SHOWN

ODD = "\x1b]0;x\x07\x9b31m\u202e\u2066\u2028\x7f\ufeff\u200f\r"
NAME = "db.t\u202e\u2028\u200f"
# Harmless, and other text than it seems without them: emoji and Persian words.
JOINED = "\U0001f469\u200d\U0001f4bb می\u200cخواهم"


def obeyed(text: str) -> list[str]:
    """Characters of a text that move, colour, hide or turn round what is shown; line breaks and tabs are none."""
    return [
        each
        for each in text
        if each not in "\n\t\u200c\u200d" and unicodedata.category(each) in ("Cc", "Cf", "Cs", "Zl", "Zp")
    ]


@pytest.fixture
def odd(lake: Catalog) -> Table:
    """A table with such characters wherever there is text."""
    column, part = f"id{ODD}", f"part{ODD}"
    field = pa.field(f"inner{ODD}", pa.string())
    schema = pa.schema(
        [
            pa.field(column, pa.int64(), metadata={"PARQUET:field_id": "1", "doc": f"comment{ODD}"}),
            pa.field(part, pa.string(), metadata={"PARQUET:field_id": "2"}),
            pa.field(
                "nested",
                pa.struct([field.with_metadata({"PARQUET:field_id": "4"})]),
                metadata={"PARQUET:field_id": "3"},
            ),
        ]
    )
    folder = Path(f"data{ODD}").absolute()
    table = lake.create_table(NAME, schema, properties={f"key{ODD}": f"value{ODD}", "write.data.path": str(folder)})
    with table.update_spec() as spec:
        spec.add_field(part, "identity", f"field{ODD}")
    with table.update_sort_order() as order:
        order.asc(part, "identity")
    rows = [{column: 1, part: f"p{ODD}", "nested": {f"inner{ODD}": ODD}}, {column: 2, part: None, "nested": None}]
    for row in rows:
        table.append(pa.Table.from_pylist([row], schema), snapshot_properties={f"note{ODD}": ODD})
    table.manage_snapshots().create_tag(table.snapshots()[0].snapshot_id, "end").commit()
    table.manage_snapshots().create_branch(table.snapshots()[0].snapshot_id, f"branch{ODD}").commit()
    return table


def commands() -> tuple[list[list[str]], list[list[str]]]:
    """Commands as words, and those of which most fail."""
    lines = [[NAME if word == "db.t" else word for word in line.split()] for line in SHOWN.strip().splitlines()]
    missing = [[line[0], f"{NAME}x", *line[2:]] for line in lines if line[1:2] == [NAME]]
    odd_arguments = [
        ["properties", "get", "table", NAME, f"none{ODD}"],
        ["properties", "set", "table", NAME, f"other{ODD}", ODD],
        ["branch", "create", NAME, f"another{ODD}"],
        ["branch", "remove", NAME, f"none{ODD}"],
        ["scan", NAME, "--filter", f"none{ODD} = 1"],
        ["files", NAME, "--history"],
        ["list", f"none{ODD}"],
        ["create", "table", NAME, "--column", "id:long"],
        ["rename", NAME, f"db.{ODD}"],
        ["register", NAME, f"/none/{ODD}.json"],
        ["rewrite-table-path", NAME, "--source-prefix", ODD, "--target-prefix", f"/x{ODD}"],
        ["remove-orphan-files", NAME, "--location", f"/none/{ODD}"],
        ["upgrade", NAME, "--to", "3"],
        ["rotate-keys", NAME],
        ["report", NAME, f"--{ODD}"],
        [f"comand{ODD}"],
    ]
    return lines, [*missing, *odd_arguments]


def test_no_command_shows_what_a_terminal_obeys(run: Run, on_terminal: Any, odd: Table) -> None:
    Path("more.csv").write_text(f'"id{ODD}"\n4\n', newline="")
    (Path(odd.location()) / f"orphan{ODD}").write_text("")
    met, (lines, failing) = set[str](), commands()
    for words in (*lines, *failing):
        piped = () if words in failing else (run(*words), run(*words, "--output", "json"))
        for said in (on_terminal(100, *words), *piped):
            assert not obeyed(said.out), words
            assert not obeyed(said.err), words
            if said.code == 0:
                met.add(words[0])
    assert "\\x1b]0;x" in run("spec", NAME).out and "\\u202e" in run("location", NAME).out
    asked = COMMANDS.keys() - ELSEWHERE
    assert not asked - met, "these never succeeded"


def test_json_tells_the_very_characters(run: Run, odd: Table) -> None:
    described = run("describe", NAME, "--output", "json").json
    assert described["identifier"] == NAME.split(".")
    assert described["metadata"]["properties"][f"key{ODD}"] == f"value{ODD}"
    (row,) = (each for each in run("scan", NAME, "--output", "json").json if each[f"id{ODD}"] == 1)
    assert row[f"part{ODD}"] == f"p{ODD}" and row["nested"] == {f"inner{ODD}": ODD}
    for form in ("csv", "jsonl"):
        run("scan", NAME, "--to", f"rows.{form}")
    assert ODD in Path("rows.csv").read_bytes().decode()
    assert json.loads(Path("rows.jsonl").read_text().splitlines()[0]).keys() == row.keys()


def test_what_python_and_notebooks_show_of_a_table_is_not_obeyed(odd: Table, lake: Catalog) -> None:
    schema, spec, order = odd.schema(), odd.spec(), odd.sort_order()
    scan = odd.scan(EqualTo(f"part{ODD}", ODD))
    snapshot = odd.current_snapshot()
    shown = [
        lake,
        odd,
        schema,
        spec,
        order,
        snapshot,
        scan,
        *odd.scan().plan_files(),
        odd.metadata,
        *odd.refs().values(),
    ]
    for each in (*shown, *schema.fields, *spec.fields, *order.fields, Schema(NestedField(1, ODD, LongType()))):
        assert not obeyed(repr(each)) and not obeyed(str(each)), type(each)
    assert not obeyed(str(StructType(NestedField(1, ODD, LongType()))))
    for each in (lake, odd, schema, spec, snapshot, scan):
        assert not obeyed(each._repr_html_()) and "\\u202e" in each._repr_html_()


def test_a_report_does_not_turn_what_it_shows_round(run: Run, odd: Table) -> None:
    assert run("report", NAME, "--to", "page.html", "--title", ODD).code == 0
    assert not obeyed(Path("page.html").read_text()) and "\\u202e" in Path("page.html").read_text()
    assert not obeyed(html_page(ODD, 0, (), (Failure(ODD, f"{ODD}<b>"),)))


def test_an_error_tells_a_name_without_its_effect() -> None:
    error = NoSuchTableError(f"No table {NAME}\nLook for it")
    assert str(error) == "No table db.t\\u202e\\u2028\\u200f\nLook for it"


def test_a_record_is_one_line_of_the_log_and_its_traceback_is_below_it() -> None:
    try:
        raise ValueError(ODD)
    except ValueError as error:
        thrown = (type(error), error, error.__traceback__)
    record = logging.LogRecord("log", logging.INFO, "x", 1, "%s is gone", (f"{ODD}\n2026 forged",), thrown)
    lines = PrintableFormatter("%(levelname)s %(message)s").format(record).split("\n")
    assert lines[0].startswith("INFO \\x1b") and lines[0].endswith("\\n2026 forged is gone")
    assert lines[1].startswith("Traceback") and not obeyed("\n".join(lines))


@pytest.mark.parametrize("text", ["", "plain ☃ Köln", JOINED, "表\u3000格"])
def test_text_that_does_nothing_is_left_as_it_is(text: str) -> None:
    assert printable(text) == printable_lines(text) == printable_html(text) == text
    assert printable_json(json.dumps(text, ensure_ascii=False)) == json.dumps(text, ensure_ascii=False)


def test_every_character_that_is_obeyed_is_shown_and_json_is_the_same_value() -> None:
    for code in (*range(0x3001), *range(0xD800, 0xE000), *range(0xFE00, 0x10000), *range(0xE0000, 0xE0080)):
        character = chr(code)
        if re.fullmatch("[\u0600-\u0605\u06dd\u070f\u0890\u0891\u08e2\xad\U000110bd-\U0001d17a]", character):
            continue  # of scripts, and of music
        if obeyed(character):
            assert not obeyed(printable(character)) and not obeyed(printable_lines(character)), hex(code)
            told = json.dumps(character, ensure_ascii=False)
            assert json.loads(printable_json(told)) == character and not obeyed(printable_json(told))
    assert printable("a\nb\tc") == "a\\nb\\tc" and printable_lines("a\nb\tc") == "a\nb\tc"


def test_commands_print_by_one_function() -> None:
    printing = re.compile(r"click\.(?:echo|secho|prompt|confirm)\(|(?<![\w.])print\(|sys\.std(?:out|err)\.write\(")
    files = sorted(Path(hms_iceberg.cli.__file__).parent.rglob("*.py"))
    lines = [(file.name, line) for file in files for line in file.read_text().splitlines() if printing.search(line)]
    assert [line for name, line in lines if name != "output.py" and "json.dumps(" not in line] == []
