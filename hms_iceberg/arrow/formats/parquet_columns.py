"""The columns of a Parquet file: their field ids, their leaves, and what the values of old writers mean.

Files of one writer and one schema are alike; only the first of them is looked at closely.
"""

from __future__ import annotations

from collections import Counter

import pyarrow as pa

from hms_iceberg.arrow.columns.legacy_calendar import Rule
from hms_iceberg.arrow.columns.projection import FileLeaf, file_leaves
from hms_iceberg.arrow.metrics.file_footer import FileFooter
from hms_iceberg.arrow.metrics.footer_metrics import calendar_rules
from hms_iceberg.cached_properties import cached_property

# A footer in memory, beside its bytes in the file.
_DECODED = 8


class ParquetColumns:
    """The columns of a file by its `footer`; `schema` is the file's, with field ids and without dictionaries."""

    def __init__(self, footer: FileFooter, schema: pa.Schema) -> None:
        self.footer = footer
        self.schema = schema

    @property
    def nbytes(self) -> int:
        """Bytes of memory that they take with the footer, about."""
        return int(self.footer.metadata.serialized_size) * _DECODED

    @cached_property
    def leaves(self) -> list[FileLeaf]:
        """The leaves in the order of column chunks."""
        return file_leaves(self.schema)

    @cached_property
    def by_id(self) -> dict[int | None, FileLeaf]:
        """Top-level leaves by field id; the first of several."""
        return {leaf.field_id: leaf for leaf in reversed(self.leaves) if len(leaf.path) == 1}

    @cached_property
    def names(self) -> Counter[str]:
        """How many top-level columns have a name."""
        return Counter(self.schema.names)

    @cached_property
    def rules(self) -> dict[int, Rule]:
        """What makes values of leaves proleptic that the writer counted in the old calendar, by the leaf's place."""
        return calendar_rules(self.footer.metadata, self.leaves)

    def is_int96(self, leaf: int) -> bool:
        """Whether a leaf has times of 96 bits."""
        return bool(self.footer.metadata.schema.column(leaf).physical_type == "INT96")

    def are_like(self, other: ParquetColumns) -> bool:
        """Whether another file has the same columns, and values that mean the same."""
        mine, its = self.footer.metadata, other.footer.metadata
        return bool(mine.schema.equals(its.schema)) and mine.metadata == its.metadata
