"""An erasure beside tables that share its files names them and does nothing; it gives up a way back if asked."""

from __future__ import annotations

import datetime as dt

import pyarrow as pa
import pytest

from hms_iceberg.catalog import Catalog
from hms_iceberg.errors import UnsupportedError
from hms_iceberg.hms.rows.all_rows import HiveTableRows
from hms_iceberg.maintenance import check_table, resume_forget
from hms_iceberg.maintenance.doctor.metastore_health import examine_erasures
from hms_iceberg.migration import migrate
from hms_iceberg.table import Table
from hms_iceberg.table.needed_files.needed_by_others import table_rows_of
from tests.support.erasure_histories import PERSON, left_of
from tests.support.hdfs_path import local_path
from tests.support.hive_warehouse import HiveWarehouse
from tests.support.operations import SCHEMA, rows

NOW = dt.timedelta(0)


@pytest.fixture
def table(catalog: Catalog, namespace: str) -> Table:
    table = catalog.create_table(f"{namespace}.t", SCHEMA)
    table.append(rows(1, 2))
    table.append(rows(3))
    return table


def test_a_table_that_was_registered_from_the_same_metadata_is_named(
    table: Table, catalog: Catalog, namespace: str
) -> None:
    catalog.register_table(f"{namespace}.copy", table.metadata_location)
    assert f"nothing can be done, as the files are needed by table {namespace}.copy, a copy" in str(
        table.forget("id = 2").plan
    )
    with pytest.raises(UnsupportedError, match=rf"table {namespace}\.copy, a copy"):
        table.forget("id = 2", dry_run=False, after=NOW)
    catalog.drop_table(f"{namespace}.copy")
    table.forget("id = 2", dry_run=False, after=NOW)
    assert sorted(table.refresh().scan().to_arrow()["id"].to_pylist()) == [1, 3]


def test_a_table_elsewhere_that_names_a_file_with_such_rows_is_named(
    table: Table, catalog: Catalog, namespace: str
) -> None:
    other = catalog.create_table(f"{namespace}.other", SCHEMA)
    (file,) = (each.file for each in table.scan("id = 2").plan_files())
    other.new_fast_append().append_file(file).commit()
    before = table.metadata_location
    with pytest.raises(UnsupportedError, match=rf"needed by table {namespace}\.other\. "):
        table.forget("id = 2", dry_run=False, after=NOW)
    assert table.refresh().metadata_location == before
    table.forget("id = 3", dry_run=False, after=NOW)
    assert sorted(other.refresh().scan().to_arrow()["id"].to_pylist()) == [1, 2]


def test_a_copy_that_is_registered_while_files_wait_keeps_them(table: Table, catalog: Catalog, namespace: str) -> None:
    before = table.metadata_location
    table.forget("id = 2", dry_run=False)
    copy = catalog.register_table(f"{namespace}.copy", before)
    with pytest.raises(UnsupportedError, match="a copy"):
        resume_forget(table, now=True)
    assert sorted(copy.scan().to_arrow()["id"].to_pylist()) == [1, 2, 3]
    catalog.drop_table(f"{namespace}.copy")
    rows_now = table_rows_of(catalog.metastore)
    assert isinstance(rows_now, HiveTableRows)
    (told,) = (each for each in examine_erasures(rows_now.rows()) if namespace in each.subject)
    assert told.remedy == f"When they are due, delete them: hms-iceberg forget {namespace}.t --resume"
    result = resume_forget(table, now=True)
    assert result is not None and result.report is not None
    assert not any(namespace in each.subject for each in examine_erasures(rows_now.rows()))


def test_the_hive_table_of_before_a_migration_is_given_up_only_if_asked(catalog: Catalog, namespace: str) -> None:
    warehouse = HiveWarehouse(catalog, namespace)
    warehouse.create("visits", "id int, name string", "who string")
    for who, ids in ((PERSON, (1, 2)), ("other", (3, 4))):
        names = [PERSON if number == 3 else who for number in ids]
        warehouse.add_partition("visits", [who], pa.table({"id": pa.array(ids, pa.int32()), "name": names}))
    migrate(catalog, (namespace, "visits"))
    table = catalog.load_table(f"{namespace}.visits")
    where = f"name = '{PERSON}'"
    with pytest.raises(UnsupportedError, match=r"the Hive table .*visits_backup_, its way back from the migration"):
        table.forget(where, dry_run=False, after=NOW)
    table.forget(where, dry_run=False, after=NOW, give_up_backup=True)
    assert table.refresh().scan().to_arrow()["id"].to_pylist() == [4]
    assert left_of(PERSON, local_path(table.location())) == []
    assert not check_table(table).findings
