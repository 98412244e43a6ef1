from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hms_iceberg.arrow.storage.arrow_storage import ArrowStorage
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.partitions.partition_specs import UNPARTITIONED, PartitionField, PartitionSpec
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.sort_orders import UNSORTED, SortOrder

MakeMetadata = Callable[..., TableMetadata]


@pytest.fixture
def storage() -> ArrowStorage:
    return ArrowStorage()


@pytest.fixture
def make_metadata(tmp_path: Path) -> MakeMetadata:
    """Builds the metadata of an empty table in a temporary folder."""

    def make(
        schema: Schema,
        *partition_fields: tuple[str, str],
        properties: dict[str, str] | None = None,
        sort_order: SortOrder = UNSORTED,
        **fields: Any,
    ) -> TableMetadata:
        spec = PartitionSpec(
            *(
                PartitionField(schema.find_id(column), 1000 + index, transform, f"{column}_{index}")  # type: ignore[arg-type]
                for index, (column, transform) in enumerate(partition_fields)
            )
        )
        return TableMetadata(
            **{
                "format_version": 3,
                "table_uuid": "7e8dee6c-2b4c-4d2f-8b6e-0d4c62a3ba11",
                "location": f"{tmp_path}/table",
                "last_updated_ms": 0,
                "last_column_id": schema.highest_field_id,
                "schemas": (schema,),
                "partition_specs": (spec if partition_fields else UNPARTITIONED,),
                "sort_orders": (UNSORTED,) if sort_order.is_unsorted else (UNSORTED, sort_order),
                "default_sort_order_id": sort_order.order_id,
                "properties": properties or {},
                **fields,
            }
        )

    return make
