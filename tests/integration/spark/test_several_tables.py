"""Spark sees all of a transaction on several tables or nothing, also through its own client of the metastore."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pyarrow as pa
import pytest

from hms_iceberg.catalog import Catalog, load_catalog
from hms_iceberg.hms.hive_metastore import hive_client
from hms_iceberg.hms.rows.transaction_marks import MARK
from tests.support.commit_operations import find_out_capability
from tests.support.killed_catalog import Killed, KilledAt

ALTER = "alter_table_with_environment_context"
SCHEMA = pa.schema([pa.field("id", pa.int64()), pa.field("amount", pa.int64())])


def rows(number: int, amount: int) -> pa.Table:
    return pa.table({"id": [number], "amount": [amount]}, SCHEMA)


def killed_transfer(catalog: Catalog, names: list[str], number: int | None) -> list[str]:
    """Transfers 30 from the first to the second table, and is killed after a call; the calls that were made."""
    with load_catalog("doomed", **catalog.properties) as doomed:
        find_out_capability(doomed)
        killed = KilledAt(doomed, number)
        with suppress(Killed), doomed.transaction() as transaction:
            transaction.table(names[0]).append(rows(2, -30))
            transaction.table(names[1]).append(rows(2, 30))
        return killed.calls


@pytest.mark.spark
def test_spark_sees_all_of_a_transaction_or_nothing_and_finishes_one_that_it_meets(
    spark: Any, catalog: Catalog, namespace: str
) -> None:
    names = [f"{namespace}.{each}" for each in "ab"]
    for name in names:
        catalog.create_table(name, SCHEMA).append(rows(1, 100))

    def seen() -> list[int]:
        return [spark.sql(f"select sum(amount) from {name}").collect()[0][0] for name in names]

    calls = killed_transfer(catalog, names, None)
    first, second = [number for number, call in enumerate(calls) if call == ALTER][:2]
    assert seen() == [70, 130]
    for number, after in ((first, [70, 130]), (second, [40, 160])):
        killed_transfer(catalog, names, number)
        assert MARK in hive_client(catalog.metastore).get_table(namespace, "a").parameters
        assert seen() == after
        spark.sql(f"insert into {names[0]} values (3, 0)")
        assert seen() == after
        assert MARK not in hive_client(catalog.metastore).get_table(namespace, "a").parameters
