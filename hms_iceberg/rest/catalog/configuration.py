"""The configuration of a server, which every client asks for first, and its health."""

from __future__ import annotations

from contextlib import suppress

from hms_iceberg.errors import NoSuchNamespaceError
from hms_iceberg.rest.errors import RefusedError
from hms_iceberg.rest.served_catalog import ServedCatalog
from hms_iceberg.rest.serving.calls import Answer, Call
from hms_iceberg.rest.settings import PLANNING_MODE


def configuration(served: ServedCatalog, call: Call) -> Answer:
    """The configuration for a client, which may leave out the warehouse, or name the catalog or the warehouse's
    location."""
    asked, catalog = call.query.get("warehouse"), served.catalog
    location = catalog.properties.get("warehouse", "")
    if asked and asked.rstrip("/") not in (catalog.name, location.rstrip("/")):
        raise RefusedError(
            404,
            "NoSuchWarehouseException",
            f"There is no warehouse {asked[:200]!r}: this server has {catalog.name!r} alone. Leave it out.",
        )
    settings = served.settings
    planning = {PLANNING_MODE: "server"} if settings.server_planning else {}  # some clients ask for it only here
    answer: dict[str, object] = {
        "defaults": {**planning, **settings.client_defaults},
        "overrides": dict(settings.client_overrides),
        "endpoints": list(served.endpoints),
    }
    if settings.idempotency_seconds:
        answer["idempotency-key-lifetime"] = f"PT{settings.idempotency_seconds}S"
    return Answer(answer)


def health(served: ServedCatalog, call: Call) -> Answer:
    """Whether the metastore answers; needs no login, so it tells nothing else."""
    with suppress(NoSuchNamespaceError):
        served.catalog.load_namespace_properties("default")
    return Answer({"status": "ok"})
