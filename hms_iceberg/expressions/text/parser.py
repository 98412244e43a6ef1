"""Filter strings to predicate trees: `parse("id in (1, 2) and ts >= '2024-01-01'")`.

The language is the predicate part of SQL, in the spellings of Spark and of PyIceberg:

    and, or, not, ( )                          true, false, a boolean column by itself
    = == != <> < <= > >= <=>                   either side may be the column
    [not] in (…), [not] between … and …        is [not] null / nan / true / false / distinct from …
    [not] like 'abc%'                          as prefix or exact only; \\% and \\_ are literal
    a.b, `a b`.`c`, "a b"                      names; nested fields with dots
    1, -2.5, 1e3, 10L, 1.5D, 'it''s', true     literals
    date'…', time'…', timestamp'…', timestamp_ntz'…', uuid'…', X'0AFF', cast('…' as date), double('NaN')
    isnull(a), isnotnull(a), isnan(a), startswith(a, 'x'), year(a), intersects_box(a, 10, 45, 12.5, 47)
    bucket(16, a), truncate(4, a), years(a), months(a), days(a), hours(a), date(a)

Times without a zone are UTC if they meet a column that has one. Backslashes in strings are ordinary characters.
"""

from __future__ import annotations

from collections.abc import Callable

from hms_iceberg.errors import ExpressionParseError, TypeMismatchError
from hms_iceberg.expressions.literals import Literal, Operator, literal
from hms_iceberg.expressions.terms import Reference, Term, Transformed, VariantGet
from hms_iceberg.expressions.text import functions
from hms_iceberg.expressions.text.functions import CalendarYear, Operand, like_predicate
from hms_iceberg.expressions.text.tokens import Token, parse_error, tokenize
from hms_iceberg.expressions.tree import (
    AlwaysFalse,
    AlwaysTrue,
    And,
    BooleanExpression,
    EqualTo,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNaN,
    IsNull,
    LessThan,
    LessThanOrEqual,
    Not,
    NotEqualTo,
    NotIn,
    NotNaN,
    NotNull,
    Or,
)

# Below the limit of trees, as some conditions become trees of their own.
MAX_DEPTH = 80

_COMPARISONS = {
    "=": Operator.EQ,
    "==": Operator.EQ,
    "<=>": Operator.EQ,
    "!=": Operator.NOT_EQ,
    "<>": Operator.NOT_EQ,
    "<": Operator.LT,
    "<=": Operator.LT_EQ,
    ">": Operator.GT,
    ">=": Operator.GT_EQ,
}
_RESERVED = frozenset(("and", "or", "not", "in", "is", "like", "between"))


def parse(expr: str) -> BooleanExpression:
    """The tree of a filter string.

    Args:
        expr: a condition as in SQL's `where`, without that word; see the head of this module.

    Returns:
        The unbound tree. `str(tree)` is a filter string that parses to an equal tree.

    Raises:
        ExpressionParseError: the text is no such condition; the message shows the position.
    """
    if not isinstance(expr, str):
        raise ExpressionParseError(f"Cannot read the filter: expected a string, got {expr!r} ({type(expr).__name__})")
    parser = _FilterParser(expr)
    try:
        return parser.whole()
    except RecursionError:
        raise parser.error("the filter is nested too deeply for the caller's stack") from None


