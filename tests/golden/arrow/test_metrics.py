"""Column metrics from the footers of Java's data files are those that Java wrote into its manifests."""

from __future__ import annotations

from pathlib import Path

import pytest

from hms_iceberg.arrow.columns.arrow_schema import to_arrow_type
from hms_iceberg.arrow.metrics.footer_metrics import data_file_from_parquet, leaves_of_footer, read_footer
from hms_iceberg.arrow.storage.arrow_storage import ArrowStorage
from hms_iceberg.spec.metadata.metadata_json import metadata_from_json
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from tests.support.manifest_files import data_files

GOLDEN = Path("/tmp/hms_iceberg_golden/public")
CASES = [
    "c03_codecs",
    "c03_primitives",
    "c04_nested",
    "c05_identity_types",
    "c05_truncate",
    "c08_sort_orders",
    "c13_v3_types_parquet",
    "c18_metrics_counts",
    "c18_metrics_full",
    "c18_metrics_none",
    "c18_metrics_truncate8",
    "c18_wide_160",
]


def newest_metadata(case: str) -> TableMetadata:
    location = max((GOLDEN / case / "metadata").glob("*.metadata.json"))
    return metadata_from_json(location.read_bytes(), str(location))


@pytest.mark.parametrize("case", CASES)
def test_metrics_of_a_footer_are_javas(case: str) -> None:
    storage = ArrowStorage()
    metadata = newest_metadata(case)
    schema = metadata.schema()
    compared = 0
    for java in data_files(metadata, storage):
        footer = read_footer(storage, java.file_path)
        ours = data_file_from_parquet(
            storage, java.file_path, schema, properties=metadata.properties, footer=footer, partition=java.partition
        )
        assert ours.record_count == java.record_count
        assert ours.file_size_in_bytes == java.file_size_in_bytes
        assert ours.split_offsets == java.split_offsets
        for leaf in leaves_of_footer(footer.metadata, None, java.file_path):
            field = schema.index_by_id.get(leaf.field_id or 0)
            if field is None or leaf.type != to_arrow_type(field.field_type, extensions=False):
                continue  # dropped, or promoted since
            for name in ("column_sizes", "value_counts", "null_value_counts", "lower_bounds", "upper_bounds"):
                mine, theirs = (dict(getattr(file, name) or {}).get(field.field_id) for file in (ours, java))
                # Java knows the values when it writes; statistics of a footer lack bounds where there is a NaN, and
                # count the nulls of a struct's fields otherwise than its own counter for floats.
                if (java.nan_value_counts or {}).get(field.field_id) is None or name == "column_sizes":
                    assert (name, field.name, mine) == (name, field.name, theirs)
                    compared += 1
    assert compared
