"""Whether the files of a Hive table can be read as the Iceberg table that it becomes, and under which names.

Hive matches columns without regard to case and converts types when it reads; Iceberg matches names exactly, through
the name mapping, and promotes types only upwards. Source: Iceberg specification, "Column Projection" and "Schema
Evolution".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

import pyarrow as pa

from hms_iceberg.arrow.columns.arrow_schema import field_id_of
from hms_iceberg.arrow.columns.arrow_types import stands_for
from hms_iceberg.migration.hive.format_footers import AVRO, ORC, PARQUET, AvroNames
from hms_iceberg.spec.data_types import (
    MICRO_TIMESTAMPS,
    IcebergType,
    ListType,
    MapType,
    NestedField,
    NestedType,
    StructType,
    TimestampType,
    TimestamptzType,
)
from hms_iceberg.spec.field_mapping import MappedField

INSTANT = "instant"
LOCAL = "local"
# What Hive 1 and 2.0 call the columns of ORC files: they are the table's by their place.
_PLACE = re.compile(r"_col(\d+)")
# What Hive puts around each row of a transactional table. Source: Apache Hive, `OrcRecordUpdater`.
_ACID_COLUMNS = {"operation", "originalTransaction", "bucket", "rowId", "currentTransaction", "row"}


@dataclass
class FileSchemaFacts:
    """A file's schema compared with the table's: its columns under the file's names (`mapped`), kinds of timestamps by
    field id, and `problems`, for which the file cannot be read as the table."""

    mapped: tuple[MappedField, ...] = ()
    timestamps: dict[int, str] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)


def examine(
    columns: Sequence[NestedField],
    schema: pa.Schema,
    int96: frozenset[str] = frozenset(),
    file_format: str = PARQUET,
    avro_names: AvroNames | None = None,
) -> FileSchemaFacts:
    """Compares a file's columns with the table's; `int96` names the file's top-level columns with INT96 timestamps.
    `avro_names` are names by which Hive finds its columns in Avro files; None for the columns' own."""
    facts = FileSchemaFacts()
    examiner = _Examiner(facts, int96, file_format)
    if file_format == AVRO:
        examiner.check_names(columns, schema.names, avro_names or AvroNames())
        aliases = avro_names.names if avro_names else {}
    else:
        aliases = _places(columns, schema.names) if file_format == ORC else {}
        if file_format == ORC and set(schema.names) >= _ACID_COLUMNS:
            facts.problems.append("holds rows with the marks of a transactional (ACID) table, some of them deleted")
    facts.mapped = examiner.struct(columns, list(schema), "", aliases)
    return facts


