"""Whether the server can do its work."""

from __future__ import annotations

from contextlib import suppress

from hms_iceberg.errors import NoSuchNamespaceError
from hms_iceberg.rest.door import Door
from hms_iceberg.rest.serving.calls import Answer, Call


def health(door: Door, call: Call) -> Answer:
    """Whether the metastore answers; needs no login, so it tells nothing else."""
    with suppress(NoSuchNamespaceError):
        door.catalog.load_namespace_properties("default")
    return Answer({"status": "ok"})
