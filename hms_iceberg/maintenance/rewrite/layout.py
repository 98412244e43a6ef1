"""How rows stand in the files of a rewriting: as they come, sorted, or along a z-order curve."""

from __future__ import annotations

import re
from dataclasses import dataclass

from hms_iceberg.errors import InvalidInputError, UnknownColumnError, UnsupportedError
from hms_iceberg.expressions.text.tokens import Token, tokenize
from hms_iceberg.spec.data_types import GeographyType, GeometryType, PrimitiveType, UnknownType
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.sort_orders import NullOrder, SortDirection, SortField, SortOrder, check_sort_order
from hms_iceberg.spec.transforms.partition_transforms import IdentityTransform, Transform, transform_of_sql

_UNORDERED = (UnknownType, GeometryType, GeographyType)
_ZORDER = re.compile(r"\s*zorder\s*\((.*)\)\s*", re.IGNORECASE | re.DOTALL)


@dataclass(frozen=True)
class Layout:
    """How rows are ordered."""

    order: SortOrder | None = None  # how rows are sorted; None leaves them as they come
    zorder: tuple[int, ...] = ()  # ids of the columns of a z-order curve; empty for none

    @property
    def sorts(self) -> bool:
        """Whether all rows of a group are brought into order."""
        return self.order is not None or bool(self.zorder)


def layout_of(
    metadata: TableMetadata, strategy: str, sort_order: str | SortOrder | None, table: str, case_sensitive: bool
) -> Layout:
    """The layout that a strategy and an order ask for; without an order, `sort` takes the table's. An order may be
    text: `a desc nulls last, bucket(4, b)`, or `zorder(a, b)`."""
    what = f"Cannot rewrite the data files of table {table}"
    wanted = strategy.strip().lower()
    if wanted not in ("binpack", "sort"):
        raise InvalidInputError(f"{what}: unsupported strategy {strategy!r}, expected binpack or sort.")
    if wanted == "binpack":
        if sort_order is not None:
            raise InvalidInputError(f"{what}: binpack cannot take a sort order, {sort_order!s}. Use the strategy sort.")
        return Layout()
    if sort_order is None:
        order = metadata.sort_order()
        if order.is_unsorted:
            raise InvalidInputError(
                f"{what} with the strategy sort: the table has no sort order. Give one, such as sort_order='id desc', "
                "or set the table's (update_sort_order)."
            )
        return Layout(order)
    schema = metadata.schema()
    if isinstance(sort_order, SortOrder):
        check_sort_order(sort_order, schema)
        return Layout(_known(metadata, sort_order))
    curve = _ZORDER.fullmatch(sort_order)
    if curve:
        return Layout(zorder=_zorder(schema, curve[1], what, case_sensitive))
    if re.search(r"\bzorder\s*\(", sort_order, re.IGNORECASE):
        raise InvalidInputError(f"{what}: cannot mix columns and zorder(...) in one sort order, {sort_order!r}.")
    order = _OrderText(sort_order, schema, what, case_sensitive).order()
    check_sort_order(order, schema)
    return Layout(_known(metadata, order))


def _known(metadata: TableMetadata, order: SortOrder) -> SortOrder:
    """The table's own order if it is the same, so that files can name it; otherwise one that they do not name."""
    same = (each for each in metadata.sort_orders if not each.is_unsorted and each.same_as(order))
    return next(same, SortOrder(*order.fields, order_id=0))


def _zorder(schema: Schema, names: str, what: str, case_sensitive: bool) -> tuple[int, ...]:
    found = []
    for part in _split(names):
        field_id = _field_id(schema, part, what, case_sensitive)
        kind = schema.find_type(field_id)
        if not isinstance(kind, PrimitiveType) or isinstance(kind, _UNORDERED):
            raise UnsupportedError(f"{what}: column {part} of type {kind} cannot be part of a z-order.")
        found.append(field_id)
    if not found:
        raise InvalidInputError(f"{what}: zorder() needs at least one column.")
    return tuple(found)


def _split(names: str) -> list[str]:
    tokens = [token for token in tokenize(names) if token.kind != "end"]
    parts: list[str] = [""]
    for token in tokens:
        if token.kind == "operator" and token.value == ",":
            parts.append("")
        else:
            parts[-1] += token.value
    return [part for part in parts if part]


def _field_id(schema: Schema, name: str, what: str, case_sensitive: bool) -> int:
    try:
        return schema.find_field(name, case_sensitive=case_sensitive).field_id
    except UnknownColumnError as error:
        raise UnknownColumnError(f"{what}: cannot find the column of its sort order. {error}") from error


class _OrderText:
    """Reads `term [asc|desc] [nulls first|last], …`."""

    def __init__(self, text: str, schema: Schema, what: str, case_sensitive: bool) -> None:
        self._text = text
        self._schema = schema
        self._what = what
        self._case_sensitive = case_sensitive
        self._tokens = tokenize(text)
        self._index = 0

    def order(self) -> SortOrder:
        fields = [self._field()]
        while self._take(","):
            fields.append(self._field())
        if self._token.kind != "end":
            raise self._error("a comma or the end")
        return SortOrder(*fields)

    @property
    def _token(self) -> Token:
        return self._tokens[self._index]

    def _field(self) -> SortField:
        transform, source = self._term()
        direction = SortDirection.ASC
        if self._word("desc"):
            direction = SortDirection.DESC
        else:
            self._word("asc")
        nulls = NullOrder.NULLS_LAST if direction is SortDirection.DESC else NullOrder.NULLS_FIRST
        if self._word("nulls"):
            if self._word("first"):
                nulls = NullOrder.NULLS_FIRST
            elif self._word("last"):
                nulls = NullOrder.NULLS_LAST
            else:
                raise self._error("first or last")
        return SortField(source, transform, direction, nulls)

    def _term(self) -> tuple[Transform, int]:
        name = self._name()
        if not self._take("("):
            return IdentityTransform(), _field_id(self._schema, name, self._what, self._case_sensitive)
        arguments = [self._argument()]
        while self._take(","):
            arguments.append(self._argument())
        if not self._take(")"):
            raise self._error("a closing parenthesis")
        numbers = [each for each in arguments if each.isdigit()]
        columns = [each for each in arguments if not each.isdigit()]
        if len(columns) != 1 or len(numbers) > 1:
            raise InvalidInputError(f"{self._what}: {name}({', '.join(arguments)}) is no transform of one column.")
        transform = transform_of_sql(name, int(numbers[0]) if numbers else None)
        return transform, _field_id(self._schema, columns[0], self._what, self._case_sensitive)

    def _argument(self) -> str:
        if self._token.kind == "number":
            return self._next().value
        return self._name()

    def _name(self) -> str:
        parts = []
        while True:
            if self._token.kind not in ("name", "quoted"):
                raise self._error("a column")
            parts.append(self._next().value)
            if not self._take("."):
                return ".".join(parts)

    def _next(self) -> Token:
        token = self._token
        self._index += 1
        return token

    def _take(self, operator: str) -> bool:
        if self._token.kind == "operator" and self._token.value == operator:
            self._index += 1
            return True
        return False

    def _word(self, word: str) -> bool:
        if self._token.word == word:
            self._index += 1
            return True
        return False

    def _error(self, expected: str) -> InvalidInputError:
        found = "the end" if self._token.kind == "end" else repr(self._token.value)
        return InvalidInputError(
            f"{self._what}: cannot read the sort order {self._text!r} at position {self._token.start + 1}: expected "
            f"{expected}, found {found}."
        )
