"""From the columns of a file to the columns of a table: by field id, at any depth.

Source: Iceberg specification, "Column Projection", "Default values", "Schema Evolution" (promotions).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from hms_iceberg.arrow.columns import nested
from hms_iceberg.arrow.columns.arrow_schema import (
    FIELD_ID_KEY,
    child_fields,
    constant,
    field_id_of,
    has_field_ids,
    to_arrow_type,
)
from hms_iceberg.arrow.columns.arrow_types import is_bytes, is_list_like, is_text, list_like, plain_type
from hms_iceberg.arrow.columns.nested import RowSelection
from hms_iceberg.arrow.columns.plain import to_plain
from hms_iceberg.arrow.columns.shredded_variants import unshredding
from hms_iceberg.errors import CorruptDataFileError, TypeMismatchError, UnsupportedError
from hms_iceberg.spec.data_types import (
    TIMESTAMPS,
    DecimalType,
    FixedType,
    IcebergType,
    ListType,
    MapType,
    NestedField,
    PrimitiveType,
    StructType,
    TimeType,
    UnknownType,
    UUIDType,
    VariantType,
)
from hms_iceberg.spec.field_mapping import MappedField, NameMapping

Converter = Callable[[pa.Array], pa.Array]


class FileProjection:
    """Converts the batches of one file to columns of a table's types: `leaves` are read, in ascending order, and
    `constants` (by field id) stand for columns that the file lacks."""

    def __init__(
        self,
        file_schema: pa.Schema,
        wanted: Iterable[NestedField],
        constants: Mapping[int, Any],
        location: str,
        nested_fields: bool = True,
    ) -> None:
        self._location = location
        self._file_schema = file_schema
        self._constants = constants
        self._absent_ids: set[int] = set()
        self._wanted = tuple(wanted)
        chosen: set[int] = set()
        by_id: dict[int, tuple[pa.Field, int]] = {}
        position = 0
        for field in file_schema:
            field_id = field_id_of(field)
            if field_id is not None:
                by_id.setdefault(field_id, (field, position))
            position += leaf_count(field)
        for target in self._wanted:
            found = by_id.get(target.field_id)
            if found is not None and not nested_fields:
                chosen.update(range(found[1], found[1] + leaf_count(found[0])))
            elif found is not None:
                _choose(found[0], found[1], target.field_type, chosen)
        self.leaves = sorted(chosen)
        pruned, _ = _prune(list(file_schema), 0, chosen)
        columns = {field_id_of(field): (index, field) for index, field in enumerate(pruned)}
        self._makers: list[tuple[int | None, Callable[..., pa.Array]]] = []
        for target in self._wanted:
            entry = columns.get(target.field_id)
            if entry is not None and not isinstance(target.field_type, UnknownType):
                self._makers.append((entry[0], self._converter(entry[1], target.field_type, target.name)))
            else:
                self._makers.append((None, self._absent(target, target.name)))

    def fits(self, file_schema: pa.Schema, wanted: tuple[NestedField, ...], constants: Mapping[int, Any]) -> bool:
        """Whether this is also the projection of another file."""
        return (
            wanted == self._wanted
            and file_schema.equals(self._file_schema, check_metadata=True)
            and all(_constant(constants, each) == _constant(self._constants, each) for each in self._absent_ids)
        )

    def project(self, batch: pa.RecordBatch) -> list[pa.Array]:
        return [self.column(index, batch) for index in range(len(self._makers))]

    def column(self, index: int, batch: pa.RecordBatch, rows: RowSelection | None = None) -> pa.Array:
        source, make = self._makers[index]
        if source is None:
            return make(batch.num_rows if rows is None else rows.rows)
        column = batch.column(source)
        return make(column if rows is None else rows.of(column))

    # ------------------------------------------------------------------------------------------ compilation

    def _absent(self, field: NestedField, path: str) -> Callable[[int], pa.Array]:
        """The values of a column that the file lacks: its constant, its default, or null."""
        self._absent_ids.add(field.field_id)
        value = self._constants.get(field.field_id, field.initial_default)
        if value is None and field.required:
            raise CorruptDataFileError(
                f"Cannot read column {path!r} of {self._location}: the column is required and has no default, but the "
                f"file has no column with field id {field.field_id}. The file is damaged, or was not written for this "
                f"table; restore it, or make the column optional."
            )
        return lambda length: constant(value, field.field_type, length)

    def _converter(self, file_field: pa.Field, target: IcebergType, path: str) -> Converter:
        kind = file_field.type
        if isinstance(kind, pa.BaseExtensionType):
            inner = self._converter(file_field.with_type(kind.storage_type), target, path)
            return lambda array: inner(array.storage)
        plain = plain_type(kind)
        if plain != kind:
            inner = self._converter(file_field.with_type(plain), target, path)
            return lambda array: inner(to_plain(array))
        if isinstance(target, StructType) and pa.types.is_struct(kind):
            return self._struct(kind, target, path)
        if (isinstance(target, ListType) and pa.types.is_list(kind)) or (
            isinstance(target, MapType) and pa.types.is_map(kind)
        ):
            return self._list_or_map(kind, target, path)
        if isinstance(target, VariantType):
            return self._variant(kind, path)
        convert = None if pa.types.is_nested(kind) else primitive_converter(kind, target)
        if convert is None:
            raise TypeMismatchError(
                f"Cannot read column {path!r} of {self._location}: the table's type is {target}, the file holds "
                f"{kind}, and values of that type cannot become {target} without loss. Rewrite the file."
            )
        return convert

    def _struct(self, kind: pa.DataType, target: StructType, path: str) -> Converter:
        present = {field_id_of(field): (index, field) for index, field in enumerate(child_fields(kind))}
        makers: list[tuple[int | None, Callable[..., pa.Array]]] = []
        fields = []
        for child in target.fields:
            found = present.get(child.field_id)
            if found is not None and not isinstance(child.field_type, UnknownType):
                makers.append((found[0], self._converter(found[1], child.field_type, f"{path}.{child.name}")))
            else:
                makers.append((None, self._absent(child, f"{path}.{child.name}")))
            plain = to_arrow_type(child.field_type, field_ids=False, extensions=False)
            fields.append(pa.field(child.name, plain, child.optional))

        def convert(array: pa.Array) -> pa.Array:
            children = nested.struct_children(array)
            made = [make(len(array)) if index is None else make(children[index]) for index, make in makers]
            return nested.make_struct(array, made, fields)

        return convert

    def _list_or_map(self, kind: pa.DataType, target: ListType | MapType, path: str) -> Converter:
        below = zip(child_fields(kind), target.children(), strict=True)
        inner = [self._converter(field, child.field_type, f"{path}.{child.name}") for field, child in below]
        fields = child_fields(to_arrow_type(target, field_ids=False, extensions=False))

        def convert(array: pa.Array) -> pa.Array:
            children = [make(child) for make, child in zip(inner, nested.children_of(array), strict=True)]
            return nested.with_children(array, children, fields)

        return convert

    def _variant(self, kind: pa.DataType, path: str) -> Converter:
        try:
            unshredded = unshredding(kind)
        except ValueError as error:
            raise UnsupportedError(
                f"Cannot read column {path!r} of {self._location}: the file holds {kind}, which is no form of a "
                f"variant: {error}. Leave the column out of selected_fields."
            ) from error
        target = to_arrow_type(VariantType(), field_ids=False)
        fields = [target.field(index) for index in range(2)]

        def convert(array: pa.Array) -> pa.Array:
            try:
                return nested.make_struct(array, unshredded(array), fields)
            except ValueError as error:
                raise CorruptDataFileError(
                    f"Cannot read column {path!r} of {self._location}: {error}. The file is damaged; restore it."
                ) from error

        return convert


def _constant(constants: Mapping[int, Any], field_id: int) -> str:
    """Text of a field's constant that differs for -0.0 and 0.0, and for null and no constant at all."""
    return repr(constants[field_id]) if field_id in constants else ""


