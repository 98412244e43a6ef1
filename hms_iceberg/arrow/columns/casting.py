"""Incoming Arrow data made to fit a table's schema, by name, without loss, or refused.

Types are checked once for the whole input, before anything is written; values (nulls in required columns, casts that
would lose something) are checked batch by batch. Source: Iceberg specification, "Default values" (write defaults),
"Schemas and Data Types" (required).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from difflib import get_close_matches

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hms_iceberg.arrow.columns import geoarrow, nested
from hms_iceberg.arrow.columns.arrow_schema import child_fields, constant, to_arrow_field, to_arrow_type, unnamed_index
from hms_iceberg.arrow.columns.arrow_types import is_bytes, is_lossless, plain_field
from hms_iceberg.arrow.columns.plain import to_plain
from hms_iceberg.arrow.columns.shape_columns import NoShapeError, extents
from hms_iceberg.errors import NullValueError, SchemaMismatchError, TypeMismatchError
from hms_iceberg.spec.data_types import (
    LOCAL_TIMESTAMPS,
    ZONED_TIMESTAMPS,
    DecimalType,
    FloatType,
    GeographyType,
    GeometryType,
    IcebergType,
    IntegerType,
    ListType,
    MapType,
    NestedField,
    StringType,
    StructType,
    UUIDType,
    VariantType,
)
from hms_iceberg.spec.schema import Schema

# Converts one array; the second argument marks the rows that exist (None: all), so that a null in a required field
# of a null struct is no fault.
Converter = Callable[[pa.Array, "pa.Array | None"], pa.Array]


class SchemaFit:
    """Makes batches of one Arrow schema fit a table's schema: every column, in its order, with its types. A uuid
    becomes plain 16 bytes. Nanoseconds may lose digits for a microsecond column if `downcast_ns` says so."""

    def __init__(
        self, incoming: pa.Schema, schema: Schema, table: str | None = None, downcast_ns: bool = False
    ) -> None:
        self._table = f" of table {table}" if table else ""
        self._downcast_ns = downcast_ns
        fields = [plain_field(field) for field in incoming]
        self._columns = self._struct_converters(fields, schema.as_struct(), "", unnamed_index(incoming))
        self.schema = pa.schema([to_arrow_field(field, extensions=False) for field in schema.fields])

    def fit(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        columns = [
            make(batch.num_rows) if index is None else self._fitted(batch.field(index).name, batch.column(index), make)
            for index, make in self._columns
        ]
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def _fitted(self, name: str, array: pa.Array, make: Converter) -> pa.Array:
        try:
            return make(to_plain(array), None)
        except (pa.ArrowException, OverflowError) as error:
            raise TypeMismatchError(
                f"Cannot write column {name!r}{self._table}: its Arrow data of type {array.type} cannot be read: "
                f"{error}. Make the column anew, or cast it to a plain type."
            ) from error

    # ------------------------------------------------------------------------------------------ compilation

    def _struct_converters(
        self, incoming: list[pa.Field], struct: StructType, prefix: str, left_out: Collection[str] = ()
    ) -> list[tuple[int | None, Callable[..., pa.Array]]]:
        positions: dict[str, int] = {}
        for index, field in enumerate(incoming):
            if field.name in positions:
                raise SchemaMismatchError(
                    f"Cannot write to the columns{self._table}: the data has column {prefix + field.name!r} twice. "
                    f"Keep one of them."
                )
            positions[field.name] = index
        self._refuse_unknown([name for name in positions if name not in left_out], struct, prefix)
        converters: list[tuple[int | None, Callable[..., pa.Array]]] = []
        for field in struct.fields:
            found = positions.get(field.name)
            path = prefix + field.name
            if found is None:
                converters.append((None, self._absent(field, path)))
            else:
                converters.append((found, self._required(field, path, self._converter(incoming[found], field, path))))
        return converters

    def _refuse_unknown(self, names: Iterable[str], struct: StructType, prefix: str) -> None:
        known = [field.name for field in struct.fields]
        unknown = [name for name in names if name not in known]
        if not unknown:
            return
        lowered = {name.lower(): name for name in known}
        near = {match: None for name in unknown for match in get_close_matches(name.lower(), lowered, 3)}
        hint = f" Did you mean {', '.join(repr(prefix + lowered[match]) for match in near)}?" if near else ""
        raise SchemaMismatchError(
            f"Cannot write column {', '.join(repr(prefix + name) for name in unknown)}: the schema{self._table} has no "
            f"such column; it has {', '.join(repr(prefix + name) for name in known[:20])}.{hint} Names are compared "
            f"exactly; rename or drop the column, or add it to the table first (update_schema)."
        )

    def _absent(self, field: NestedField, path: str) -> Callable[[int], pa.Array]:
        if field.write_default is not None:
            return lambda length: constant(field.write_default, field.field_type, length, for_write=True)
        if field.required:
            raise SchemaMismatchError(
                f"Cannot write to the columns{self._table}: required column {path!r} ({field.field_type}) is missing "
                f"from the data and has no default. Add the column to the data."
            )
        return lambda length: _nulls(field.field_type, length)

    def _required(self, field: NestedField, path: str, convert: Converter) -> Converter:
        if field.optional:
            return convert

        def checked(array: pa.Array, live: pa.Array | None) -> pa.Array:
            if array.null_count:
                nulls = array.is_null() if live is None else pc.and_(array.is_null(), live)
                count = pc.sum(nulls).as_py() or 0
                if count:
                    raise NullValueError(
                        f"Cannot write column {path!r}{self._table}: it is required, but {count:,} of {len(array):,} "
                        f"values in a batch are null. Fill the nulls or make the column optional."
                    )
            return nested.without_nulls(convert(array, live))

        return checked

    def _converter(self, incoming: pa.Field, field: NestedField, path: str) -> Converter:
        kind = incoming.type
        target = field.field_type
        if pa.types.is_null(kind):
            return lambda array, _live: _nulls(target, len(array))
        if isinstance(target, (GeometryType, GeographyType)):
            return self._shapes(incoming, field, path)
        if isinstance(kind, pa.BaseExtensionType) and geoarrow.is_shape(incoming):
            inner = self._converter(pa.field(incoming.name, kind.storage_type), field, path)
            return lambda array, live: inner(array.storage, live)
        if isinstance(kind, (pa.UuidType, pa.JsonType)):
            if isinstance(target, UUIDType if isinstance(kind, pa.UuidType) else StringType):
                storage = kind.storage_type
                inner = self._converter(incoming.with_type(storage), field, path)
                return lambda array, live: inner(array.storage, live)
            raise self._mismatch(path, field, kind)
        if isinstance(target, StructType) and pa.types.is_struct(kind):
            return self._struct(kind, target, path)
        if (isinstance(target, ListType) and pa.types.is_list(kind)) or (
            isinstance(target, MapType) and pa.types.is_map(kind)
        ):
            return self._list_or_map(kind, target, path)
        if isinstance(target, VariantType) and pa.types.is_struct(kind):
            return self._variant(kind, field, path)
        if not is_lossless(kind, target):
            raise self._mismatch(path, field, kind)
        return self._cast(kind, target, path)

    def _shapes(self, incoming: pa.Field, field: NestedField, path: str) -> Converter:
        kind, target = incoming.type, field.field_type
        if geoarrow.is_shape(incoming):
            try:
                geoarrow.check_shape(incoming, target)
            except ValueError as error:
                raise TypeMismatchError(
                    f"Cannot write column {path!r}{self._table}, which is {target}: {error}. {geoarrow.ADVICE}"
                ) from error
        is_extension = isinstance(kind, pa.BaseExtensionType)
        storage = kind.storage_type if is_extension else kind
        if (is_extension and not geoarrow.is_shape(incoming)) or not is_lossless(storage, target):
            raise self._mismatch(path, field, kind)
        to_bytes = self._cast(storage, target, path)

        def convert(array: pa.Array, live: pa.Array | None) -> pa.Array:
            shapes = to_bytes(array.storage if is_extension else array, live)
            if live is not None:
                shapes = pc.if_else(live, shapes, pa.scalar(None, shapes.type))
            try:
                found = extents(shapes).whole()
            except NoShapeError as error:
                raise TypeMismatchError(
                    f"Cannot write column {path!r}{self._table}: {error}. {geoarrow.ADVICE}"
                ) from error
            if isinstance(target, GeographyType) and (
                min(found.low[0], -found.high[0]) < -180 or min(found.low[1], -found.high[1]) < -90
            ):
                raise TypeMismatchError(
                    f"Cannot write column {path!r}{self._table}: a {target} has longitudes from -180 to 180 and "
                    f"latitudes from -90 to 90, found {found.low[0]} to {found.high[0]} and {found.low[1]} to "
                    f"{found.high[1]}. Bring the coordinates onto the globe, or make the column a geometry."
                )
            return shapes

        return convert

    def _struct(self, kind: pa.DataType, target: StructType, path: str) -> Converter:
        children = self._struct_converters(child_fields(kind), target, path + ".")
        fields = [to_arrow_field(field, extensions=False) for field in target.fields]

        def convert(array: pa.Array, live: pa.Array | None) -> pa.Array:
            if array.null_count:
                valid = array.is_valid()
                live = valid if live is None else pc.and_(valid, live)
            given = nested.struct_children(array)
            made = [make(len(array)) if index is None else make(given[index], live) for index, make in children]
            return nested.make_struct(array, made, fields)

        return convert

    def _variant(self, kind: pa.DataType, field: NestedField, path: str) -> Converter:
        places = {each.name: index for index, each in enumerate(child_fields(kind)) if is_bytes(each.type)}
        if kind.num_fields != 2 or places.keys() != {"metadata", "value"}:
            raise self._mismatch(path, field, kind)
        fields = child_fields(to_arrow_type(VariantType(), field_ids=False))

        def convert(array: pa.Array, live: pa.Array | None) -> pa.Array:
            children = nested.struct_children(array)
            made = [children[places[each.name]].cast(pa.binary()) for each in fields]
            valid = array.is_valid() if live is None else pc.and_(array.is_valid(), live)
            if any(child.null_count and pc.any(pc.and_(child.is_null(), valid)).as_py() for child in made):
                raise NullValueError(
                    f"Cannot write column {path!r}{self._table}: a variant lacks its metadata or its value. Make "
                    "variants with hms_iceberg.variant."
                )
            return nested.make_struct(array, [nested.without_nulls(child) for child in made], fields)

        return convert

    def _list_or_map(self, kind: pa.DataType, target: ListType | MapType, path: str) -> Converter:
        inner = []
        for found, child in zip(child_fields(kind), target.children(), strict=True):
            name = f"{path}.{child.name}"
            inner.append(self._required(child, name, self._converter(found, child, name)))
        fields = [to_arrow_field(child, extensions=False) for child in target.children()]

        def convert(array: pa.Array, live: pa.Array | None) -> pa.Array:
            array = _only_live(array, live)
            children = [make(child, None) for make, child in zip(inner, nested.children_of(array), strict=True)]
            return nested.with_children(array, children, fields)

        return convert

    def _cast(self, kind: pa.DataType, target: IcebergType, path: str) -> Converter:
        wanted = to_arrow_type(target, field_ids=False, extensions=False)
        if kind == wanted:
            return lambda array, _live: array
        safe = not (self._downcast_ns and pa.types.is_timestamp(kind) and kind.unit == "ns")

        def convert(array: pa.Array, _live: pa.Array | None) -> pa.Array:
            try:
                return pc.cast(array, wanted, safe=safe)
            except pa.ArrowInvalid as error:
                raise TypeMismatchError(
                    f"Cannot write column {path!r}{self._table}: a value of type {kind} does not fit {target} without "
                    f"loss ({error}). Round or convert the column first."
                ) from error

        return convert

    def _mismatch(self, path: str, field: NestedField, found: pa.DataType) -> TypeMismatchError:
        return TypeMismatchError(
            f"Cannot write column {path!r}{self._table}: expected {field.field_type}, found Arrow type {found}."
            f"{_advice(field.field_type, found)}"
        )


def _only_live(array: pa.Array, live: pa.Array | None) -> pa.Array:
    """Makes rows that do not exist null, and drops values that hide behind nulls of a list."""
    if live is not None and not pc.all(live).as_py():
        places = pa.array(np.arange(len(array)))
        return array.take(pc.if_else(live, places, pa.scalar(None, pa.int64())))
    if not array.null_count:
        return array
    lengths = pc.subtract(array.offsets[1:], array.offsets[:-1])
    hidden = pc.sum(pc.if_else(array.is_null(), lengths, pa.scalar(0, lengths.type))).as_py()
    return array if not hidden else array.take(pa.array(np.arange(len(array))))


def _advice(target: IcebergType, found: pa.DataType) -> str:
    if pa.types.is_timestamp(found):
        if isinstance(target, ZONED_TIMESTAMPS):
            return " The data has no time zone: say which one it is in (pyarrow.compute.assume_timezone)."
        if isinstance(target, LOCAL_TIMESTAMPS):
            return " The data has a time zone: convert it to local time (pyarrow.compute.local_timestamp)."
    if isinstance(target, (GeometryType, GeographyType)):
        return f" {geoarrow.ADVICE}"
    if isinstance(target, VariantType):
        return " Make a column of variants: hms_iceberg.variant."
    if isinstance(target, (IntegerType, FloatType, DecimalType)) and (
        pa.types.is_integer(found) or pa.types.is_floating(found) or pa.types.is_decimal(found)
    ):
        return " A narrower type could lose digits: cast the column yourself, or promote the table's column."
    return f" Cast the column to {target} first."


def _nulls(kind: IcebergType, length: int) -> pa.Array:
    """Nulls to write. Required fields below them hold arbitrary values: Parquet's writer refuses nulls even there."""
    if not isinstance(kind, StructType):
        return constant(None, kind, length)
    children = [_nulls(field.field_type, length) for field in kind.fields]
    children = [
        child if field.optional else nested.without_nulls(child)
        for child, field in zip(children, kind.fields, strict=True)
    ]
    fields = [to_arrow_field(field, extensions=False) for field in kind.fields]
    return pa.StructArray.from_arrays(children, fields=fields, mask=pa.repeat(True, length))
