"""What version 4's draft says beyond what Apache Iceberg 1.12 writes, by Java's own classes.

Java resolves relative paths and lays out typed statistics, but writes neither yet.
"""

from __future__ import annotations

import io
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hms_iceberg.arrow.columns.arrow_schema import from_stored, to_arrow
from hms_iceberg.arrow.formats.manifests_v4 import as_version_3
from hms_iceberg.spec.data_types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    GeometryType,
    IntegerType,
    LongType,
    NestedField,
    PrimitiveType,
    StringType,
    StructType,
    TimestampType,
    TimestamptzType,
    VariantType,
)
from hms_iceberg.spec.metadata.metadata_json import resolved
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.schema_json import schema_from_json, schema_to_json
from hms_iceberg.spec.values.single_values import point_to_bytes, to_bytes
from hms_iceberg.variant import variant_of

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.since_spark("4.1", "Java 1.12 with version 4")]

# The column of each id, and its two bounds.
BOUNDS: dict[int, tuple[Any, Any]] = {
    1: (-(2**31), 7),
    2: ("", "ü"),
    3: (-1.5, 2.0),
    4: (float("-inf"), 1e300),
    5: (Decimal("-0.05"), Decimal("0.99")),
    6: (-1, 20000),
    7: (-1, 2**40),
    8: (0, 2**41),
    9: (b"", b"\xff"),
    10: (False, True),
    14: (-1, 2**40),
}
CORNERS = {12: ((-1.0, 2.0, None, 7.0), (3.0, 4.0, None, 8.0))}
VARIANTS = {13: (variant_of({"$['a']": 1}), variant_of({"$['a']": "x"}))}
KINDS = [IntegerType(), StringType(), FloatType(), DoubleType(), DecimalType(9, 2), DateType(), TimestampType()]
KINDS += [TimestamptzType(), BinaryType(), BooleanType(), StructType(NestedField(14, "x", LongType()))]
SCHEMA = Schema(
    *(NestedField(number, f"c{number}", kind) for number, kind in enumerate(KINDS, 1)),
    NestedField(12, "g", GeometryType()),
    NestedField(13, "v", VariantType()),
)


def javas_paths(spark: Any, cases: list[list[str]]) -> Any:
    resolve = spark._jvm.org.apache.iceberg.util.LocationUtil.resolveLocation
    return [resolve(base, path) for base, path in cases]


def javas_statistics(spark: Any, schema: str, ids: list[int]) -> Any:
    """The field of typed statistics of a schema, as the only one of another."""
    iceberg, util = spark._jvm.org.apache.iceberg, spark._jvm.java.util
    wanted, fields = util.ArrayList(), util.ArrayList()
    for each in ids:
        wanted.add(each)
    struct = iceberg.StatsUtil.statsReadSchema(iceberg.SchemaParser.fromJson(schema), wanted)
    fields.add(iceberg.StatsUtil.contentStatsField(struct))
    return iceberg.SchemaParser.toJson(iceberg.Schema(fields))


def test_paths_are_resolved_as_java_does(iceberg_java: Any) -> None:
    paths = [
        "a/b",
        "/a",
        "",
        "s3://b/x",
        "file:/x",
        "hdfs:x",
        "C:x",
        "1a:x",
        "a b:x",
        "-a:x",
        "a+.-9:",
        ":x",
        "ü:x",
        "a/b:c",
    ]
    cases = [[base, path] for base in ("file:/t", "s3://bucket/t/", "hdfs://ns1") for path in paths]
    assert [resolved(path, base) for base, path in cases] == iceberg_java.ask(javas_paths, cases)