# ------------------------------------------------------------------------------------------------ choosing leaves


def leaf_count(field: pa.Field) -> int:
    children = child_fields(field.type)
    return sum(map(leaf_count, children)) if children else 1


def _choose(field: pa.Field, position: int, target: IcebergType, chosen: set[int]) -> None:
    """Adds the leaves of a field that the target type needs; at least one, which tells nulls and lengths."""
    before = len(chosen)
    children = child_fields(field.type)
    starts = []
    at = position
    for child in children:
        starts.append(at)
        at += leaf_count(child)
    if isinstance(target, StructType) and pa.types.is_struct(field.type):
        wanted = {child.field_id: child for child in target.fields}
        for child, start in zip(children, starts, strict=True):
            match = wanted.get(field_id_of(child) or 0)
            if match is not None and not isinstance(match.field_type, UnknownType):
                _choose(child, start, match.field_type, chosen)
    elif isinstance(target, (ListType, MapType)) and len(children) == len(target.children()):
        for child, start, wanted_child in zip(children, starts, target.children(), strict=True):
            _choose(child, start, wanted_child.field_type, chosen)
    else:
        chosen.update(range(position, position + leaf_count(field)))
    if len(chosen) == before:
        chosen.add(_cheapest(field, position))


def _cheapest(field: pa.Field, position: int) -> int:
    """A leaf of the field, outside lists and maps if there is one."""
    children = child_fields(field.type)
    if not children:
        return position
    candidates = []
    for child in children:
        candidates.append((bool(pa.types.is_nested(child.type)), position, child))
        position += leaf_count(child)
    _, at, child = min(candidates, key=lambda each: each[:2])
    return _cheapest(child, at)


