"""Tables that were damaged and repaired, read by Apache Iceberg (Java)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hms_iceberg.catalog import Catalog
from hms_iceberg.maintenance import check_table
from hms_iceberg.maintenance.repair import repair_table
from hms_iceberg.spec.manifests.manifest_values import ManifestContent
from hms_iceberg.table import Table
from tests.support.file_damages import DAMAGES
from tests.support.hdfs_path import local_path
from tests.support.spread import ALL

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
    table.new_row_delta().delete_equal(pa.table({"id": [3] if table.name()[-1] == "t" else [2, 3]}), ["id"]).commit()
    return [each for each in _delete_files(table) if each not in before]


def _file_twice(table: Table) -> list[str]:
    file = next(iter(table.scan("id = 7").plan_files())).file
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


HARMS = [*SAFE, *LOSSES]
# Every other harm with one damage, by turns; with HMS_ICEBERG_TESTS=all with every one.
CELLS = [
    (harm, damage, version)
    for number, harm in enumerate(HARMS)
    for version in (2, 3)
    for turn, damage in enumerate(DAMAGES)
    if (turn == number % 4 and number % 2 == 0 and version == 2 + number // 2 % 2) or (ALL and harm is not _file_twice)
]


def harmed_files(
    catalog: Catalog, name: str, version: int, harm: Any, others: Sequence[int] = ()
) -> tuple[Table, list[Path]]:
    """A table, and its files that are to be harmed; with other rows beside, so that each file has more of them."""
    properties = {"format-version": str(version), "write.delete.mode": "merge-on-read"}
    table = catalog.create_table(name, pa.schema([("id", pa.int64()), ("s", pa.string())]), properties=properties)
    for ids in ([1, 2, 3, 4, *others], [5, 6, *others]):
        table.append(pa.table({"id": ids, "s": [None if each == 3 else "_abcdefg"[each % 8] for each in ids]}))
    table.delete(f"id in ({', '.join(map(str, [1, 5, *others[:1]]))})")
    table.append(pa.table({"id": [7, *others], "s": ["g", *("other" for _ in others)]}))
    return table, [local_path(location) for location in harm(table)]


@pytest.mark.parametrize(
    ("harm", "damage", "version"), CELLS, ids=lambda each: getattr(each, "__name__", f"v{each}").strip("_")
)
def test_java_reads_and_changes_what_was_repaired(
    harm: Any, damage: Any, version: int, iceberg_java: Any, catalog: Catalog, namespace: str
) -> None:
    name = f"{namespace}.t"
    table, harmed = harmed_files(catalog, name, version, harm)
    _, others = harmed_files(catalog, f"{namespace}.other", version, harm, others=(81, 82))
    for path, other in zip(harmed, others, strict=True):
        damage(path, other)
    result = repair_table(catalog, (namespace, "t"), dry_run=False, accept_loss=harm in LOSSES, record_counts=True)
    assert result.plan.steps and not result.plan.refused

    left, repaired = LOSSES.get(harm, LEFT), catalog.load_table(name)
    if harm is _delete_files and version == 3:  # of two vectors in one file, one may be whole
        found = repaired.scan().to_arrow()["id"].to_pylist()
        assert {1, 5} & set(found)
        left = [row for row in left if row in LEFT or row[0] in found]
    assert sorted(iceberg_java.sql(f"select * from ice.{name}")) == left
    for snapshot in table.snapshots()[: 2 if harm is _delete_files else 3]:  # the third still names those
        (counted,) = iceberg_java.sql(f"select count(*) from ice.{name} version as of {snapshot.snapshot_id}")
        assert counted == [repaired.scan(snapshot_id=snapshot.snapshot_id).count()]
    iceberg_java.sql(f"insert into ice.{name} values (8, 'h')")
    iceberg_java.sql(f"delete from ice.{name} where id = 2")
    iceberg_java.sql(f"call ice.system.rewrite_manifests('{name}')")
    assert sorted(iceberg_java.sql(f"select * from ice.{name}")) == [*(row for row in left if row[0] != 2), [8, "h"]]
    if harm in SAFE:
        assert check_table(catalog.load_table(name)).findings == ()
