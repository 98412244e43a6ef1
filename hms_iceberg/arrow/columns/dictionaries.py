"""Columns of text as dictionaries of their values, which take less memory where values repeat."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from hms_iceberg.arrow.columns.arrow_types import is_bytes, is_text
from hms_iceberg.spec.json_model import column_names


def with_dictionaries(rows: pa.RecordBatchReader, columns: Sequence[str]) -> pa.RecordBatchReader:
    """The rows with some columns as dictionaries; those that are neither text nor bytes stay as they are."""
    names = column_names(columns, "dictionary_columns")
    places = [
        place
        for place, field in enumerate(rows.schema)
        if field.name in names and (is_text(field.type) or is_bytes(field.type))
    ]
    if not places:
        return rows
    schema = rows.schema
    for place in places:
        field = schema.field(place)
        schema = schema.set(place, field.with_type(pa.dictionary(pa.int32(), field.type)))

    def encoded(batch: pa.RecordBatch) -> pa.RecordBatch:
        arrays = batch.columns
        for place in places:
            arrays[place] = arrays[place].dictionary_encode()
        return pa.RecordBatch.from_arrays(arrays, schema=schema)

    return pa.RecordBatchReader.from_batches(schema, map(encoded, rows))
