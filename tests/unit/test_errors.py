from __future__ import annotations

import inspect
import re

from hms_iceberg import errors


def _classes():
    return [each for _, each in inspect.getmembers(errors, inspect.isclass) if each.__module__ == errors.__name__]


def test_every_error_is_an_iceberg_error():
    assert all(issubclass(each, errors.IcebergError) for each in _classes())


def test_only_a_commit_that_lost_a_race_is_retryable():
    assert [each for each in _classes() if each.retryable] == [errors.CommitFailedError, errors.StaleBaseError]


def test_the_tree_at_the_top_of_the_module_is_true():
    drawn: dict[str, str | None] = {}
    parents: list[str] = []
    for line in (errors.__doc__ or "").splitlines():
        match = re.match(r"^    (?P<bars>(?:│   |    )*)(?P<branch>[├└]── )?(?P<name>[A-Z]\w+Error)\b", line)
        if match:
            depth = len(match["bars"]) // 4 + (1 if match["branch"] else 0)
            parents = [*parents[:depth], match["name"]]
            drawn[match["name"]] = parents[-2] if depth else None
    actual = {each.__name__: None if each is errors.IcebergError else each.__bases__[0].__name__ for each in _classes()}
    assert drawn == actual


def test_an_error_with_another_message_is_of_the_same_kind_with_the_same_attributes():
    said = errors.SqlParseError("no table", "no name", "from", 2, 7).with_message("In step 3: no table")
    assert (type(said), str(said)) == (errors.SqlParseError, "In step 3: no table")
    assert (said.problem, said.near, said.line, said.position) == ("no name", "from", 2, 7)
    for each in _classes():
        assert type(each.__new__(each, "a").with_message("b")) is each