def _prune(fields: list[pa.Field], position: int, chosen: set[int]) -> tuple[list[pa.Field], int]:
    """The fields as a reader that only reads the chosen leaves gives them."""
    kept = []
    for field in fields:
        children = child_fields(field.type)
        if not children:
            if position in chosen:
                kept.append(field)
            position += 1
            continue
        below, position = _prune(children, position, chosen)
        if below:
            kept.append(field.with_type(_rebuilt(field.type, below)))
    return kept, position


def _rebuilt(kind: pa.DataType, children: list[pa.Field]) -> pa.DataType:
    if pa.types.is_map(kind):
        if len(children) == 1:  # a map of which only keys or values are read comes as a list of structs
            return pa.list_(pa.field("entries", pa.struct(children), False))
        return pa.map_(*children)
    if is_list_like(kind):
        return list_like(kind, children[0])
    return pa.struct(children)


# ------------------------------------------------------------------------------------------------ primitive types


def primitive_converter(kind: pa.DataType, target: IcebergType) -> Converter | None:
    """The function from a file's column to the table's type, or None; beside the promotions of the specification it
    takes other units, zones and widths, as files of other writers have them."""
    wanted = to_arrow_type(target, field_ids=False, extensions=False)
    types = pa.types
    if types.is_null(kind):
        return lambda array: constant(None, target, len(array))
    if kind == wanted:
        return _same
    if isinstance(target, TIMESTAMPS):
        return _timestamp_converter(kind, wanted)
    if isinstance(target, TimeType) and types.is_time(kind):
        return _floor_units(kind, wanted) if kind.unit == "ns" else _casts(wanted)
    if isinstance(target, PrimitiveType) and target.integer_bits == 64 and types.is_int64(kind):
        return lambda array: array.view(wanted)  # ORC's form of a time
    if isinstance(target, TimeType):
        return None
    if isinstance(target, DecimalType):
        fits = (
            types.is_decimal(kind)
            and kind.scale <= target.scale
            and kind.precision - kind.scale <= target.precision - target.scale
        )
        return _casts(wanted) if fits else None
    if isinstance(target, (FixedType, UUIDType)):
        return _casts(wanted) if is_bytes(kind) else None
    if types.is_string(wanted) or types.is_binary(wanted):
        fits = is_text(kind) or is_bytes(kind) or (types.is_fixed_size_binary(kind) and types.is_binary(wanted))
        return _casts(wanted) if fits else None
    if types.is_integer(wanted):
        fits = (types.is_signed_integer(kind) and kind.bit_width < wanted.bit_width) or (
            types.is_unsigned_integer(kind) and kind.bit_width < wanted.bit_width
        )
        return _casts(wanted) if fits else None
    if types.is_floating(wanted):
        return _casts(wanted) if types.is_floating(kind) and kind.bit_width < wanted.bit_width else None
    if types.is_date32(wanted):
        return _casts(wanted) if types.is_date64(kind) else None
    return None


def _same(array: pa.Array) -> pa.Array:
    return array


def _casts(wanted: pa.DataType) -> Converter:
    return lambda array: pc.cast(array, wanted)


