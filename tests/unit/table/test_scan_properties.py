"""Random tables and predicates, the whole way: written, planned, pruned and read, against a reference evaluator."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from hms_iceberg.arrow.formats import parquet_reader
from hms_iceberg.arrow.formats.avro import avro_blocks, avro_writer
from hms_iceberg.catalog import Catalog
from hms_iceberg.spec.schema import Schema
from tests.support.expression_strategies import EXAMPLES, KINDS, NANOS, expressions, matches, predicates, table_leaves
from tests.support.memory_metastore import InMemoryMetastore
from tests.support.memory_storage import InMemoryStorage
from tests.support.random_tables import RandomTable, described, random_tables

FORMATS = ("parquet", "orc", "avro")


@pytest.fixture(scope="module", autouse=True)
def small_files_as_large_ones() -> Iterator[None]:
    """Every record of an Avro file is a block that is read on its own; text in Parquet files is read as codes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(avro_writer, "BLOCK_BYTES", 1)
        patch.setattr(avro_blocks, "_RANGE_BYTES", 1)
        patch.setattr(parquet_reader, "_CODED_ROWS", 1)
        yield


def in_memory(schema: Schema, version: int) -> RandomTable:
    catalog = Catalog("memory", InMemoryMetastore(), InMemoryStorage(), {"warehouse": "mem://warehouse"})
    catalog.create_namespace("db", {})
    return RandomTable(catalog, "db.t", schema, version, deep=True)


# A failing example is not made smaller: each takes half a second.
@settings(
    max_examples=EXAMPLES // 4,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    phases=(Phase.explicit, Phase.reuse, Phase.generate),
)
@given(st.data())
def test_a_scan_of_any_table_gives_the_rows_for_which_the_reference_says_so(data: st.DataObject) -> None:
    version = data.draw(st.sampled_from([2, 3]))
    kinds = KINDS if version == 3 else tuple(kind for kind in KINDS if not isinstance(kind, NANOS))
    made = data.draw(random_tables(partial(in_memory, version=version), kinds, FORMATS, evolve=True))
    table = made.table
    leaves = [table_leaves(table.schema())]
    if "e" in made.kinds:
        leaves.append(predicates("e", made.kinds["e"]))
    assert described(table.scan().to_arrow(), table.schema()) == [
        made.described(number) for number in sorted(made.rows)
    ]
    for _ in range(4):
        expression = data.draw(expressions(st.one_of(*leaves)))
        wanted = sorted(number for number, row in made.rows.items() if matches(expression, row, made.kinds) is True)
        scan = table.scan(expression, ("n",))
        assert sorted(scan.to_arrow()["n"].to_pylist()) == wanted
        assert scan.count() == len(wanted)
        small = table.scan(expression, options={"read.split.target-size": "600", "read.split.open-file-cost": "0"})
        parts = [small.read(group.tasks).read_all() for group in small.plan_tasks()]
        found = described(pa.concat_tables(parts), table.schema()) if parts else []
        assert found == [made.described(number) for number in wanted]
