"""A REST catalog, as a client of it sees it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from urllib.parse import urlsplit

from hms_iceberg.errors import IcebergError
from hms_iceberg.maintenance.doctor.diagnosis import Diagnosis, bad, doubtful, good
from hms_iceberg.rest_client.rest_metastore import RestMetastore

_SLOW_SECONDS = 2.0
_LOCAL = ("127.0.0.1", "::1", "localhost")
# What this package asks of a server; those without some of these have no views, or no purge.
_WANTED = (
    "POST /v1/{prefix}/namespaces/{namespace}/tables/{table}",
    "POST /v1/{prefix}/namespaces/{namespace}/register",
    "POST /v1/{prefix}/tables/rename",
    "GET /v1/{prefix}/namespaces/{namespace}/views",
)


def examine_rest_catalog(metastore: RestMetastore) -> Iterator[Diagnosis]:
    """Looks at a server: whether it answers, how fast, what it offers, and whether others can listen."""
    channel, started = metastore.channel, time.monotonic()
    try:
        names = metastore.list_namespaces()
    except IcebergError as error:
        yield bad("metastore", f"the REST catalog at {channel} does not answer: {error}", f"curl {channel}/v1/config")
        return
    seconds = time.monotonic() - started
    said = f"the REST catalog at {channel} answers in {1000 * seconds:.0f} ms, and has {len(names)} namespaces"
    if seconds < _SLOW_SECONDS:
        yield good("metastore", said)
    else:
        yield doubtful("metastore", said, "Give the server more --workers, or look at its metastore.")
    missing = [each for each in _WANTED if channel.endpoints and each not in channel.endpoints]
    if missing:
        yield doubtful(
            "endpoints", f"the server lacks {', '.join(missing)}", "What needs these fails; ask who runs it."
        )
    address = urlsplit(str(channel))
    is_open = address.scheme == "http" and address.hostname not in _LOCAL
    if is_open and channel.has_login:
        remedy = "Have it serve TLS: hms-iceberg rest --tls-certificate … --tls-key …"
        yield bad("TLS", "the login goes over the network in plain text", remedy)
    elif is_open:
        yield doubtful(
            "login", "whoever reaches the server may do everything", "hms-iceberg rest --tokens … --policy …"
        )