def _timestamp_converter(kind: pa.DataType, wanted: pa.DataType) -> Converter | None:
    if pa.types.is_date(kind):
        return _casts(wanted)
    if not pa.types.is_timestamp(kind):
        return None
    if kind.unit == "ns" and wanted.unit == "us":
        return _floor_units(kind, wanted)
    # The zone only says how to show a value; what is stored stays, as Java does for files of other writers.
    same_zone = pa.timestamp(kind.unit, wanted.tz)
    unit = _same if kind.unit == wanted.unit else _casts(wanted)
    return lambda array: unit(array.view(same_zone))


def _floor_units(kind: pa.DataType, wanted: pa.DataType) -> Converter:
    """Nanoseconds to microseconds, down also before 1970."""

    def convert(array: pa.Array) -> pa.Array:
        if array.type.unit == wanted.unit:  # from an ORC file whose values nanoseconds cannot hold
            return array.view(wanted)
        nanos = array.view(pa.int64())
        down = pc.divide(nanos, 1000)
        inexact = pc.and_(pc.less(nanos, 0), pc.not_equal(pc.multiply(down, 1000), nanos))
        return pc.subtract(down, inexact.cast(pa.int64())).view(wanted)

    return convert


@dataclass(frozen=True, slots=True)
class FileLeaf:
    """One column chunk of a file. A leaf is `repeated` if a list or map encloses it. `owner_id` is the nearest field
    around it, or itself, that has an id, and `below` the names from there: a variant's parts have no ids."""

    index: int
    field_id: int | None
    repeated: bool
    type: pa.DataType
    path: tuple[str, ...]
    owner_id: int | None = None
    below: tuple[str, ...] = ()


def identified(schema: pa.Schema, mapping: NameMapping | None) -> pa.Schema:
    """The Arrow schema of a file with field ids: its own, those of the name mapping, or consecutive ones. Without
    either, top-level columns get 1, 2, 3 …, which is right for files written before ids were."""
    if has_field_ids(schema):
        return schema
    if mapping is not None:
        return pa.schema(_mapped(list(schema), mapping.fields))
    return pa.schema([_with_id(field, position) for position, field in enumerate(schema, start=1)])


def file_leaves(schema: pa.Schema) -> list[FileLeaf]:
    """The leaves of a file's schema in the order of its column chunks."""
    leaves: list[FileLeaf] = []
    for field in schema:
        _add_leaves(leaves, field, (), False, (None, 0))
    return leaves


def _add_leaves(
    leaves: list[FileLeaf], field: pa.Field, above: tuple[str, ...], repeated: bool, owner: tuple[int | None, int]
) -> None:
    path, kind = (*above, field.name), field.type
    field_id = field_id_of(field)
    if field_id is not None:
        owner = field_id, len(path)
    children = child_fields(kind)
    if not children:
        leaf = FileLeaf(len(leaves), field_id, repeated, _values_of(kind), path, owner[0], path[owner[1] :])
        leaves.append(leaf)
        return
    below = repeated or not pa.types.is_struct(_plain(kind))
    for child in children:
        _add_leaves(leaves, child, path, below, owner)


def _plain(kind: pa.DataType) -> pa.DataType:
    return kind.storage_type if isinstance(kind, pa.BaseExtensionType) else kind


def _values_of(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _with_id(field: pa.Field, field_id: int | None) -> pa.Field:
    if field_id is None:
        return field.remove_metadata()
    return field.with_metadata({FIELD_ID_KEY: str(field_id).encode()})


def _mapped(fields: Sequence[pa.Field], mappings: Sequence[MappedField]) -> list[pa.Field]:
    by_name = {name: mapped for mapped in mappings for name in mapped.names}
    return [_mapped_field(field, by_name.get(field.name)) for field in fields]


def _mapped_field(field: pa.Field, mapped: MappedField | None) -> pa.Field:
    if mapped is None:
        return field.remove_metadata()
    kind = field.type
    children = {name: child for child in mapped.fields for name in child.names}
    if pa.types.is_struct(kind):
        kind = pa.struct(_mapped(child_fields(kind), mapped.fields))
    elif is_list_like(kind):  # whatever the writer called it, a list's child is its element
        kind = list_like(kind, _mapped_field(kind.value_field, children.get("element")))
    elif pa.types.is_map(kind):
        kind = pa.map_(
            _mapped_field(kind.key_field, children.get("key")), _mapped_field(kind.item_field, children.get("value"))
        )
    return _with_id(field.with_type(kind), mapped.field_id)
