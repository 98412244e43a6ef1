"""Iceberg's `ALTER TABLE` statements, read by recursive descent.

    ADD PARTITION FIELD transform [AS name]        REPLACE PARTITION FIELD transform WITH transform [AS name]
    DROP PARTITION FIELD transform-or-name         SET | DROP IDENTIFIER FIELDS column, …
    WRITE [[LOCALLY] ORDERED BY term, … | UNORDERED] [DISTRIBUTED BY PARTITION]
    CREATE [OR REPLACE] | REPLACE  BRANCH | TAG  [IF NOT EXISTS] name [AS OF VERSION id] [RETAIN n unit]
        [WITH SNAPSHOT RETENTION [n SNAPSHOTS] [n unit]]
    DROP BRANCH | TAG  [IF EXISTS] name

A transform is a column, or bucket(n, c), truncate(n, c), year(s), month(s), day(s) or hour(s) of one; a term is a
transform with [ASC | DESC] [NULLS FIRST | NULLS LAST]; a unit is DAYS, HOURS or MINUTES. Source: Apache Iceberg's
documentation of Spark, "ALTER TABLE SQL extensions".
"""

from __future__ import annotations

from collections.abc import Callable

from hms_iceberg.errors import SqlParseError
from hms_iceberg.spark.sql.statement_tokens import StatementToken, parse_error, tokenize
from hms_iceberg.spark.sql.statements import (
    AddPartitionFieldStatement,
    AnyStatement,
    DropIdentifierFieldsStatement,
    DropPartitionFieldStatement,
    DropRefStatement,
    PutRefStatement,
    ReplacePartitionFieldStatement,
    SetIdentifierFieldsStatement,
    SetWriteOrderStatement,
    SortTerm,
    TableStatement,
    TransformOf,
)
from hms_iceberg.spec.transforms.partition_transforms import SPELLINGS, transform_of_sql

_UNITS = {"DAYS": 86_400_000, "HOURS": 3_600_000, "MINUTES": 60_000}


def parse_statement(text: str) -> TableStatement | None:
    """The statement of a text, with or without a semicolon; None if it does not begin as one does: Spark's error
    stands. A text that begins so and does not go on so is refused, with a message that points at the place."""
    return _StatementParser(text).whole()


