"""The short forms of the SQL prompt, and what its tab key offers."""

from __future__ import annotations

from typing import Any, cast

import pytest

from hms_iceberg.cli.servers.prompt import Names, statement_of
from hms_iceberg.errors import SqlFailedError


class Told:
    """A session that knows one table, by the statements that ask for its names."""

    def names(self, statement: str, _column: str) -> list[str]:
        known = {
            "show columns in web.visits": ["id", "page"],
            "select name from web.visits.refs": ["main", "year-end"],
            "show namespaces": ["web"],
            "show tables in web": ["visits"],
        }
        return known.get(statement, [])


@pytest.mark.parametrize(
    ("line", "statement"),
    [
        (r"\l", "show namespaces"),
        (r"\d", "show tables"),
        (r"\d web.", "show tables in web"),
        (r"\d web.visits;", "describe web.visits"),
        (r"\d+ web.visits", "describe extended web.visits"),
        (r"\r web.visits", "select name, type, snapshot_id from web.visits.refs"),
        (r"\c web", "use web"),
        ("select 1", None),
    ],
)
def test_a_short_form_is_a_statement(line: str, statement: str | None) -> None:
    assert statement_of(line) == statement


@pytest.mark.parametrize("line", [r"\x", r"\s", r"\c"])
def test_a_short_form_that_is_none_or_lacks_its_name_points_to_help(line: str) -> None:
    with pytest.raises(SqlFailedError, match="Type help"):
        statement_of(line)


@pytest.mark.parametrize(
    ("text", "line", "offered"),
    [
        ("pa", "select * from web.visits where pa", ["page", "partitioned by"]),
        ("ye", "select * from web.visits version as of 'ye", ["year-end"]),
        ("web.v", "select * from web.v", ["web.visits"]),
        ("we", "select * from we", ["web"]),
    ],
)
def test_the_tab_key_offers_columns_refs_tables_and_namespaces(text: str, line: str, offered: list[str]) -> None:
    assert Names(cast(Any, Told()), cast(Any, None)).candidates(text, line) == offered
