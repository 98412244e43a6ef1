"""Scans of ORC and Avro tables that Apache Iceberg wrote, in our extended Spark and in its own, in one run on the same
version of Spark: without deletes, with 1% position deletes, and with deletion vectors.

    python -m tests.benchmarks.spark_formats [--rows 2000000] [--formats orc,avro] [--repeat 5] [--warm-up 3]

Needs what tests/interop has downloaded: run that first.
"""

from __future__ import annotations

import argparse

from click import echo

from hms_iceberg.catalog import load_catalog
from hms_iceberg.hms.embedded import EmbeddedMetastore
from tests.benchmarks.spark_peers import SparkProcess, compare

MODES = "array('AIR', 'FOB', 'MAIL', 'RAIL', 'REG AIR', 'SHIP', 'TRUCK')"
ROWS = f"""
    select id, cast(pmod(hash(id), 200000) as int) as part, cast(pmod(hash(id, 1), 50) as decimal(12, 2)) as quantity,
           rand(1) * 100000 as price, date_add(date'1992-01-01', cast(pmod(hash(id, 2), 2500) as int)) as day,
           timestamp_micros(id * 1000003) as at, element_at({MODES}, cast(pmod(hash(id), 7) as int) + 1) as mode,
           sha2(cast(id as string), 256) as comment,
           struct(id as a, cast(id as string) as b, array(id, id + 1) as c) as nested
    from range(0, {{}}, 1, 4)
"""
QUERIES = {
    "all columns": "select max(struct(id, part, quantity, price, day, at, mode, comment)) from {}",
    "one column": "select sum(id) from {}",
    "1% filter": "select count(*), max(comment) from {} where part < 2000",
    "id range": "select count(*), max(price) from {} where id between 1000 and 20000",
    "group": "select mode, sum(quantity), avg(price), count(*) from {} where day <= date'1998-09-02' group by mode",
    "nested": "select sum(nested.a), max(nested.b), sum(size(nested.c)) from {}",
}
TABLES = {"plain": "2", "positions": "2", "vectors": "3"}


def main() -> None:
    """Builds the tables and compares."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--formats", default="orc,avro")
    parser.add_argument("--tables", default=",".join(TABLES))
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--warm-up", type=int, default=3)
    options = parser.parse_args()
    with EmbeddedMetastore() as metastore:
        load_catalog("bench", type="hive", uri=metastore.uri, warehouse=metastore.warehouse).create_namespace("bench")
        ours, java = (SparkProcess(kind, metastore.uri, metastore.warehouse) for kind in ("ours", "java"))
        echo(f"Spark {ours.version}; Java's runtime on {java.version}; {options.rows:,} rows")
        for file_format in options.formats.split(","):
            for kind in options.tables.split(","):
                name = f"bench.{file_format}_{kind}"
                java.ask(
                    sql=f"create table {name} using iceberg tblproperties ('write.format.default' = '{file_format}', "
                    f"'format-version' = '{TABLES[kind]}', 'write.delete.mode' = 'merge-on-read') as "
                    + ROWS.format(options.rows)
                )
                if kind != "plain":
                    java.ask(sql=f"delete from {name} where pmod(hash(id, 5), 100) = 7")
                for query, text in QUERIES.items():
                    computed = {side.kind: side.processor_seconds() for side in (ours, java)}
                    sides = {"ours": (ours, text.format(name)), "java": (java, text.format(name))}
                    seconds = compare(sides, options.warm_up, options.repeat)
                    spent = {side.kind: side.processor_seconds() - computed[side.kind] for side in (ours, java)}
                    echo(
                        f"{file_format + ' ' + kind + ': ' + query:<30} ours {seconds['ours']:.3f} s  "
                        f"java {seconds['java']:.3f} s  ours/java {seconds['ours'] / seconds['java']:.2f}  "
                        f"processor {spent['ours'] / spent['java']:.2f}"
                    )
        ours.close()
        java.close()


if __name__ == "__main__":
    main()
