"""Answers that hold a table: its metadata, the location of its metadata, and the access to its files."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace

import msgspec

from hms_iceberg.errors import InvalidInputError
from hms_iceberg.metastore import Identifier, MetadataVersion
from hms_iceberg.rest.served_catalog import ServedCatalog
from hms_iceberg.rest.serving.calls import Answer, Call
from hms_iceberg.spec.metadata.metadata_json import metadata_to_dict
from hms_iceberg.spec.metadata.table_metadata import TableMetadata

ALL = "all"
REFS = "refs"


def loaded(served: ServedCatalog, call: Call, identifier: Identifier, version: MetadataVersion) -> Answer:
    """The answer to a load of a table; 304 without a body if the client has this version already."""
    snapshots = call.query.get("snapshots", ALL).lower()
    if snapshots not in (ALL, REFS):
        raise InvalidInputError(f"Parameter 'snapshots': expected all or refs, got {snapshots[:50]!r}.")
    files = served.files_for(call, identifier, version.metadata, version)
    tag = _tag(version.identity, snapshots, files.config, call.headers.get("x-iceberg-access-delegation", ""))
    # What expires is handed out anew every time.
    if not files.credentials and tag in _tags(call.headers.get("if-none-match", "")):
        return Answer(status=304, headers={"ETag": tag})
    body = b"".join(
        (
            b'{"metadata-location":',
            msgspec.json.encode(version.location),
            b',"metadata":',
            metadata_json(served, version, snapshots),
            b',"config":',
            msgspec.json.encode(files.config),
            *((b',"storage-credentials":', msgspec.json.encode(files.credentials)) if files.credentials else ()),
            b"}",
        )
    )
    return Answer(body, headers={"ETag": tag})


def committed(served: ServedCatalog, identifier: Identifier, version: MetadataVersion) -> Answer:
    served.remember(identifier, version)
    body = metadata_json(served, version, ALL)
    location = msgspec.json.encode(version.location)
    return Answer(b'{"metadata-location":' + location + b',"metadata":' + body + b"}")


def keep_json(served: ServedCatalog, version: MetadataVersion, written: tuple[str, bytes] | None) -> None:
    """Keeps the JSON of a version that was just committed; `written` is location and content of the last metadata
    file."""
    if written is not None and written[0] == version.location:
        served.bodies.put((version.identity, ALL), written[1])


def staged(served: ServedCatalog, call: Call, identifier: Identifier, metadata: TableMetadata) -> Answer:
    """The answer with a table that is not committed yet."""
    files = served.files_for(call, identifier, metadata, None)
    answer = {"metadata": metadata_to_dict(metadata), "config": files.config}
    return Answer({**answer, "storage-credentials": files.credentials} if files.credentials else answer)


def metadata_json(served: ServedCatalog, version: MetadataVersion, snapshots: str) -> bytes:
    """A version's metadata as JSON, with all snapshots or those of `refs` only."""

    def encoded() -> bytes:
        metadata = version.metadata if snapshots == ALL else _with_refs_only(version.metadata)
        return msgspec.json.encode(metadata_to_dict(metadata))

    return served.bodies.get_or_make((version.identity, snapshots), encoded)


def _with_refs_only(metadata: TableMetadata) -> TableMetadata:
    kept = {ref.snapshot_id for ref in metadata.refs.values()}
    return replace(metadata, snapshots=tuple(each for each in metadata.snapshots if each.snapshot_id in kept))


def _tag(identity: tuple[object, ...], snapshots: str, config: Mapping[str, str], delegation: str) -> str:
    settings = (f"{key}={value}" for key, value in sorted(config.items()))
    text = "\n".join((*map(str, identity), snapshots, delegation, *settings))
    return f'W/"{hashlib.sha256(text.encode()).hexdigest()[:32]}"'


def _tags(header: str) -> set[str]:
    tags = {tag.strip() for tag in header.split(",")}
    return tags | {f"W/{tag}" for tag in tags if tag.startswith('"')}
