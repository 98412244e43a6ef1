"""Every operation on every format version, read by Apache Iceberg (Java), which then goes on with the table.

The tables of a version are made first and read together, since a statement of Spark costs about a second. Java goes on
with the newest version of every other operation, other ones for every commit; with all of them where
``HMS_ICEBERG_INTEROP_MATRIX`` is set, which names a file for the results as a Markdown table.
"""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hms_iceberg.catalog import Catalog
from hms_iceberg.maintenance import check_table
from hms_iceberg.table import Table
from tests.support.operations import BY_CITY, OPERATIONS, SCHEMA, begin, rows
from tests.support.spread import ALL, SEED

pytestmark = [pytest.mark.interop, pytest.mark.slow]

LINEAGE = ("_row_id", "_last_updated_sequence_number")
JSON = "to_json(struct({}), map('ignoreNullFields', 'false'))"
Row = dict[str, Any]
MATRIX = os.environ.get("HMS_ICEBERG_INTEROP_MATRIX")
# Every operation on its newest version, and some on the others; with HMS_ICEBERG_TESTS=all on each.
CASES = [
    (version, name)
    for version in (1, 2, 3)
    for number, (name, each) in enumerate(OPERATIONS.items())
    if version in each.versions and (ALL or MATRIX or version == max(each.versions) or (number + version) % 12 == 0)
]
UNION = 24  # tables in one statement: Spark's planning costs more than in proportion


class JavaView:
    """What Java reads of tables, all of them in one statement for each question."""

    def __init__(self, sql: Callable[[str], list[list[Any]]], tables: dict[str, Table]) -> None:
        self._sql = sql
        self._tables = tables
        self.rows = self._ask(lambda _: JSON.format("*"))
        times = ((key, each.snapshot_id) for key, table in tables.items() for each in table.snapshots())
        self.past = self._union([(f"{key}@{at}", JSON.format("*"), key, f" version as of {at}") for key, at in times])
        with_ids = {key: table for key, table in tables.items() if table.format_version == 3}
        self.lineage = self._ask(lambda each: JSON.format(f"{key_of(each)}, {', '.join(LINEAGE)}"), tables=with_ids)
        self.files = self._ask(lambda _: JSON.format("content, file_path, record_count"), ".files")
        self.snapshots = self._ask(lambda _: JSON.format("snapshot_id, parent_id, operation"), ".snapshots")
        self.refs = self._ask(lambda _: JSON.format("name, snapshot_id"), ".refs")

    def _ask(
        self, what: Callable[[Table], str], suffix: str = "", tables: dict[str, Table] | None = None
    ) -> dict[str, list[Row]]:
        chosen = self._tables if tables is None else tables
        return self._union([(key, what(table), key, suffix) for key, table in chosen.items()])

    def _union(self, parts: list[tuple[str, str, str, str]]) -> dict[str, list[Row]]:
        found: dict[str, list[Row]] = {label: [] for label, *_ in parts}
        selects = [
            f"select '{label}', {what} from {sql_name(self._tables[key])}{suffix}" for label, what, key, suffix in parts
        ]
        for start in range(0, len(selects), UNION):
            for label, row in self._sql(" union all ".join(selects[start : start + UNION])):
                found[label].append(json.loads(row))
        return found


def sql_name(table: Table) -> str:
    return "ice." + ".".join(table.identifier)


def key_of(table: Table) -> str:
    key = table.schema().find_column_name(1)
    assert key is not None
    return key


def ordered(found: list[Row]) -> list[str]:
    return sorted(json.dumps(row) for row in found)


def of_arrow(found: pa.Table) -> list[str]:
    return ordered(found.to_pylist())


class Matrix:
    """The tables of every version, made when they are first asked for, and how each case ended."""

    def __init__(self, java: Any, catalog: Catalog) -> None:
        self.java = java
        self.catalog = catalog
        self.results: dict[tuple[str, int], str] = {}
        self._made: dict[int, tuple[dict[str, Table], dict[str, Exception], JavaView]] = {}

    def case(self, name: str, version: int, wanted: list[str]) -> tuple[Table, JavaView]:
        """The table that an operation left."""
        if version not in self._made:
            self._made[version] = self._make(version, wanted)
        tables, errors, view = self._made[version]
        if name in errors:
            raise errors[name]
        return tables[name], view

    def _make(self, version: int, wanted: list[str]) -> tuple[dict[str, Table], dict[str, Exception], JavaView]:
        namespace = f"operations_v{version}_{uuid.uuid4().hex[:8]}"
        self.catalog.create_namespace(namespace)
        tables, errors = {}, {}
        for name in wanted:
            operation = OPERATIONS[name]
            properties = {"format-version": str(version), **operation.properties}
            table = self.catalog.create_table((namespace, name), SCHEMA, partition_spec=BY_CITY, properties=properties)
            try:
                begin(table)
                operation.run(table)
                tables[name] = table.refresh()
            except Exception as error:  # the test of the operation fails with it
                errors[name] = error
        return tables, errors, JavaView(self.java.sql, tables)

    def as_markdown(self) -> str:
        """The results: operation by version."""
        lines = ["| operation | v1 | v2 | v3 |", "|---|---|---|---|"]
        for name, operation in OPERATIONS.items():
            cells = (
                self.results.get((name, version), "not run") if version in operation.versions else "does not apply"
                for version in (1, 2, 3)
            )
            lines.append(f"| {name.replace('_', ' ')} | {' | '.join(cells)} |")
        return "\n".join(lines) + "\n"


