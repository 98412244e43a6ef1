"""What a server tells of itself: its configuration, which every client asks first, and whether it can do its work."""

from __future__ import annotations

from contextlib import suppress

from hms_iceberg.errors import NoSuchNamespaceError
from hms_iceberg.rest.door import Door
from hms_iceberg.rest.errors import RefusedError
from hms_iceberg.rest.serving.calls import Answer, Call
from hms_iceberg.rest.settings import PLANNING_MODE


def configuration(door: Door, call: Call) -> Answer:
    """What the server can do, and what clients are to set.

    The warehouse may be left out, be the catalog's name, or be the location of its warehouse.
    """
    asked, catalog = call.query.get("warehouse"), door.catalog
    location = catalog.properties.get("warehouse", "")
    if asked and asked.rstrip("/") not in (catalog.name, location.rstrip("/")):
        raise RefusedError(
            404,
            "NoSuchWarehouseException",
            f"There is no warehouse {asked[:200]!r}: this server has {catalog.name!r} alone. Leave it out.",
        )
    settings = door.settings
    planning = {PLANNING_MODE: "server"} if settings.server_planning else {}  # some clients ask for it only here
    answer: dict[str, object] = {
        "defaults": {**planning, **settings.client_defaults},
        "overrides": dict(settings.client_overrides),
        "endpoints": list(door.endpoints),
    }
    if settings.idempotency_seconds:
        answer["idempotency-key-lifetime"] = f"PT{settings.idempotency_seconds}S"
    return Answer(answer)


def health(door: Door, call: Call) -> Answer:
    """Whether the metastore answers; needs no login, so it tells nothing else."""
    with suppress(NoSuchNamespaceError):
        door.catalog.load_namespace_properties("default")
    return Answer({"status": "ok"})
