"""Which column metrics a table wants in its manifests: ``write.metadata.metrics.*``.

Source: Iceberg documentation, "Configuration": table properties; modes none, counts, truncate(length) and full.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from hms_iceberg.errors import ConfigurationError
from hms_iceberg.spec.data_types import IcebergType, NestedType
from hms_iceberg.spec.metadata_columns import LINEAGE
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.sort_orders import SortOrder
from hms_iceberg.spec.table_properties import COLUMN_METRICS_MODE, DEFAULT_METRICS_MODE, METRICS_MAX_COLUMNS

_TRUNCATE = re.compile(r"truncate\(\s*(\d+)\s*\)")


@dataclass(frozen=True, slots=True)
class MetricsMode:
    """Which metrics are kept for one column.

    Args:
        counts: whether sizes and counts are kept.
        bounds: whether lower and upper bounds are kept.
        width: code points or bytes that bounds of strings and binaries are cut to; None keeps them whole.
    """

    counts: bool
    bounds: bool
    width: int | None = None

    @classmethod
    def parse(cls, text: str, name: str = "metrics mode") -> MetricsMode:
        """The mode that a property's text names, in any case: none, counts, truncate(16), full."""
        lowered = text.strip().lower()
        if lowered in _NAMED:
            return _NAMED[lowered]
        match = _TRUNCATE.fullmatch(lowered)
        if match and int(match[1]) > 0:
            return cls(True, True, int(match[1]))
        raise ConfigurationError(
            f"Property {name} is {text!r}, expected none, counts, truncate(length) with a length above 0, or full."
        )


NONE = MetricsMode(False, False)
COUNTS = MetricsMode(True, False)
FULL = MetricsMode(True, True)
TRUNCATE_16 = MetricsMode(True, True, 16)
_NAMED = {"none": NONE, "counts": COUNTS, "full": FULL}


def metrics_modes(
    schema: Schema, properties: Mapping[str, str], sort_order: SortOrder | None = None
) -> dict[int, MetricsMode]:
    """The metrics mode of every primitive field, and of the lineage columns, which files may store.

    Args:
        schema: the table's schema.
        properties: the table's properties.
        sort_order: the table's sort order; its columns keep bounds even if the default keeps none.

    Returns:
        Field id to mode. Unless a default is set, only the first 100 columns (breadth first within each struct, as
        Java counts) have one other than none.

    Raises:
        ConfigurationError: a mode is not written as it should be.
    """
    is_set = DEFAULT_METRICS_MODE.name in properties
    default = MetricsMode.parse(DEFAULT_METRICS_MODE.of(properties), DEFAULT_METRICS_MODE.name)
    primitives = list(_primitive_ids(schema.as_struct()))
    limit = len(primitives) if is_set else _max_columns(properties)
    modes = {field_id: default if index < limit else NONE for index, field_id in enumerate(primitives)}
    modes |= dict.fromkeys(LINEAGE, default if len(primitives) <= limit else NONE)
    for field in sort_order.fields if sort_order is not None else ():
        if field.source_id in modes and not modes[field.source_id].bounds:
            modes[field.source_id] = TRUNCATE_16
    for name, text in COLUMN_METRICS_MODE.of_columns(properties):
        column = schema.index_by_name.get(name)
        if column in modes:
            modes[column] = MetricsMode.parse(text, COLUMN_METRICS_MODE.name + name)
    return modes


def _max_columns(properties: Mapping[str, str]) -> int:
    limit = METRICS_MAX_COLUMNS.of(properties)
    if limit < 0:
        raise METRICS_MAX_COLUMNS.wrong(str(limit), "a number of columns")
    return limit


def _primitive_ids(kind: IcebergType) -> Iterator[int]:
    """Ids of fields that are not nested: a struct's own first, then those of its children in turn."""
    if not isinstance(kind, NestedType):
        return
    children = kind.children()
    yield from (child.field_id for child in children if not isinstance(child.field_type, NestedType))
    for child in children:
        yield from _primitive_ids(child.field_type)
