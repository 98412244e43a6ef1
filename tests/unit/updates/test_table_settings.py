"""Properties, sort orders and statistics: what is refused, what commutes, and what changes nothing."""

from __future__ import annotations

from typing import Any

import pytest

from hms_iceberg.errors import CommitConflictError, ConfigurationError, InvalidInputError, UnknownColumnError
from hms_iceberg.spec.data_types import LongType
from hms_iceberg.spec.snapshots_and_refs import PartitionStatisticsFile, StatisticsFile
from hms_iceberg.spec.sort_orders import NullOrder, SortDirection
from hms_iceberg.spec.transforms.partition_transforms import BucketTransform
from hms_iceberg.updates.machinery.update import Update
from hms_iceberg.updates.schema.schema_changes import AddColumn, DeleteColumn, UpdateColumn
from hms_iceberg.updates.schema.schema_update import SchemaUpdate
from hms_iceberg.updates.table_settings import (
    RemoveStatistics,
    ReplaceSortOrder,
    RotateKeys,
    SetLocation,
    SetProperties,
    SetStatistics,
    SortKey,
)
from tests.support.tables import World, data_file


@pytest.fixture
def world() -> World:
    return World.with_table()


@pytest.mark.parametrize(
    ("updates", "removals", "said"),
    [
        ({"a": "1", "b": "2"}, {"b", "c"}, r"both set and remove the table properties \['b'\]"),
        ({"commit.retry.num-retries": "three"}, set(), "commit.retry.num-retries"),
        ({}, {1}, r"Cannot remove table properties: expected names, got \[1\]"),
    ],
)
def test_properties_that_make_no_sense_are_refused_at_once(
    updates: dict[str, Any], removals: set[Any], said: str
) -> None:
    with pytest.raises((InvalidInputError, ConfigurationError), match=said):
        SetProperties(updates, frozenset(removals))


@pytest.mark.parametrize(
    ("mine", "theirs", "said"),
    [
        (SetProperties({"a": "1"}), SetProperties({"a": "2"}), "set to '1' the property 'a'.*it was 'x'.*made it '2'"),
        (SetProperties({"a": "1"}), SetProperties({"a": "1"}), None),
        (SetProperties({"a": "1"}), SetProperties({}, frozenset({"a"})), "set to '1' the property 'a'.*made it None"),
        (SetProperties({}, frozenset({"a"})), SetProperties({"a": "2"}), "remove the property 'a'.*made it '2'"),
        (SetProperties({}, frozenset({"a"})), SetProperties({}, frozenset({"a"})), None),
        (SetProperties({"format-version": "3"}), SetProperties({"format-version": "3"}), None),
        (SetProperties({"format-version": "3", "a": "1"}), SetProperties({"a": "2"}), "property 'a'"),
        (SetLocation("mem://b"), SetLocation("mem://b"), None),
        (SetLocation("mem://b"), SetLocation("mem://c"), "to mem://b: a concurrent commit set it to mem://c"),
        (ReplaceSortOrder((SortKey("id"),)), ReplaceSortOrder((SortKey("id"),)), None),
        (
            ReplaceSortOrder((SortKey("id"),)),
            ReplaceSortOrder((SortKey("city"),)),
            "(?s)it was .*made it",
        ),
        (ReplaceSortOrder((SortKey("id"),)), SetProperties({"a": "2"}), None),
        (ReplaceSortOrder((SortKey("amount"),)), SchemaUpdate((DeleteColumn(("amount",)),)), "amount.*dropped it"),
        (
            ReplaceSortOrder((SortKey("amount"),)),
            SchemaUpdate((UpdateColumn(("amount",), LongType()),)),
            "amount.*made it .*long",
        ),
        (ReplaceSortOrder((SortKey("id"),)), SchemaUpdate((DeleteColumn(("amount",)),)), None),
    ],
)
def test_changes_of_one_setting_to_two_things_are_a_conflict_that_names_both(
    world: World, mine: Update, theirs: Update, said: str | None
) -> None:
    world.commit(SetProperties({"a": "x"}))
    transaction = world.begin(mine)
    world.commit(theirs)
    if said is None:
        transaction.commit()
    else:
        with pytest.raises(CommitConflictError, match=f"{said}.*Refresh"):
            transaction.commit()


def test_a_sort_order_has_the_keys_that_were_asked_for_and_the_same_again_is_no_change(world: World) -> None:
    keys = (SortKey("ID", BucketTransform(4), SortDirection.DESC, NullOrder.NULLS_LAST), SortKey("City"))
    with pytest.raises(UnknownColumnError):
        world.commit(ReplaceSortOrder(keys))
    order = world.commit(ReplaceSortOrder(keys, case_sensitive=False)).sort_order()
    told = [(each.source_id, str(each.transform), each.direction.value, each.null_order.value) for each in order.fields]
    assert told == [(1, "bucket[4]", "desc", "nulls-last"), (2, "identity", "asc", "nulls-first")]
    location = world.version().location
    made = world.version().metadata
    assert ReplaceSortOrder(keys, case_sensitive=False).apply(made, world.begin().workspace) is made
    world.commit(ReplaceSortOrder(keys, case_sensitive=False))
    assert world.version().location == location
    assert world.commit(ReplaceSortOrder()).sort_order().is_unsorted


def test_a_sort_order_by_a_column_of_the_same_transaction_is_replayed(world: World) -> None:
    transaction = world.begin(SchemaUpdate((AddColumn(("new",), LongType()),)), ReplaceSortOrder((SortKey("new"),)))
    world.append(data_file())
    assert len(transaction.commit().metadata.sort_order().fields) == 1


def test_statistics_of_a_snapshot_and_of_its_partitions_are_removed_each_by_itself(world: World) -> None:
    snapshot_id = world.append(data_file()).current_snapshot_id
    assert snapshot_id is not None
    whole, parts = StatisticsFile(snapshot_id, "mem://a", 10, 5), PartitionStatisticsFile(snapshot_id, "mem://b", 10)
    world.commit(SetStatistics(whole), SetStatistics(parts))
    made = world.commit(RemoveStatistics(snapshot_id, of_partitions=True))
    assert (len(made.statistics), len(made.partition_statistics)) == (1, 0)
    world.commit(SetStatistics(parts))
    made = world.commit(RemoveStatistics(snapshot_id))
    assert (len(made.statistics), len(made.partition_statistics)) == (0, 1)


def test_keys_of_a_table_that_is_not_encrypted_are_not_rotated(world: World) -> None:
    with pytest.raises(InvalidInputError, match="it is not encrypted"):
        world.commit(RotateKeys())