class _FilterParser:
    """A recursive-descent parser; every method starts at the current token and leaves the next one current."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = tokenize(text)
        self.index = 0
        self.depth = 0

    # -------------------------------------------------------------------------------------------- tokens

    @property
    def token(self) -> Token:
        return self.tokens[self.index]

    def peek(self) -> Token:
        return self.tokens[min(self.index + 1, len(self.tokens) - 1)]

    def advance(self) -> Token:
        token = self.token
        self.index = min(self.index + 1, len(self.tokens) - 1)
        return token

    def error(self, problem: str, token: Token | None = None) -> ExpressionParseError:
        return parse_error(self.text, (token or self.token).start, problem)

    def unexpected(self, expected: str) -> ExpressionParseError:
        token = self.token
        found = "the end" if token.kind == "end" else repr(self.text[token.start : token.end])
        return self.error(f"expected {expected}, found {found}")

    def take_word(self, *words: str) -> bool:
        """Step over these words where they are next."""
        for offset, word in enumerate(words):
            at = self.index + offset
            if at >= len(self.tokens) or self.tokens[at].word != word:
                return False
        self.index += len(words)
        return True

    def take_operator(self, operator: str) -> bool:
        if self.token.kind == "operator" and self.token.value == operator:
            self.advance()
            return True
        return False

    def need_operator(self, operator: str, expected: str) -> None:
        if not self.take_operator(operator):
            raise self.unexpected(expected)

    # ----------------------------------------------------------------------------------- boolean structure

    def whole(self) -> BooleanExpression:
        if self.token.kind == "end":
            raise self.error("it is empty; write 'true' for all rows")
        start = self.token
        result = self.boolean(self.disjunction(), start)
        if self.token.kind != "end":
            raise self.unexpected("'and', 'or' or the end")
        return result

    def disjunction(self) -> Operand:
        return self.chain("or", self.conjunction, Or)

    def conjunction(self) -> Operand:
        return self.chain("and", self.negation, And)

    def chain(self, word: str, part: Callable[[], Operand], node: type[And] | type[Or]) -> Operand:
        start = self.token
        first = part()
        if self.token.word != word:
            return first
        operands = [self.boolean(first, start)]
        while self.take_word(word):
            start = self.token
            operands.append(self.boolean(part(), start))
        return node(*operands)

    def negation(self) -> Operand:
        count = 0
        while self.take_word("not"):
            count += 1
        if not count:
            return self.condition()
        start = self.token
        inner = self.boolean(self.condition(), start)
        return Not(inner) if count % 2 else inner

    def boolean(self, operand: Operand, start: Token) -> BooleanExpression:
        """An operand that stands where a condition is needed: a boolean column, `true` or `false`."""
        if isinstance(operand, BooleanExpression):
            return operand
        if isinstance(operand, (Reference, VariantGet)):
            return EqualTo(operand, True)
        if isinstance(operand, Literal) and isinstance(operand.value, bool):
            return AlwaysTrue() if operand.value else AlwaysFalse()
        what = "null" if operand is None else str(operand)
        raise self.error(f"{what} is not a condition; compare it with something", start)

    # ------------------------------------------------------------------------------------------ conditions

    def condition(self) -> Operand:
        start = self.token
        operand = self.operand()
        token = self.token
        if token.kind == "operator" and token.value in _COMPARISONS:
            return self.comparison(operand, start)
        if token.word == "is":
            return self.is_condition(operand, start)
        negated = token.word == "not" and self.peek().word in ("in", "between", "like")
        if negated:
            self.advance()
        if self.take_word("in"):
            return self.membership(self.term(operand, start), negated)
        if self.take_word("between"):
            return self.between(self.term(operand, start), negated)
        if self.take_word("like"):
            return self.like(self.term(operand, start), negated)
        if token.word in ("ilike", "rlike", "regexp", "similar"):
            raise self.error(f"{token.value!r} is not possible in a filter; only like 'prefix%' is")
        return operand

    def term(self, operand: Operand, start: Token) -> Term | CalendarYear:
        if isinstance(operand, (Reference, Transformed, VariantGet, CalendarYear)):
            return operand
        raise self.error("expected a column", start)

    def comparison(self, left: Operand, start: Token) -> BooleanExpression:
        operator = self.advance()
        right_start = self.token
        right = self.operand()
        operation = _COMPARISONS[operator.value]
        null_safe = operator.value == "<=>"
        if isinstance(left, BooleanExpression) or isinstance(right, BooleanExpression):
            raise self.error("a condition cannot be compared; combine conditions with 'and', 'or' and 'not'", operator)
        if left is None or right is None:
            return self.null_comparison(operator, left, right)
        if isinstance(left, Literal):
            if isinstance(right, Literal):
                return self.checked(operator, lambda: functions.compare_literals(operation, left, right))
            return self.checked(start, lambda: functions.compare(operation.flipped, right, left, null_safe))
        if not isinstance(right, Literal):
            raise self.error(
                f"a filter cannot compare two columns ({left} and {right}); strings are written in single quotes",
                right_start,
            )
        return self.checked(right_start, lambda: functions.compare(operation, left, right, null_safe))

    def null_comparison(self, operator: Token, left: Operand, right: Operand) -> BooleanExpression:
        other = right if left is None else left
        if operator.value == "<=>" and isinstance(other, (Reference, Transformed, VariantGet)):
            return IsNull(other)
        raise self.error(f"{operator.value} null is never true; write 'is null' or 'is not null'", operator)

    def is_condition(self, operand: Operand, start: Token) -> BooleanExpression:
        self.advance()
        negated = self.take_word("not")
        term = self.term(operand, start)
        if isinstance(term, CalendarYear):
            term = term.reference
        if self.take_word("null"):
            return NotNull(term) if negated else IsNull(term)
        if self.take_word("nan"):
            return NotNaN(term) if negated else IsNaN(term)
        for word, truth in (("true", True), ("false", False)):
            if self.take_word(word):
                return _is_other(term, truth) if negated else _is_same(term, truth)
        if self.take_word("distinct", "from"):
            value_start = self.token
            value = self.operand()
            if value is None:
                return IsNull(term) if negated else NotNull(term)
            if not isinstance(value, Literal):
                raise self.error("expected a literal", value_start)
            return _is_same(term, value) if negated else _is_other(term, value)
        raise self.unexpected("'null', 'nan', 'true', 'false' or 'distinct from'")

    def membership(self, term: Term | CalendarYear, negated: bool) -> BooleanExpression:
        self.need_operator("(", "'(' and a list of literals")
        values: list[Literal] = []
        while True:
            values.append(functions.year_literal(self.value("a literal"), term))
            if self.take_operator(")"):
                break
            self.need_operator(",", "',' or ')'")
        node = NotIn if negated else In
        return node(functions.source(term), values)

    def between(self, term: Term | CalendarYear, negated: bool) -> BooleanExpression:
        low = functions.year_literal(self.value("the lower limit"), term)
        if not self.take_word("and"):
            raise self.unexpected("'and' and the upper limit")
        high = functions.year_literal(self.value("the upper limit"), term)
        tested = functions.source(term)
        if negated:
            return Or(LessThan(tested, low), GreaterThan(tested, high))
        return And(GreaterThanOrEqual(tested, low), LessThanOrEqual(tested, high))

    def like(self, term: Term | CalendarYear, negated: bool) -> BooleanExpression:
        pattern = self.advance()
        if pattern.kind != "string" or isinstance(term, CalendarYear):
            raise self.error("like needs a column and a pattern in single quotes", pattern)
        escape = "\\"
        if self.take_word("escape"):
            character = self.advance()
            if character.kind != "string" or len(character.value) != 1:
                raise self.error("expected one character in single quotes after 'escape'", character)
            escape = character.value
        return self.checked(pattern, lambda: like_predicate(term, pattern.value, escape, negated))

    def value(self, expected: str) -> Literal:
        start = self.token
        operand = self.operand()
        if operand is None:
            raise self.error("a comparison with null is never true; write 'is null' beside it", start)
        if not isinstance(operand, Literal):
            raise self.error(f"expected {expected}, found {self.text[start.start : start.end]!r}", start)
        return operand

    def checked(self, token: Token, make: Callable[[], BooleanExpression]) -> BooleanExpression:
        """Calls `make`, and shows its errors at the token's place in the text."""
        try:
            return make()
        except (TypeMismatchError, ValueError) as error:
            raise self.error(str(error), token) from None

    # -------------------------------------------------------------------------------------------- operands

    def operand(self) -> Operand:
        """A column, a literal (None for null), a function, or anything in parentheses."""
        token = self.token
        if token.kind == "operator":
            if token.value == "(":
                return self.parenthesis()
            if token.value in "+-":
                return self.signed_number()
        if token.kind == "string":
            return literal(self.advance().value)
        if token.kind == "number":
            return self.number("")
        if token.kind == "quoted":
            return self.name()
        if token.kind == "name":
            return self.word()
        raise self.unexpected("a column or a literal")

    def parenthesis(self) -> Operand:
        opening = self.advance()
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise self.error(f"parentheses are nested deeper than {MAX_DEPTH}", opening)
        inner = self.disjunction()
        if self.token.kind == "operator" and self.token.value == ",":
            raise self.error("a list of values is only possible after 'in'")
        self.need_operator(")", "')'")
        self.depth -= 1
        return inner

    def signed_number(self) -> Literal:
        sign = self.advance()
        if self.token.kind != "number":
            raise self.error(f"expected a number after {sign.value!r}; arithmetic is not possible in a filter", sign)
        return self.number(sign.value)

    def number(self, sign: str) -> Literal:
        token = self.advance()
        try:
            return functions.number_literal(sign + token.value, token.suffix)
        except ValueError as error:
            raise self.error(str(error), token) from None

    def word(self) -> Operand:
        token, following = self.token, self.peek()
        if token.word in ("true", "false") and following.value != ".":
            return literal(self.advance().word == "true")
        if token.word == "null":
            self.advance()
            return None
        if following.kind == "string" and token.word in functions.TYPED_LITERALS:
            self.advance()
            return self.typed_literal(token)
        if token.word == "interval" and following.kind in ("string", "number"):
            raise self.error("interval arithmetic is not possible in a filter; write the resulting date or timestamp")
        if token.word in _RESERVED:
            raise self.unexpected("a column or a literal")
        if following.kind == "operator" and following.value == "(":
            return self.function(self.advance().value)
        return self.name()

    def typed_literal(self, name: Token) -> Literal:
        value = self.advance()
        try:
            return functions.TYPED_LITERALS[name.word](value.value)
        except ValueError as error:
            raise self.error(str(error), value) from None

    def name(self) -> Operand:
        """A dotted name, or a function with a dotted name such as `system.bucket(…)`."""
        start = self.token
        parts: list[str] = []
        while True:
            token = self.token
            if token.kind == "number" and parts:
                raise self.error("a name that begins with a digit must be written in back quotes")
            if token.kind not in ("name", "quoted"):
                raise self.unexpected("a name")
            if not token.value:
                raise self.error("a name cannot be empty")
            parts.append(self.advance().value)
            if self.token.kind == "operator" and self.token.value == "(":
                return self.function(".".join(parts))
            following = self.token
            if following.kind == "number" and following.value.startswith(".") and following.start == token.end:
                raise self.error("a name that begins with a digit must be written in back quotes")
            if not self.take_operator("."):
                break
        if self.token.kind == "operator" and self.token.value in "+-":
            raise self.error("arithmetic is not possible in a filter")
        if self.token.kind in ("string", "number", "quoted"):
            raise self.unexpected(f"a comparison after {self.text[start.start : token.end]!r}")
        return Reference(".".join(parts))

    def function(self, name: str) -> Operand:
        """A function's arguments in parentheses; the name has been read."""
        start = self.tokens[self.index - 1]
        short = name.lower().removeprefix("system.")
        self.need_operator("(", "'('")
        arguments: list[Operand] = []
        type_name = ""
        while not self.take_operator(")"):
            arguments.append(self.disjunction())
            if short in ("cast", "try_cast") and self.take_word("as"):
                type_name = self.type_name()
            elif self.token.value != ")":
                self.need_operator(",", "',' or ')'")
        try:
            return functions.call(short, arguments, type_name)
        except (TypeMismatchError, ValueError) as error:
            raise self.error(str(error), start) from None

    def type_name(self) -> str:
        """A SQL type up to the parenthesis that closes `cast(`."""
        first = self.token
        if first.kind != "name":
            raise self.unexpected("a type")
        self.advance()
        if self.take_operator("("):
            while not self.take_operator(")"):
                if self.token.kind == "end":
                    raise self.unexpected("')'")
                self.advance()
        return "".join(self.text[first.start : self.tokens[self.index - 1].end].split()).lower()


def _is_same(term: Term, value: object) -> BooleanExpression:
    """False, not unknown, for null: so that its negation is true there."""
    return And(NotNull(term), EqualTo(term, value))


def _is_other(term: Term, value: object) -> BooleanExpression:
    """True for null."""
    return Or(IsNull(term), NotEqualTo(term, value))
