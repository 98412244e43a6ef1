"""The columns of a Parquet file: their field ids, their leaves, and what the values of old writers mean.

Files of one writer and one schema are alike; only the first of them is looked at closely.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq

from hms_iceberg.arrow.columns.legacy_calendar import Rule
from hms_iceberg.arrow.columns.projection import FileLeaf, file_leaves
from hms_iceberg.arrow.metrics.footer_metrics import calendar_rules
from hms_iceberg.cached_properties import cached_property


class ParquetColumns:
    """The columns of a file by its footer; `schema` is the file's, with field ids and without dictionaries."""

    def __init__(self, footer: pq.FileMetaData, schema: pa.Schema) -> None:
        self.schema = schema
        self._footer = footer

    @cached_property
    def leaves(self) -> list[FileLeaf]:
        """The leaves in the order of column chunks."""
        return file_leaves(self.schema)

    @cached_property
    def rules(self) -> dict[int, Rule]:
        """What makes values of leaves proleptic that the writer counted in the old calendar, by the leaf's place."""
        return calendar_rules(self._footer, self.leaves)

    def is_int96(self, leaf: int) -> bool:
        """Whether a leaf has times of 96 bits."""
        return bool(self._footer.schema.column(leaf).physical_type == "INT96")

    def are_like(self, other: ParquetColumns) -> bool:
        """Whether another file has the same columns, and values that mean the same."""
        mine, its = self._footer, other._footer
        return bool(mine.schema.equals(its.schema)) and mine.metadata == its.metadata
