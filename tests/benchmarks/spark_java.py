"""Scans of 8,000,000 rows in our extended Spark, in Apache Iceberg's, and of the same files as plain Parquet, in one
run on the same version of Spark: without deletes, with 1% position deletes, deletion vectors, and equality deletes. And
queries of a table of long texts, and of the files of a table of 10,000 of them, both of which Java wrote.

    python -m tests.benchmarks.spark_java [--rows 8000000] [--repeat 5] [--warm-up 3] [--tables texts,files]

Needs what tests/interop has downloaded: run that first.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from click import echo

from hms_iceberg.arrow.columns.arrow_schema import to_arrow
from hms_iceberg.catalog import load_catalog
from hms_iceberg.hms.embedded import EmbeddedMetastore
from hms_iceberg.spec.manifests.manifest_values import DataFile, DataFileContent
from hms_iceberg.spec.schema import Schema
from hms_iceberg.updates.rows.row_delta import RowDelta
from tests.benchmarks.reading import line_items
from tests.benchmarks.spark_peers import SparkProcess, compare, run_java
from tests.benchmarks.spark_reading import QUERIES

if TYPE_CHECKING:
    from hms_iceberg.catalog import Catalog
    from hms_iceberg.table import Table

DELETED_KEYS = 10_000
FILES = 10_000
# Java applies what our count(*) reads from metadata; the others compare scans.
COMPARED = {name: text for name, text in QUERIES.items() if name != "count"}

MODES = "array('AIR', 'FOB', 'MAIL', 'RAIL', 'REG AIR', 'SHIP', 'TRUCK')"
TEXTS = f"""
    create table bench.texts using iceberg as
    select id, element_at({MODES}, cast(pmod(hash(id), 7) as int) + 1) as mode,
           concat(sha2(cast(id as string), 512), if(id % 97 = 0, ' special requests ', ' ordinary wishes '),
                  sha2(cast(id + 1 as string), 512)) as comment
    from range(0, {{}}, 1, 4)
"""
OF_TEXTS = {
    "like and in": "select count(*), max(id) from bench.texts where comment like '%special%requests%'"
    " and mode in ('AIR', 'RAIL', 'REG AIR')",
    "like": "select count(*), max(id) from bench.texts where comment like '%special%requests%'",
    "top ten by text": "select id, comment from bench.texts order by comment desc limit 10",
    "top ten, all columns": "select * from bench.texts order by comment, id limit 10",
}
OF_FILES = {
    "counts": "select count(file_path), sum(record_count), sum(file_size_in_bytes) from bench.many.files",
    "metrics": "select sum(map_keys(value_counts)[0]), max(lower_bounds[1]) from bench.many.files",
    "readable": "select max(readable_metrics.c1.upper_bound), min(readable_metrics.c15.lower_bound)"
    " from bench.many.files",
    "every column": "select * from bench.many.files order by file_path limit 1000",
}


def build(catalog: Catalog, name: str, files: list[pa.Table], **properties: str) -> Table:
    """A table of so many data files."""
    table = catalog.create_table(f"bench.{name}", files[0].schema, properties=properties)
    for rows in files:
        table.append(rows)
    return table


def delete_a_share(table: Table) -> None:
    """1% of the rows of every file, spread over it, by what the table's version uses for it."""
    keys = np.random.default_rng(7).choice(np.arange(1, 200_000), 2_000, replace=False)
    table.delete(f"l_partkey in ({', '.join(str(key) for key in keys)})")


def delete_keys(table: Table) -> None:
    """Equality deletes of some order keys in one file."""
    column = table.schema().find_field("l_orderkey")
    keys = table.scan(selected_fields=("l_orderkey",)).to_arrow()[0].to_numpy()
    values = np.random.default_rng(8).choice(np.unique(keys), DELETED_KEYS, replace=False)
    rows = pa.table([pa.array(values, pa.int64())], schema=to_arrow(Schema(column)))
    location = f"{table.location()}/data/keys.parquet"
    with table.storage.open_output(location) as output:
        pq.write_table(rows, output)
    deleted = DataFile(
        file_path=location,
        file_format="PARQUET",
        record_count=rows.num_rows,
        file_size_in_bytes=table.storage.length(location),
        content=DataFileContent.EQUALITY_DELETES,
        equality_ids=(column.field_id,),
    )
    with table.transaction() as transaction:
        transaction._transaction.add(RowDelta((deleted,)))


def main() -> None:
    """Builds the tables and compares."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=8_000_000)
    parser.add_argument("--files", type=int, default=8)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--warm-up", type=int, default=3)
    parser.add_argument("--tables", default="plain,positions,vectors,keys,texts,files")
    options = parser.parse_args()
    tables = options.tables.split(",")
    with EmbeddedMetastore() as metastore:
        catalog = load_catalog("bench", type="hive", uri=metastore.uri, warehouse=metastore.warehouse)
        catalog.create_namespace("bench")
        files = [line_items(options.rows // options.files, index + 1) for index in range(options.files)]
        for name in tables:
            if name in ("texts", "files"):
                continue
            version = {"format-version": "3" if name == "vectors" else "2"}
            table = build(catalog, name, files, **{"write.delete.mode": "merge-on-read"}, **version)
            if name == "keys":
                delete_keys(table)
            elif name != "plain":
                delete_a_share(table)
        del files
        ours, java = (SparkProcess(kind, metastore.uri, metastore.warehouse) for kind in ("ours", "java"))
        if "plain" in tables:
            plain = catalog.load_table("bench.plain")
            ours.ask(views={"raw": [task.file.file_path for task in plain.scan().plan_files()]})
        echo(f"Spark {ours.version}; Java's runtime on {java.version}; {options.rows:,} rows")
        for deleted in tables:
            queries = {name: text.format(f"bench.{deleted}") for name, text in COMPARED.items()}
            if deleted == "texts":
                java.ask(sql=TEXTS.format(options.rows // 4))
                queries = OF_TEXTS
            elif deleted == "files":
                location = run_java("java_tables.py", f"{metastore.warehouse}/many", "--files", str(FILES)).strip()
                catalog.register_table("bench.many", location)
                queries = OF_FILES
            for name, query in queries.items():
                sides = {"ours": (ours, query), "java": (java, query)}
                if deleted == "plain":
                    sides["parquet"] = (ours, COMPARED[name].format("raw"))
                seconds = compare(sides, options.warm_up, options.repeat)
                report = "  ".join(f"{side} {value:.3f} s" for side, value in seconds.items())
                ratios = "  ".join(f"/{side} {seconds['ours'] / seconds[side]:.2f}" for side in list(seconds)[1:])
                echo(f"{deleted + ': ' + name:<28} {report}  ours{ratios}")
        ours.close()
        java.close()


if __name__ == "__main__":
    main()
