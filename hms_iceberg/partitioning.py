"""PyIceberg's module path of partition specs: `hms_iceberg.spec.partitions.partition_specs`."""

from __future__ import annotations

from hms_iceberg.spec.partitions.partition_fields import PartitionFieldValue, PartitionKey
from hms_iceberg.spec.partitions.partition_specs import (
    PARTITION_FIELD_ID_START,
    PartitionField,
    PartitionSpec,
)
from hms_iceberg.spec.partitions.partition_specs import (
    UNPARTITIONED as UNPARTITIONED_PARTITION_SPEC,
)

__all__ = [
    "PARTITION_FIELD_ID_START",
    "UNPARTITIONED_PARTITION_SPEC",
    "PartitionField",
    "PartitionFieldValue",
    "PartitionKey",
    "PartitionSpec",
]
