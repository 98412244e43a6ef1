"""Tables that were damaged and repaired, read by Apache Iceberg (Java)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hms_iceberg.catalog import Catalog
from hms_iceberg.maintenance import check_table
from hms_iceberg.maintenance.repair import repair_table
from hms_iceberg.spec.manifests.manifest import ManifestContent
from hms_iceberg.table import Table

pytestmark = [pytest.mark.interop, pytest.mark.slow]


def _lists(table: Table) -> list[str]:
    return [str(snapshot.manifest_list) for snapshot in table.snapshots()]


def _data_manifests(table: Table) -> list[str]:
    snapshot = table.current_snapshot()
    assert snapshot is not None
    manifests = snapshot.manifests(table.io)
    return [each.manifest_path for each in manifests if each.content is ManifestContent.DATA][:1]


def _data_file(table: Table) -> list[str]:
    return [next(iter(table.scan("id = 7").plan_files())).file.file_path]


def _delete_manifest(table: Table) -> list[str]:
    snapshot = table.current_snapshot()
    assert snapshot is not None
    manifests = snapshot.manifests(table.io)
    return [each.manifest_path for each in manifests if each.content is ManifestContent.DELETES][:1]


def _metadata(table: Table) -> list[str]:
    return [table.metadata_location]


def _delete_files(table: Table) -> list[str]:
    return sorted(set(table.inspect.delete_files()["file_path"].to_pylist()))


def _equality_delete(table: Table) -> list[str]:
    before = _delete_files(table)
    table.new_row_delta().delete_equal(pa.table({"id": [3]}), ["id"]).commit()
    return [each for each in _delete_files(table) if each not in before]


def _file_twice(table: Table) -> list[str]:
    (file,) = [task.file for task in table.scan("id = 7").plan_files()]
    with table.new_fast_append() as append:
        append.append_file(replace(file, first_row_id=None))
    return []


SAFE = [_lists, _data_manifests, _delete_manifest, _file_twice]
LEFT = [[2, "b"], [3, None], [4, "d"], [6, "f"], [7, "g"]]
# What is left where something is lost.
LOSSES: dict[Any, list[list[Any]]] = {
    _metadata: LEFT[:-1],
    _data_file: LEFT[:-1],
    _delete_files: [[1, "a"], *LEFT[:3], [5, "e"], *LEFT[3:]],
    _equality_delete: LEFT,
}


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("harm", [*SAFE, *LOSSES], ids=lambda each: each.__name__.strip("_"))
def test_java_reads_and_changes_what_was_repaired(
    harm: Any, version: int, iceberg_java: Any, catalog: Catalog, namespace: str
) -> None:
    name = f"{namespace}.t"
    rows = pa.table({"id": [1, 2, 3, 4], "s": ["a", "b", None, "d"]})
    properties = {"format-version": str(version), "write.delete.mode": "merge-on-read"}
    table = catalog.create_table(name, rows.schema, properties=properties)
    table.append(rows)
    table.append(pa.table({"id": [5, 6], "s": ["e", "f"]}))
    table.delete("id in (1, 5)")
    table.append(pa.table({"id": [7], "s": ["g"]}))
    lost = harm(table)
    for location in lost:
        Path(location.removeprefix("file:")).unlink()
    result = repair_table(catalog, (namespace, "t"), dry_run=False, accept_loss=harm in LOSSES)
    assert result.plan.steps and not result.plan.refused

    left = LOSSES.get(harm, LEFT)
    assert sorted(iceberg_java.sql(f"select * from ice.{name}")) == left
    repaired = catalog.load_table(name)
    for snapshot in table.snapshots()[: 2 if harm is _delete_files else 3]:  # the third still names those
        (counted,) = iceberg_java.sql(f"select count(*) from ice.{name} version as of {snapshot.snapshot_id}")
        assert counted == [repaired.scan(snapshot_id=snapshot.snapshot_id).count()]
    iceberg_java.sql(f"insert into ice.{name} values (8, 'h')")
    iceberg_java.sql(f"delete from ice.{name} where id = 2")
    iceberg_java.sql(f"call ice.system.rewrite_manifests('{name}')")
    assert sorted(iceberg_java.sql(f"select * from ice.{name}")) == [*(row for row in left if row[0] != 2), [8, "h"]]
    if harm in SAFE:
        assert check_table(catalog.load_table(name)).findings == ()