@pytest.fixture(scope="module")
def matrix(iceberg_java: Any, catalog: Catalog) -> Iterator[Matrix]:
    found = Matrix(iceberg_java, catalog)
    yield found
    if MATRIX:
        Path(MATRIX).write_text(found.as_markdown())


def java_goes_on(matrix: Matrix, table: Table, left: list[Row]) -> None:
    """Java deletes a row and inserts one; what it leaves is right, and keeps what it need not change."""
    key = key_of(table)
    others = [column for column in table.schema().column_names if column not in (key, "city")]
    columns = ", ".join([key, "city", *others])
    matrix.java.sql(
        f"merge into {sql_name(table)} t using (select 1L as k union all select 999L as k) s on t.{key} = s.k "
        f"when matched then delete "
        f"when not matched and s.k = 999 then insert ({columns}) values (s.k, 'Java'{', null' * len(others)})"
    )
    expected = [row for row in left if row[key] != 1]
    found = matrix.catalog.load_table(table.identifier)
    empty = dict.fromkeys(table.schema().column_names)
    assert of_arrow(found.scan().to_arrow()) == ordered([*expected, {**empty, key: 999, "city": "Java"}])
    assert check_table(found, record_counts=True).findings == ()
    assert found.metadata.statistics == table.metadata.statistics
    assert found.metadata.partition_statistics == table.metadata.partition_statistics


@pytest.mark.parametrize(("version", "name"), CASES)
def test_java_reads_and_continues_what_an_operation_left(
    matrix: Matrix, request: pytest.FixtureRequest, name: str, version: int
) -> None:
    here = [
        item.callspec
        for item in request.session.items
        if getattr(item, "originalname", "") == request.node.originalname
    ]
    wanted = [each.params["name"] for each in here if each.params["version"] == version]
    matrix.results[name, version] = "FAILED"
    table, java = matrix.case(name, version, wanted)

    left = table.scan().to_arrow()
    assert ordered(java.rows[name]) == of_arrow(left)
    for snapshot in table.snapshots():
        past = table.scan(snapshot_id=snapshot.snapshot_id).to_arrow()
        assert ordered(java.past[f"{name}@{snapshot.snapshot_id}"]) == of_arrow(past)
    key = key_of(table)
    if table.format_version == 3 and OPERATIONS[name].java_lineage:
        assert ordered(java.lineage[name]) == of_arrow(table.scan().select(key, *LINEAGE).to_arrow())
    files = table.inspect.files().select(["content", "file_path", "record_count"])
    assert ordered(java.files[name]) == of_arrow(files)
    snapshots = table.inspect.snapshots().select(["snapshot_id", "parent_id", "operation"])
    assert ordered(java.snapshots[name]) == of_arrow(snapshots)
    assert ordered(java.refs[name]) == ordered(
        [{"name": ref, "snapshot_id": each.snapshot_id} for ref, each in table.refs().items()]
    )

    if MATRIX or (version == max(OPERATIONS[name].versions) and (ALL or list(OPERATIONS).index(name) % 2 == SEED % 2)):
        java_goes_on(matrix, table, left.to_pylist())
    matrix.results[name, version] = "passed"


@pytest.mark.parametrize("version", [1, 2, 3])
def test_java_reads_a_replaced_table_and_its_past(
    iceberg_java: Any, catalog: Catalog, namespace: str, version: int
) -> None:
    table = catalog.create_table((namespace, "events"), SCHEMA, properties={"format-version": str(version)})
    table.append(rows(1, 2))
    (old,) = table.snapshots()
    other = pa.schema([("city", pa.string()), ("score", pa.float64())])
    transaction = catalog.replace_table_transaction((namespace, "events"), other)
    transaction.append(pa.table({"city": ["Ulm"], "score": [1.5]}, schema=other))
    transaction.commit_transaction()
    name = f"ice.{namespace}.events"
    assert iceberg_java.sql(f"select * from {name}") == [["Ulm", 1.5]]
    past = iceberg_java.sql(f"select * from {name} version as of {old.snapshot_id} order by id")
    assert past == [[1, "Bonn", 2], [2, "Bonn", 4]]
