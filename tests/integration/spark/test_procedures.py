"""`CALL catalog.system.…`: arguments, results and effects of the procedures."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from hms_iceberg.catalog import Catalog
from tests.support.spark_tables import Rows, rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from hms_iceberg.table import Table

pytestmark = pytest.mark.spark

ROWS = Rows({"id": pa.int64(), "s": pa.string()})


@pytest.fixture
def table(catalog: Catalog, namespace: str) -> Table:
    """Three snapshots that append a row each."""
    table = catalog.create_table(f"{namespace}.t", ROWS.schema)
    for number in (1, 2, 3):
        table.append(ROWS([(number, "abc"[number - 1])]))
    return table


def ids(table: Table) -> list[int]:
    return [snapshot.snapshot_id for snapshot in table.refresh().metadata.snapshots]


def test_main_moves_and_the_result_says_from_where_to_where(ice: SparkSession, table: Table, namespace: str) -> None:
    name, (first, second, third) = f"{namespace}.t", ids(table)
    moved = ice.sql(f"call spark_catalog.system.rollback_to_snapshot('{name}', {second})")
    assert [tuple(row) for row in moved.collect()] == [(third, second)]
    assert [(each.name, each.dataType.simpleString(), each.nullable) for each in moved.schema] == [
        ("previous_snapshot_id", "bigint", False),
        ("current_snapshot_id", "bigint", False),
    ]
    assert table.refresh().metadata.current_snapshot_id == second  # once, however often its result is looked at
    by_name = f"call ice.SYSTEM.Set_Current_Snapshot(snapshot_id => {third}, table => 'ice.{name}')"
    assert rows_of(ice, by_name) == [(second, third)]
    moment = dt.datetime.fromtimestamp(table.snapshot_by_id(third).timestamp_ms / 1000, dt.timezone.utc)
    at = f"call system.rollback_to_timestamp(table => '{name}', timestamp => timestamp '{moment:%F %T.%f}')"
    assert rows_of(ice, at) == [(third, second)]
    in_tokyo = {"spark.sql.timestampType": "TIMESTAMP_NTZ", "spark.sql.session.timeZone": "Asia/Tokyo"}
    for key, value in in_tokyo.items():
        ice.conf.set(key, value)
    too_early = moment + dt.timedelta(hours=8)  # by the clock of Tokyo, one hour before the snapshot
    with pytest.raises(Exception, match="has no snapshot before"):
        ice.sql(f"call system.rollback_to_timestamp('{name}', timestamp '{too_early:%F %T}')")
    ice.conf.unset("spark.sql.timestampType")
    ice.conf.set("spark.sql.session.timeZone", "UTC")
    table.refresh().manage_snapshots().create_tag(first, "v1").commit()
    assert rows_of(ice, f"call system.set_current_snapshot(table => '{name}', ref => 'v1')") == [(second, first)]
    assert rows_of(ice, f"call system.ancestors_of('{name}')") == [(first, table.snapshot_by_id(first).timestamp_ms)]
    assert [row[0] for row in ice.sql(f"call system.ancestors_of('`{namespace}`.t', {third})").collect()] == [
        third,
        second,
        first,
    ]
    ice.sql(f"use {namespace}")
    try:
        assert ice.sql("call system.ancestors_of('t')").count() == 1
    finally:
        ice.sql("use spark_catalog.default")


def test_staged_changes_and_branches_are_published(ice: SparkSession, table: Table, namespace: str) -> None:
    name = f"{namespace}.t"
    table.manage_snapshots().create_branch(ids(table)[-1], "audit").commit()
    table.append(ROWS([(4, "d")]), branch="audit")
    before, after = table.metadata.current_snapshot_id, table.metadata.refs["audit"].snapshot_id
    assert rows_of(ice, f"call system.fast_forward('{name}', 'main', 'audit')") == [("main", before, after)]
    assert rows_of(ice, f"call system.fast_forward('{name}', 'fresh', 'audit')") == [("fresh", None, after)]
    table.refresh().set_properties({"write.wap.enabled": "true"})
    table.append(ROWS([(5, "e")]), snapshot_properties={"wap.id": "w5"})
    table.append(ROWS([(6, "f")]), snapshot_properties={"wap.id": "w6"})
    fifth, sixth = ids(table)[-2:]
    (published,) = rows_of(ice, f"call system.publish_changes(wap_id => 'w5', table => '{name}')")
    assert published == (fifth, table.refresh().metadata.current_snapshot_id)
    (picked,) = rows_of(ice, f"call ice.system.cherrypick_snapshot('{name}', {sixth})")
    assert picked == (sixth, table.refresh().metadata.current_snapshot_id)
    assert rows_of(ice, f"select id from {name}") == [(each,) for each in range(1, 7)]


def test_tables_are_registered_and_cared_for(ice: SparkSession, table: Table, namespace: str) -> None:
    name, (first, second, third) = f"{namespace}.t", ids(table)
    other = f"call system.register_table(table => '{namespace}.u', metadata_file => '{table.metadata_location}')"
    assert rows_of(ice, other) == [(third, 3, 3)]
    assert ice.table(f"{namespace}.u").count() == 3
    assert rows_of(ice, f"call system.rewrite_manifests('{name}')") == [(3, 1)]
    assert rows_of(ice, f"call system.rewrite_manifests(table => '{name}', use_caching => true)") == [(0, 0)]
    table.refresh().delete("id = 1")
    expired = ice.sql(f"call ice.system.expire_snapshots(table => '{name}', snapshot_ids => array({first}, {second}))")
    # The registered table names the manifest lists, too.
    assert [tuple(row) for row in expired.collect()] == [(0, 0, 0, 0, 0, 0)]
    assert rows_of(ice, f"select id from {namespace}.u version as of {first}") == [(1,)]
    assert rows_of(ice, f"select id from {namespace}.u") == [(1,), (2,), (3,)]
    ice.sql(f"drop table {namespace}.u")
    everything = "older_than => timestamp '2999-01-01 00:00:00', retain_last => 1, max_concurrent_deletes => 4"
    table.refresh().update_spec().add_field("s", "identity").commit()
    table.update_spec().remove_field("s").commit()
    table.append(ROWS([(7, "g")]))
    every = f"call system.expire_snapshots(table => '{name}', {everything}, clean_expired_metadata => true)"
    assert rows_of(ice, every) == [(1, 0, 0, 4, 3, 0)]
    assert [spec.spec_id for spec in table.refresh().metadata.partition_specs] == [table.metadata.default_spec_id]
    assert rows_of(ice, f"select id from {name}") == [(2,), (3,), (7,)]


def test_a_view_of_changes_is_read_when_it_is_queried(ice: SparkSession, table: Table, namespace: str) -> None:
    name, (first, _, third) = f"{namespace}.t", ids(table)
    table.delete("id = 2")
    table.upsert(ROWS([(1, "z")]), join_cols=["id"])
    made = ice.sql(f"call ice.system.create_changelog_view('{name}')")
    assert [tuple(row) for row in made.collect()] == [("`t_changes`",)]
    shown = f"select id, s, _change_type, _change_ordinal from {{}} where _commit_snapshot_id <> {first}"
    assert rows_of(ice, shown.format("t_changes")) == [
        (1, "a", "DELETE", 4),
        (1, "z", "INSERT", 4),
        (2, "b", "DELETE", 3),
        (2, "b", "INSERT", 1),
        (3, "c", "INSERT", 2),
    ]
    with_updates = (
        f"call system.create_changelog_view(table => '{name}', changelog_view => 'v', "
        f"identifier_columns => array('id'), options => map('start-snapshot-id', '{third}'))"
    )
    assert rows_of(ice, with_updates) == [("v",)]
    assert rows_of(ice, shown.format("v")) == [
        (1, "a", "UPDATE_BEFORE", 1),
        (1, "z", "UPDATE_AFTER", 1),
        (2, "b", "DELETE", 0),
    ]
    net = f"call system.create_changelog_view(table => '{name}', changelog_view => 'n', net_changes => true)"
    assert rows_of(ice, net) == [("n",)]
    assert rows_of(ice, "select id, s, _change_type from n") == [(1, "z", "INSERT"), (3, "c", "INSERT")]
    milliseconds = table.snapshot_by_id(third).timestamp_ms
    since = f"options => map('start-timestamp', '{milliseconds}', 'end-timestamp', '{milliseconds + 1}')"
    ice.sql(f"call system.create_changelog_view(table => '{name}', changelog_view => 'one', {since})")
    assert rows_of(ice, "select id from one") == []  # Apache Iceberg leaves out the snapshot of that very millisecond
    ice.sql(
        f"call system.create_changelog_view(table => '{name}', changelog_view => 'none', "
        "options => map('start-timestamp', '99999999999999'))"
    )
    assert rows_of(ice, "select id from none") == []


def test_what_is_wrong_is_told_and_changes_nothing(ice: SparkSession, table: Table, namespace: str) -> None:
    from pyspark.errors import PySparkException

    name, (first, *_), before = f"{namespace}.t", ids(table), table.metadata_location
    for call, problem in (
        (f"no_such_procedure('{name}')", "no_such_procedure"),
        (f"rollback_to_snapshot('{name}')", "REQUIRED_PARAMETER_NOT_FOUND.*snapshot_id"),
        (f"rollback_to_snapshot('{name}', 1, 2)", "WRONG_NUM_ARGS"),
        (f"rollback_to_snapshot(table => '{name}', nope => 1)", "UNRECOGNIZED_PARAMETER_NAME"),
        (f"rollback_to_snapshot('{name}', 'abc')", "CAST_INVALID_INPUT"),
        (f"rollback_to_snapshot('{name}', null)", "Parameter 'snapshot_id' is not set"),
        (f"rollback_to_snapshot('', {first})", "Cannot handle an empty identifier"),
        (f"rollback_to_snapshot('a b', {first})", "Cannot parse identifier for parameter 'table'"),
        (f"rollback_to_snapshot('{namespace}.nope', {first})", "NoSuchTableError"),
        (f"rollback_to_snapshot('ice.{name}', {first})", "'ice.*' is a table in catalog 'ice'"),
        (f"rollback_to_snapshot('{name}', 99)", "NoSuchSnapshotError.*99"),
        (f"rollback_to_timestamp('{name}', timestamp '2001-01-01')", "has no snapshot before"),
        (f"set_current_snapshot('{name}')", "Either snapshot_id or ref must be provided, not both"),
        (f"set_current_snapshot(table => '{name}', ref => 'nope')", "Cannot find matching snapshot ID for ref nope"),
        (f"publish_changes('{name}', 'w')", "Cannot apply unknown WAP ID 'w'"),
        (f"fast_forward('{name}', 'main', 'nope')", "NoSuchRefError.*nope"),
        (f"register_table('{name}', '{before}')", "TableAlreadyExistsError"),
        (f"expire_snapshots(table => '{name}', max_concurrent_deletes => 0)", "max_concurrent_deletes should have"),
        (f"expire_snapshots(table => '{name}', retain_last => 0)", "must be at least 1, cannot be: 0"),
        (f"ancestors_of('{name}', 1)", "Cannot find snapshot 1"),
        (f"rewrite_manifests(table => '{name}', spec_id => 5)", "Invalid spec id 5"),
        (f"rewrite_manifests(table => '{name}', sort_by => array('nope'))", "Cannot sort manifests by nope"),
        (f"create_changelog_view(table => '{name}', compute_updates => true)", "nothing identifies a row"),
        (f"create_changelog_view(table => '{name}', options => map('nope', '1'))", "unknown option 'nope'"),
    ):
        with pytest.raises(PySparkException, match=f"(?s){problem}"):
            ice.sql(f"call spark_catalog.system.{call}")
    assert table.refresh().metadata_location == before
    if ice.version >= "4.1":  # 4.0 has no such statement
        assert "rewrite_manifests" in {row.procedure_name for row in ice.sql("show procedures in ice.system").collect()}