def test_typed_statistics_are_read_where_java_lays_them_out(iceberg_java: Any, tmp_path: Path) -> None:
    ids = [*BOUNDS, *CORNERS, *VARIANTS]
    laid_out = schema_from_json(json.loads(iceberg_java.ask(javas_statistics, json.dumps(schema_to_json(SCHEMA)), ids)))
    (stats,) = laid_out.fields
    assert isinstance(stats.field_type, StructType) and len(stats.field_type.fields) == len(ids)
    values = {}
    for column in stats.field_type.fields:
        field_id = SCHEMA.find_id(column.name.replace("_", "."))
        assert isinstance(column.field_type, StructType)
        made: dict[str, Any] = {each.name: each.field_id for each in column.field_type.fields}  # counts, told apart
        made |= {"tight_bounds": True}
        for place, name in enumerate(("lower_bound", "upper_bound")):
            if field_id in CORNERS:
                made[name] = dict(zip("xyzm", CORNERS[field_id][place], strict=True))
            elif field_id in VARIANTS:
                bound = VARIANTS[field_id][place]
                made[name] = {"metadata": bound.metadata, "value": bound.value}
            else:
                made[name] = from_stored([BOUNDS[field_id][place]], SCHEMA.find_type(field_id)).to_pylist()[0]
        values[column.name] = {each.name: made[each.name] for each in column.field_type.fields}
    kind = to_arrow(laid_out).field(0)
    manifest = with_statistics(iceberg_java, tmp_path, kind, pa.array([values], kind.type))
    (entry,) = fastavro.reader(io.BytesIO(as_version_3(manifest, "m.parquet", "file:/t")))
    found = {name: {each["key"]: each["value"] for each in entry["data_file"][name]} for name in MAPS}
    for field_id in ids:
        first = 10_000 + 200 * field_id
        assert (found["value_counts"][field_id], found["null_value_counts"][field_id]) == (first + 4, first + 5)
        bounds = [found["lower_bounds"][field_id], found["upper_bounds"][field_id]]
        if field_id in CORNERS:
            assert bounds == [point_to_bytes(*each) for each in CORNERS[field_id]]
        elif field_id in VARIANTS:
            assert bounds == [each.metadata + each.value for each in VARIANTS[field_id]]
        else:
            own = SCHEMA.find_type(field_id)
            assert isinstance(own, PrimitiveType)
            assert bounds == [to_bytes(own, each) for each in BOUNDS[field_id]]
    assert found["nan_value_counts"] == {3: 10_606, 4: 10_806}


MAPS = ("value_counts", "null_value_counts", "nan_value_counts", "lower_bounds", "upper_bounds")


def javas_manifest(spark: Any, location: str, schema: str) -> Any:
    """Where the manifest of a new table of version 4 is, with a file that nobody reads."""
    iceberg = spark._jvm.org.apache.iceberg
    spec = iceberg.PartitionSpec.unpartitioned()
    tables = iceberg.hadoop.HadoopTables(spark._jsc.hadoopConfiguration())
    table = tables.create(iceberg.SchemaParser.fromJson(schema), spec, {"format-version": "4"}, location)
    file = iceberg.DataFiles.builder(spec).withPath(f"{location}/data/f.parquet").withFormat("parquet")
    table.newAppend().appendFile(file.withFileSizeInBytes(10).withRecordCount(1).build()).commit()
    return table.currentSnapshot().allManifests(table.io()).get(0).path()


def with_statistics(iceberg_java: Any, folder: Path, kind: pa.Field, statistics: pa.Array) -> bytes:
    """A manifest of one file, as Java writes it, and with typed statistics."""
    path = iceberg_java.ask(javas_manifest, f"file:{folder}/t", json.dumps(schema_to_json(SCHEMA)))
    read = pq.read_table(path.removeprefix("file:"))
    place = read.schema.get_field_index("data_file")
    files = read.column(place).combine_chunks()
    fields = [each for each in files.type if each.name != kind.name]
    columns = [*(files.field(each.name) for each in fields), statistics]
    struct = pa.StructArray.from_arrays(columns, fields=[*fields, kind])
    changed = read.set_column(place, read.schema.field(place).with_type(struct.type), struct)
    output = io.BytesIO()
    pq.write_table(changed.replace_schema_metadata(read.schema.metadata), output)
    return output.getvalue()
