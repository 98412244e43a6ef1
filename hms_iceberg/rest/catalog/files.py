"""Endpoints by which clients reach the files of a table."""

from __future__ import annotations

import msgspec

from hms_iceberg.rest.access import Right
from hms_iceberg.rest.door import Door
from hms_iceberg.rest.errors import RefusedError
from hms_iceberg.rest.files.signing import places
from hms_iceberg.rest.serving.calls import Answer, Call


class _Sign(msgspec.Struct):
    method: str
    uri: str
    region: str
    headers: dict[str, list[str]]
    provider: str | None = None


def load_credentials(door: Door, call: Call) -> Answer:
    """Credentials for a table's files, anew."""
    identifier, version = door.current(call.table)
    return Answer({"storage-credentials": door.credentials(call, identifier, version.metadata, version)})


def sign_request(door: Door, call: Call) -> Answer:
    """A request to the store, signed."""
    asked = call.read(_Sign)
    if door.signer is None or (asked.provider or "s3").lower() != "s3":
        raise RefusedError(406, "UnsupportedOperationException", "This server signs no requests to this store.")
    identifier, version = door.current(call.table)
    door.check_own(call, identifier, version)
    writes = call.access.allows(Right.WRITE, *identifier)
    folders = [place for place in places(version.metadata) if door.locations.allow(place.location)]
    method = asked.method.upper()
    signed = door.signer.signed(method, asked.uri, asked.region, asked.headers, folders, writes)
    # An answer to a read may be used again for the same object.
    headers = {"Cache-Control": "private"} if method in ("GET", "HEAD") else {"Cache-Control": "no-cache"}
    return Answer(signed, headers=headers)
