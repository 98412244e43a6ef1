"""Apache Iceberg (Java) and we change the rows of one table in turn, by SQL in Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from tests.support.pyspark_home import spark_release
from tests.support.spark_tables import Rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from hms_iceberg.catalog import Catalog
    from tests.interop.conftest import JavaIceberg

pytestmark = [pytest.mark.interop, pytest.mark.spark, pytest.mark.slow]

ROWS = Rows({"id": pa.int64(), "kind": pa.string(), "v": pa.int32()})
STATEMENTS = (
    "delete from {t} where id % 10 = 1",
    "delete from {t} where id % 10 = 2 and v > 5",
    "update {t} set v = v + 1000 where id % 7 = 0",
    "merge into {t} t using (select id + 95 as id, cast(id as int) as v from range(10)) s on t.id = s.id "
    "when matched and s.v < 2 then delete when matched then update set v = s.v "
    "when not matched then insert (id, kind, v) values (s.id, 'new', s.v)",
    "delete from {t} where id % 10 = 3 and kind = 'b'",
    "update {t} set kind = 'z' where id in (4, 50, 101)",
    "merge into {t} t using (select id from range(0, 120, 9)) s on t.id = s.id when matched then delete",
)


@pytest.mark.parametrize(
    ("version", "mode"), [(2, "merge-on-read"), (3, "merge-on-read"), (2, "copy-on-write"), (3, "copy-on-write")]
)
def test_each_continues_where_the_other_left_off(
    spark: SparkSession, iceberg_java: JavaIceberg, catalog: Catalog, namespace: str, version: int, mode: str
) -> None:
    modes = {f"write.{command}.mode": mode for command in ("delete", "update", "merge")}
    names = {"ours": f"{namespace}.ours", "theirs": f"{namespace}.theirs"}
    for name in names.values():
        table = catalog.create_table(name, ROWS.schema, properties={"format-version": str(version), **modes})
        table.append(ROWS((n, "ab"[n % 2], n % 13) for n in range(60)))
        table.append(ROWS((n, "ab"[n % 2], n % 13) for n in range(60, 100)))
    lineage = ", _row_id, _last_updated_sequence_number" if version == 3 else ""
    query = f"select id, kind, v{lineage} from {{}} order by id"
    for number, statement in enumerate(STATEMENTS):
        # One of the tables is changed by both in turn, the other by Java alone.
        if number % 2:
            iceberg_java.sql(statement.format(t=f"ice.{names['ours']}"))
        else:
            spark.sql(statement.format(t=names["ours"])).collect()
        iceberg_java.sql(statement.format(t=f"ice.{names['theirs']}"))
        both = " union all ".join(
            f"select '{key}' as which, * from ({query.format(f'ice.{names[key]}')})" for key in names
        )
        found = iceberg_java.sql(f"{both} order by which, id")
        of_ours, expected = (_known([row[1:] for row in found if row[0] == key], version) for key in names)
        assert of_ours == expected, statement
        ours = [list(row) for row in spark.sql(query.format(names["ours"])).collect()]
        assert _known(ours, version) == expected, statement
    if (version, mode) == (3, "copy-on-write") and spark_release() < (4, 0):
        return  # Spark 3.5 changes these by merge-on-read
    summary = (
        "select summary['total-position-deletes'], summary['total-records'] from ice.{}.snapshots order by committed_at"
    )
    found = [iceberg_java.sql(summary.format(names[each]))[-1] for each in ("ours", "theirs")]
    assert found[0] == found[1]
    metrics = (
        "select distinct content, file_format, value_counts is null, null_value_counts is null, "
        "nan_value_counts is null, cardinality(lower_bounds), cardinality(upper_bounds) from ice.{}.all_delete_files"
    )
    found = [iceberg_java.sql(metrics.format(names[each])) for each in ("ours", "theirs")]
    assert found[0] == found[1] and len(found[0]) == (mode == "merge-on-read")


def _known(rows: list[list[Any]], version: int) -> list[list[Any]]:
    """Rows without the ids of new ones, which depend on the order in which files are listed."""
    return [[*row[:3], *(row[3:] if row[0] < 100 else [])] for row in rows] if version == 3 else rows
