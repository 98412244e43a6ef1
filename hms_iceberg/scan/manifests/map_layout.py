"""The metrics of one field, read without those of the others.

In Avro a map of metrics is an array of pairs, of which polars makes lists of structs, for all fields of the table. If
every entry has the same fields in the same order, the array's bytes are also those of a record: the number of pairs,
each key and value, and the end. Read as such, the metrics of one field are a column like any other, and the rest is
skipped. Numbers of pairs and ends are read along: if they are the same in all entries, then all were read rightly, as
the first that differs would still be read in its place.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from io import BytesIO
from typing import Any

import fastavro

from hms_iceberg.lazy import pl
from hms_iceberg.spec.manifests.manifest_layout import EntryLayout

# A map of metrics and a field: ("lower_bounds", 3).
Metric = tuple[str, int]
# For each map the keys of its pairs, in order.
MapKeys = tuple[tuple[str, tuple[int, ...]], ...]

# A schema has its price, and entries that differ are seen in a sample only: for fewer, maps are as good.
FEWEST_ENTRIES = 1_000
_MOST_PAIRS = 20_000
_SAMPLED_BLOCKS = 20

MAPS = ("column_sizes", "value_counts", "null_value_counts", "nan_value_counts", "lower_bounds", "upper_bounds")


def metric_name(metric: Metric) -> str:
    """The column that a metric is decoded to."""
    return f"{metric[0]}.{metric[1]}"


@dataclass(frozen=True, slots=True)
class MapLayout:
    """A schema of entries in which maps are fields of their own.

    Attributes:
        text: the Avro schema for polars.
        keys: the keys of each map that is laid out, in order.
        constants: columns that must have one value in all entries.
    """

    text: bytes
    keys: Mapping[str, tuple[int, ...]]
    constants: Mapping[str, int]

    def columns(self, metrics: Sequence[Metric]) -> list[str]:
        """The columns to read for some metrics."""
        places = {f"{part}{place}" for metric in metrics for part, place in self._read(metric)}
        return [*self.constants, *sorted(places)]

    def values(self, frame: pl.DataFrame, metrics: Sequence[Metric]) -> dict[str, pl.Series] | None:
        """The metrics, by their columns' names; None if an entry is laid out in another way.

        Args:
            frame: at least the columns of `columns`.
            metrics: the same as there.
        """
        expected = dict(self.constants)
        for metric in metrics:
            name, keys = metric[0], self.keys.get(metric[0], ())
            expected |= {f"{part}{place}": keys[place] for part, place in self._read(metric) if part == f"{name}.key"}
        columns = ((frame[name], value) for name, value in expected.items())
        if frame.height and not all(column.min() == value == column.max() for column, value in columns):
            return None
        return {metric_name(metric): self._values(frame, metric) for metric in metrics}

    def _values(self, frame: pl.DataFrame, metric: Metric) -> pl.Series:
        name, field_id = metric
        keys = self.keys[name]
        if field_id in keys:
            return frame[f"{name}.value{keys.index(field_id)}"]
        return pl.Series([None], dtype=metric_dtype(name)).new_from_index(0, frame.height)

    def _read(self, metric: Metric) -> list[tuple[str, int]]:
        """Beginnings and numbers of the columns that hold a metric; all keys of the map if it is none of them."""
        name, field_id = metric
        keys = self.keys[name]
        if field_id not in keys:
            return [(f"{name}.key", place) for place in range(len(keys))]
        return [(f"{name}.key", keys.index(field_id)), (f"{name}.value", keys.index(field_id))]


def metric_dtype(name: str) -> Any:
    """The polars type of the values of a map of metrics."""
    return pl.Binary if name.endswith("bounds") else pl.Int64


def map_keys(layout: EntryLayout, blocks: Sequence[bytes]) -> MapKeys | None:
    """The keys of the maps of all entries, without those of maps that are empty or missing, as far as a sample tells.

    Entries with other keys are found later, but polars then writes to the standard error that it panicked.

    Returns:
        None if entries differ or cannot be read, if a map has a key twice, or if there are too many keys for a schema.
    """
    step = -(-len(blocks) // _SAMPLED_BLOCKS) or 1
    keys: MapKeys | None = None
    for block in [*blocks[::step], *blocks[-1:]]:
        found = _keys_of_entry(layout, BytesIO(block))
        if found is None or keys not in (None, found):
            return None
        keys = found
    return keys if keys is not None and sum(len(each) for _, each in keys) <= _MOST_PAIRS else None


def _keys_of_entry(layout: EntryLayout, stream: BytesIO) -> MapKeys | None:
    try:
        record: Any = fastavro.schemaless_reader(stream, layout.parsed, None)
        values = layout.data_file_values(record)
        keys = tuple((name, tuple(pair["key"] for pair in values[name])) for name in MAPS if values.get(name))
    except (EOFError, IndexError, ValueError, OverflowError, TypeError, KeyError):
        return None
    return keys if all(len(set(each)) == len(each) for _, each in keys) else None


@lru_cache(maxsize=64)
def map_layout(schema: bytes, map_keys: MapKeys) -> MapLayout:
    """The layout of entries whose maps have these keys.

    Args:
        schema: the Avro schema of an entry without records in records.
        map_keys: the keys of each map.
    """
    described = json.loads(schema)
    known = dict(map_keys)
    fields: list[dict[str, Any]] = []
    keys: dict[str, tuple[int, ...]] = {}
    constants: dict[str, int] = {}
    for field in described["fields"]:
        name = field["name"]
        value_type = _value_type(field["type"])
        if name not in known or value_type is None:
            fields.append(field)
            continue
        keys[name] = known[name]
        if isinstance(field["type"], list):
            branch = next(number for number, each in enumerate(field["type"]) if each != "null")
            constants[f"{name}.branch"] = branch
            fields.append({"name": f"{name}.branch", "type": "long"})
        constants |= {f"{name}.pairs": len(known[name]), f"{name}.end": 0}
        fields.append({"name": f"{name}.pairs", "type": "long"})
        for place in range(len(known[name])):
            fields += [
                {"name": f"{name}.key{place}", "type": "int"},
                {"name": f"{name}.value{place}", "type": value_type},
            ]
        fields.append({"name": f"{name}.end", "type": "long"})
    text = json.dumps({**described, "fields": fields}).encode("utf-8")
    return MapLayout(text, keys, constants)


def _value_type(avro_type: Any) -> Any:
    """The type of the values of an array of pairs of a key and a value; None for any other type."""
    if isinstance(avro_type, list):
        others = [each for each in avro_type if each != "null"]
        avro_type = others[0] if len(others) == 1 else None
    if not isinstance(avro_type, dict) or avro_type.get("type") != "array":
        return None
    items = avro_type["items"]
    fields: list[dict[str, Any]] = items.get("fields", []) if isinstance(items, dict) else []
    if [field["name"] for field in fields] != ["key", "value"] or fields[0]["type"] != "int":
        return None
    return fields[1]["type"] if fields[1]["type"] in ("long", "bytes") else None
