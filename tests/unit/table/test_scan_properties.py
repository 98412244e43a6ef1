"""Random tables and predicates, the whole way: written, planned, pruned and read, against a reference evaluator."""

from __future__ import annotations

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from hms_iceberg.catalog import Catalog
from hms_iceberg.spec.schema import Schema
from tests.support.expression_strategies import EXAMPLES, expressions, matches, predicates, table_leaves
from tests.support.memory_metastore import InMemoryMetastore
from tests.support.memory_storage import InMemoryStorage
from tests.support.random_tables import RandomTable, random_tables


def in_memory(schema: Schema) -> RandomTable:
    catalog = Catalog("memory", InMemoryMetastore(), InMemoryStorage(), {"warehouse": "mem://warehouse"})
    catalog.create_namespace("db", {})
    return RandomTable(catalog, "db.t", schema)


# A failing example is not made smaller: each takes a fifth of a second.
@settings(
    max_examples=EXAMPLES // 2,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    phases=(Phase.explicit, Phase.reuse, Phase.generate),
)
@given(st.data())
def test_a_scan_of_any_table_gives_the_rows_for_which_the_reference_says_so(data: st.DataObject) -> None:
    made = data.draw(random_tables(in_memory))
    table = made.table
    leaves = [table_leaves(table.schema())]
    if "e" in made.kinds:
        leaves.append(predicates("e", made.kinds["e"]))
    for _ in range(4):
        expression = data.draw(expressions(st.one_of(*leaves)))
        wanted = sorted(number for number, row in made.rows.items() if matches(expression, row, made.kinds) is True)
        scan = table.scan(expression, ("n",))
        assert sorted(scan.to_arrow()["n"].to_pylist()) == wanted
        assert scan.count() == len(wanted)
        small = table.scan(
            expression, ("n",), options={"read.split.target-size": "600", "read.split.open-file-cost": "0"}
        )
        parts = [small.read(group.tasks).read_all()["n"].to_pylist() for group in small.plan_tasks()]
        assert sorted(number for part in parts for number in part) == wanted
