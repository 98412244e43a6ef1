"""The ways up of `hms_iceberg.doors` lead somewhere."""

from __future__ import annotations

import pytest

from hms_iceberg import doors


@pytest.mark.parametrize("name", doors.names())
def test_every_way_up_leads_to_something_that_can_be_called(name: str) -> None:
    assert callable(doors.door(name))
