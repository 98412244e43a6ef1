"""Types that Iceberg's version 3 added, in Spark's SQL, for tests that run the same statements by two engines.

A shape is written as its bytes, and shown as their digits; a variant is shown as JSON and with the types within it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import shapely
from hypothesis import strategies as st

_KEYS = ("a", "b", "ü", "a.b", "")
_SCALARS = (
    "true", "1Y", "300S", "70000", "-1", "9223372036854775807L", "0.5f", "double('NaN')", "double('-0.0')", "1e300d",
    "1.50", "99999999999999999999999999999999999999", "-0.00000000000000000001", "date'2020-02-29'", "date'0001-01-01'",
    "timestamp'1969-12-31 23:59:59.999999'", "timestamp_ntz'9999-12-31 23:59:59.000001'", "X''", "X'00ff'", "''",
    f"'{'long text ' * 8}'",
)  # fmt: skip
_NUMBERS = st.sampled_from([0, 1, -1, 3, 127, 128, 40000, 2**31, 2**63 - 1, 10**25, 1.5, -2.25, 1e300, 0.1])
_JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | _NUMBERS | st.sampled_from(["", "x", "ü", "3", "2020-01-01", "y" * 70]),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.sampled_from(_KEYS), inner, max_size=3),
        st.dictionaries(st.sampled_from(_KEYS), inner, min_size=1, max_size=3),
    ),
    max_leaves=6,
)
_INNER = st.fixed_dictionaries({"a": st.text("xyz", max_size=2)})
_ALIKE = st.fixed_dictionaries({"a": _NUMBERS | st.none(), "b": _INNER})
_PATHS = ("$", "$.a", "$.b", "$.b.a", "$[0]", "$.a[1]", "$['a.b']", "$['ü']")
_TARGETS = ("int", "bigint", "double", "string", "boolean", "decimal(9,2)", "date", "timestamp_ntz")
_TESTS = {
    "int": "> 0", "bigint": "<= 3", "double": "< 1.5", "string": ">= 'x'", "boolean": "= true",
    "decimal(9,2)": "= 1.5", "date": "< date'2020-03-01'", "timestamp_ntz": "> timestamp_ntz'2000-01-01 00:00:00'",
}  # fmt: skip
_SHAPES = (
    "POINT (1 2)", "POINT (-175 2)", "POINT (170 -1)", "POINT EMPTY", "POINT (NaN 2)", "LINESTRING (0 0, 10 10)",
    "POLYGON ((0 0, 4 0, 4 4, 0 0), (1 1, 2 1, 2 2, 1 1))", "MULTIPOINT ((5 5), (-5 -5))", "GEOMETRYCOLLECTION EMPTY",
    "GEOMETRYCOLLECTION (POINT (7 7), LINESTRING (1 1, 2 3))", "POINT Z (1 2 3)", "LINESTRING ZM (0 0 1 2, 1 1 3 4)",
)  # fmt: skip
_WKB = [shapely.to_wkb(shapely.from_wkt(each), flavor="iso").hex() for each in _SHAPES]


@dataclass(frozen=True)
class NewType:
    """A type of columns.

    Args:
        sql: its name.
        values: of it, but for null, as expressions.
        shown: of a column `{}`, what says all of its value.
        conditions: of a column `{}`.
    """

    sql: str
    values: st.SearchStrategy[str]
    shown: str
    conditions: st.SearchStrategy[str]


def _parsed(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False).replace("'", "\\'")
    return f"parse_json('{text}')"


def _got(path: str, target: str, test: str) -> str:
    return "try_variant_get({}, '" + path.replace("'", "\\'") + f"', '{target}') {test}"


_NULLS = st.sampled_from(["{} is null", "{} is not null"])
_VARIANTS = st.one_of(
    _JSON.map(_parsed),
    _ALIKE.map(_parsed),  # so that files are shredded by more than one field
    st.sampled_from(_SCALARS).map(lambda each: f"cast({each} as variant)"),
    st.sampled_from(_SCALARS).map(lambda each: f"to_variant_object(named_struct('a', {each}, 'b', array({each})))"),
)
_WITHIN = st.one_of(
    _NULLS,
    st.sampled_from(["is_variant_null({})", "to_json({}) like '%1%'", "schema_of_variant({}) like 'OBJECT%'"]),
    st.builds(_got, st.sampled_from(_PATHS), st.sampled_from(_TARGETS), st.sampled_from(["is null", "is not null"])),
    st.builds(lambda path, of: _got(path, of, _TESTS[of]), st.sampled_from(_PATHS), st.sampled_from(_TARGETS)),
)
_OPTIONAL = _VARIANTS | st.just("cast(null as variant)")


def _shapes(make: str) -> tuple[st.SearchStrategy[str], str, st.SearchStrategy[str]]:
    """Values, what shows them, and conditions; `make` has the digits as `{}`."""
    digits = st.sampled_from(_WKB)
    equal = digits.map(lambda each: f"hex(st_asbinary({{}})) = '{each.upper()}'")
    return digits.map(make.format), "hex(st_asbinary({}))", st.one_of(_NULLS, equal, st.just("st_srid({}) = 4326"))


NEW_TYPES: Mapping[str, NewType] = {
    "v": NewType("variant", _VARIANTS, "concat_ws('|', to_json({0}), schema_of_variant({0}))", _WITHIN),
    "w": NewType(
        "struct<v: variant, k: int>",
        st.builds("named_struct('v', {}, 'k', {})".format, _OPTIONAL, st.integers(0, 5)),
        "concat_ws('|', to_json({0}), schema_of_variant({0}.v))",
        st.one_of(_NULLS, _WITHIN.map(lambda each: each.replace("{}", "{}.v"))),
    ),
    "l": NewType(
        "array<variant>",
        st.lists(_OPTIONAL, max_size=3).map(lambda each: f"cast(array({', '.join(each)}) as array<variant>)"),
        "to_json({})",
        st.one_of(_NULLS, st.just("size({}) > 1")),
    ),
    "g": NewType("geometry(4326)", *_shapes("st_setsrid(st_geomfromwkb(X'{}'), 4326)")),
    "m": NewType("geometry(3857)", *_shapes("st_setsrid(st_geomfromwkb(X'{}'), 3857)")),
    "p": NewType("geography(4326)", *_shapes("st_geogfromwkb(X'{}')")),
}
