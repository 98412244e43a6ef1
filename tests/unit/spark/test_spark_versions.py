"""Which versions of Spark are taken, and what is said of those that lack something."""

from __future__ import annotations

import logging

import pytest

from hms_iceberg.errors import UnsupportedError
from hms_iceberg.spark.spark_versions import FIRST, LAST, require_shapes, require_version

NEWEST = f"{LAST[0]}.{LAST[1]}.0"


def test_versions_before_the_first_are_refused_and_later_ones_are_not() -> None:
    require_version(f"{FIRST[0]}.{FIRST[1]}.0", "2.12.18")
    require_version("9.10.0-preview2", "2.13.16")
    with pytest.raises(UnsupportedError, match=r"Spark 3\.4\.4 lacks what the extension needs"):
        require_version("3.4.4", "2.12.17")
    with pytest.raises(UnsupportedError, match=r"Spark 3\.5\.9 is built with Scala 2\.13\.8 here"):
        require_version("3.5.9", "2.13.8")


def test_a_version_that_lacks_what_is_needed_is_refused_with_its_name() -> None:
    with pytest.raises(UnsupportedError, match=r"Spark 9\.0\.0 has changed .* It lacks a\.B\.c"):
        require_shapes("9.0.0", {"a.B.c": "", "d": "it is slow"}, warn=False)


def test_a_version_that_was_never_tried_and_what_is_lost_are_told_once(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        require_shapes(NEWEST, {}, warn=True)
        assert not caplog.messages
        require_shapes("9.0.0", {"d": "it is slow"}, warn=True)
        require_shapes("9.0.0", {"d": "it is slow"}, warn=False)
    assert [message.split(".")[0] for message in caplog.messages] == [
        "hms_iceberg was never tried with Spark 9",
        "Spark 9",
    ]
    assert "lacks d: it is slow" in caplog.messages[1]