def _places(columns: Sequence[NestedField], names: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Other names of the columns in a file whose columns have only places."""
    if not names or [_PLACE.fullmatch(name) and name for name in names] != [f"_col{n}" for n in range(len(names))]:
        return {}
    return {column.name.lower(): (f"_col{place}",) for place, column in enumerate(columns)}


class _Examiner:
    def __init__(self, facts: FileSchemaFacts, int96: frozenset[str], file_format: str) -> None:
        self._facts = facts
        self._int96 = int96
        self._format = file_format
        self._top = ""

    def check_names(self, columns: Sequence[NestedField], names: Sequence[str], hive: AvroNames) -> None:
        """Refuses an Avro file of which Hive would not read a column that we would, or give it a default."""
        for column in columns:
            known = hive.of(column.name)
            found = [name for name in names if name.lower() in {each.lower() for each in known}]
            if hive.exact and found and not set(found) & set(known):
                self._facts.problems.append(
                    f"has the column {found[0]!r}, which Hive does not take for {column.name!r}, as it compares names "
                    "in Avro files letter by letter"
                )
            if not found and column.name.lower() in hive.defaults:
                self._facts.problems.append(
                    f"lacks the column {column.name!r}, for which the table's Avro schema has the default "
                    f"{hive.defaults[column.name.lower()]!r}"
                )

    def struct(
        self,
        fields: Sequence[NestedField],
        found: Sequence[pa.Field],
        prefix: str,
        aliases: Mapping[str, tuple[str, ...]] = MappingProxyType({}),
    ) -> tuple[MappedField, ...]:
        """Matches the fields of a struct by name, exactly if possible, else without regard to case."""
        mapped = []
        for expected in fields:
            path = prefix + expected.name
            names = {each.lower() for each in aliases.get(expected.name.lower(), (expected.name,))}
            same = [each for each in found if each.name.lower() in names]
            exact = [each for each in same if each.name == expected.name]
            if len(same) > 1:  # even if one is exact: Hive reads whichever comes first or last, without regard to case
                self._facts.problems.append(f"has several columns for {path!r}: {[each.name for each in same]}")
                continue
            actual = (exact or same or [None])[0]
            if actual is None:
                mapped.append(_under(expected, expected.name))
                continue
            if not prefix:
                self._top = actual.name
            mapped.append(self.field(expected, actual, path))
        return tuple(mapped)

    def field(self, expected: NestedField, actual: pa.Field, path: str) -> MappedField:
        """One column with all that is nested in it."""
        file_id = field_id_of(actual)
        if file_id is not None and file_id != expected.field_id:
            self._facts.problems.append(
                f"numbers the column {path!r} as field {file_id}, and Iceberg reads by such numbers; rewrite the file "
                "without field ids"
            )
        kind, wanted = actual.type, expected.field_type
        nested: tuple[MappedField, ...] = ()
        if isinstance(wanted, StructType) and pa.types.is_struct(kind):
            nested = self.struct(wanted.fields, [kind.field(i) for i in range(kind.num_fields)], path + ".")
        elif isinstance(wanted, ListType) and _is_list(kind):
            nested = (self._child(wanted.element_field, kind.value_field, path, "element"),)
        elif isinstance(wanted, MapType) and pa.types.is_map(kind):
            nested = (
                self._child(wanted.key_field, kind.key_field, path, "key"),
                self._child(wanted.value_field, kind.item_field, path, "value"),
            )
        elif not stands_for(kind, _with_zone_of(kind, wanted), self._format, self._top in self._int96):
            self._facts.problems.append(f"holds {kind} in the column {path!r}, which is a {wanted} in the table")
        elif isinstance(wanted, MICRO_TIMESTAMPS):
            self._timestamp(expected.field_id, kind)
        return MappedField(expected.field_id, tuple(dict.fromkeys((expected.name, actual.name))), nested)

    def _child(self, expected: NestedField, actual: pa.Field, path: str, name: str) -> MappedField:
        mapped = self.field(expected, actual, f"{path}.{name}")
        # Readers call the child of a list `element` and those of a map `key` and `value`, whatever the writer did.
        return MappedField(mapped.field_id, tuple(dict.fromkeys((name, *mapped.names))), mapped.fields)

    def _timestamp(self, field_id: int, kind: pa.TimestampType) -> None:
        instant = kind.tz is not None or self._top in self._int96
        self._facts.timestamps[field_id] = INSTANT if instant else LOCAL


def _with_zone_of(kind: pa.DataType, wanted: IcebergType) -> IcebergType:
    """The table's type; its timestamps have a zone here if those of the file do. All files together decide later."""
    if not isinstance(wanted, MICRO_TIMESTAMPS) or not pa.types.is_timestamp(kind):
        return wanted
    return TimestampType() if kind.tz is None else TimestamptzType()


def _under(expected: NestedField, name: str) -> MappedField:
    kind = expected.field_type
    children = kind.children() if isinstance(kind, NestedType) else ()
    return MappedField(expected.field_id, (name,), tuple(_under(child, child.name) for child in children))


def _is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind))


def merge_mapped(groups: Sequence[Sequence[MappedField]]) -> tuple[MappedField, ...]:
    """The name mappings of several files as one: names of the first file come first."""
    return tuple(_merged(same) for same in zip(*groups, strict=True))


def _merged(same: Sequence[MappedField]) -> MappedField:
    names = dict.fromkeys((*same[0].names, *sorted({name for each in same for name in each.names})))
    nested = [each.fields for each in same if each.fields]
    return MappedField(same[0].field_id, tuple(names), merge_mapped(nested) if nested else ())


def contradictions(mapped: Sequence[MappedField], prefix: str = "") -> Iterator[str]:
    """Names that would stand for two fields of one struct in the merged mapping of all files."""
    seen: dict[str, MappedField] = {}
    for each in mapped:
        for name in each.names:
            if name in seen:
                yield f"{prefix}{name}"
            seen[name] = each
        yield from contradictions(each.fields, f"{prefix}{each.names[0]}.")