class _StatementParser:
    """Every method starts at the current token and leaves the next one current."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = tokenize(text)
        self._index = 0

    def whole(self) -> TableStatement | None:
        """The statement up to the end of the text."""
        if not self._take("ALTER", "TABLE"):
            return None
        try:
            table = self._multipart("the name of a table")
        except SqlParseError:
            return None
        for words, rest in self._statements().items():
            if self._take(*words):
                statement = rest()
                self._take(";")
                if self._token.kind != "end":
                    raise self._unexpected("the end of the statement")
                return TableStatement(table, f"ALTER TABLE ... {' '.join(words)}", statement)
        return None

    def _statements(self) -> dict[tuple[str, ...], Callable[[], AnyStatement]]:
        def put(is_branch: bool, create: bool, replace: bool) -> Callable[[], AnyStatement]:
            return lambda: self._put_ref(is_branch, create, replace)

        statements: dict[tuple[str, ...], Callable[[], AnyStatement]] = {
            ("ADD", "PARTITION", "FIELD"): lambda: AddPartitionFieldStatement(self._transform(), self._alias()),
            ("DROP", "PARTITION", "FIELD"): lambda: DropPartitionFieldStatement(self._transform()),
            ("REPLACE", "PARTITION", "FIELD"): self._replace_field,
            ("SET", "IDENTIFIER", "FIELDS"): lambda: SetIdentifierFieldsStatement(self._columns()),
            ("DROP", "IDENTIFIER", "FIELDS"): lambda: DropIdentifierFieldsStatement(self._columns()),
            ("WRITE",): self._write_order,
        }
        for kind, is_branch in (("BRANCH", True), ("TAG", False)):
            statements["CREATE", kind] = put(is_branch, create=True, replace=False)
            statements["CREATE", "OR", "REPLACE", kind] = put(is_branch, create=True, replace=True)
            statements["REPLACE", kind] = put(is_branch, create=False, replace=True)
            statements["DROP", kind] = lambda is_branch=is_branch: self._drop_ref(is_branch)  # type: ignore[misc]
        return statements

    # ------------------------------------------------------------------------------------------ statements

    def _replace_field(self) -> ReplacePartitionFieldStatement:
        field = self._transform()
        self._expect("WITH")
        return ReplacePartitionFieldStatement(field, self._transform(), self._alias())

    def _alias(self) -> str | None:
        return self._name("the name of the partition field") if self._take("AS") else None

    def _columns(self) -> tuple[str, ...]:
        columns = [self._column()]
        while self._take(","):
            columns.append(self._column())
        return tuple(columns)

    def _write_order(self) -> SetWriteOrderStatement:
        order: tuple[SortTerm, ...] = ()
        mode: str | None = None
        distributed = ordered = False
        while self._token.kind != "end" and self._token.word != ";":
            start = self._token
            if self._take("DISTRIBUTED"):
                self._expect("BY", "PARTITION")
                if distributed:
                    raise self._error("the statement has a second clause DISTRIBUTED BY", start)
                distributed = True
                continue
            found: tuple[SortTerm, ...] = ()
            its_mode: str | None = None
            if self._take("UNORDERED"):
                its_mode = "none"
            elif self._take("LOCALLY"):
                self._expect("ORDERED", "BY")
                found = self._order()
            elif self._take("ORDERED", "BY"):
                found, its_mode = self._order(), "range"
            else:
                raise self._unexpected("ORDERED BY, LOCALLY ORDERED BY, UNORDERED or DISTRIBUTED BY PARTITION")
            if ordered:
                raise self._error("the statement has a second clause of the order", start)
            ordered, order, mode = True, found, its_mode
        if not ordered and not distributed:
            raise self._unexpected("ORDERED BY, LOCALLY ORDERED BY, UNORDERED or DISTRIBUTED BY PARTITION")
        return SetWriteOrderStatement(order, "hash" if distributed else mode)

    def _order(self) -> tuple[SortTerm, ...]:
        in_brackets = self._take("(")
        terms = [self._sort_term()]
        while self._take(","):
            terms.append(self._sort_term())
        if in_brackets:
            self._expect(")")
        return tuple(terms)

    def _sort_term(self) -> SortTerm:
        term = self._transform()
        descending = self._take("DESC") or (self._take("ASC") and False)
        nulls_last = descending
        if self._take("NULLS"):
            nulls_last = self._take("LAST")
            if not nulls_last:
                self._expect("FIRST")
        return SortTerm(term, descending, nulls_last)

    def _put_ref(self, is_branch: bool, create: bool, replace: bool) -> PutRefStatement:
        if_not_exists = create and not replace and self._take("IF", "NOT", "EXISTS")
        name = self._name("the name of the branch" if is_branch else "the name of the tag")
        snapshot_id = self._number("the id of a snapshot") if self._take("AS", "OF", "VERSION") else None
        ref_age = self._age() if self._take("RETAIN") else None
        to_keep = snapshot_age = None
        if is_branch and self._take("WITH", "SNAPSHOT", "RETENTION"):
            number = self._number("a number of snapshots or of days, hours or minutes")
            if self._take("SNAPSHOTS"):
                to_keep = number
                snapshot_age = self._age() if self._token.kind == "number" or self._token.word == "-" else None
            else:
                snapshot_age = number * self._unit("SNAPSHOTS, ")
        return PutRefStatement(
            name, is_branch, create, replace, if_not_exists, snapshot_id, ref_age, to_keep, snapshot_age
        )

    def _drop_ref(self, is_branch: bool) -> DropRefStatement:
        if_exists = self._take("IF", "EXISTS")
        return DropRefStatement(
            self._name("the name of the branch" if is_branch else "the name of the tag"), is_branch, if_exists
        )

    def _age(self) -> int:
        return self._number("a number") * self._unit()

    def _unit(self, before: str = "") -> int:
        for unit, milliseconds in _UNITS.items():
            if self._take(unit):
                return milliseconds
        raise self._unexpected(f"{before}DAYS, HOURS or MINUTES")

    # ---------------------------------------------------------------------------------- columns and transforms

    def _column(self) -> str:
        return ".".join(self._multipart("the name of a column"))

    def _transform(self) -> TransformOf:
        following = self._tokens[min(self._index + 1, len(self._tokens) - 1)]
        if self._token.kind not in ("name", "quoted") or following.word != "(":
            return TransformOf(self._column())
        function = self._advance()
        kind = SPELLINGS.get(function.value.lower())
        if kind is None:
            known = ", ".join({each.spellings[0]: each for each in SPELLINGS.values()})
            raise self._error(f"the transform {function.value} is not supported; known are {known}", function)
        self._expect("(")
        if not kind.takes_number:
            column = self._column()
            self._expect(")")
            return TransformOf(column, str(kind()))
        return self._parameterized(function)

    def _parameterized(self, function: StatementToken) -> TransformOf:
        """The number is the first argument, or, as in older statements, the second."""
        first = self._token.kind == "number"
        number = self._width(function) if first else 0
        if first:
            self._expect(",")
        column = self._column()
        if not first:
            self._expect(",")
            number = self._width(function)
        self._expect(")")
        return TransformOf(column, str(transform_of_sql(function.value, number)))

    def _width(self, function: StatementToken) -> int:
        start = self._token
        number = self._number("a number")
        if not 0 < number < 2**31:
            raise self._error(f"{function.value} needs a number from 1 to {2**31 - 1}", start)
        return number

    # --------------------------------------------------------------------------------------------- tokens

    @property
    def _token(self) -> StatementToken:
        return self._tokens[self._index]

    def _advance(self) -> StatementToken:
        token = self._token
        self._index = min(self._index + 1, len(self._tokens) - 1)
        return token

    def _take(self, *words: str) -> bool:
        """Whether these words (or symbols) are next; if all of them are, they are taken."""
        following = [token.word for token in self._tokens[self._index : self._index + len(words)]]
        if following != list(words):
            return False
        self._index += len(words)
        return True

    def _expect(self, *words: str) -> None:
        for word in words:
            if not self._take(word):
                raise self._unexpected(word)

    def _multipart(self, expected: str) -> tuple[str, ...]:
        parts = [self._name(expected)]
        while self._take("."):
            parts.append(self._name(expected))
        return tuple(parts)

    def _name(self, expected: str) -> str:
        if self._token.kind not in ("name", "quoted") or not self._token.value:
            hint = "; a name that is not made of letters, digits and _ only is written in back quotes"
            raise self._unexpected(expected, hint if self._token.kind in ("number", "symbol") else "")
        return self._advance().value

    def _number(self, expected: str) -> int:
        negative = self._take("-")
        if self._token.kind != "number":
            raise self._unexpected(expected)
        token = self._advance()
        number = -int(token.value) if negative else int(token.value)
        if not -(2**63) <= number < 2**63:
            raise self._error(f"{number} is beyond the range of 64 bits", token)
        return number

    def _error(self, problem: str, token: StatementToken | None = None) -> SqlParseError:
        return parse_error(self._text, token or self._token, problem)

    def _unexpected(self, expected: str, hint: str = "") -> SqlParseError:
        token = self._token
        found = "the end" if token.kind == "end" else repr(self._text[token.start : token.end])
        return self._error(f"expected {expected}, found {found}{hint}")
