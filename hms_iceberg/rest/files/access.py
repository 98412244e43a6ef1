"""What a client gets to reach a table's files, by what it asks for and what it may do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.table_properties import FOLDER_PROPERTIES

VENDED = "vended-credentials"
SIGNED = "remote-signing"
_S3 = ("s3", "s3a", "s3n")


@dataclass(frozen=True)
class FileAccess:
    """How a client reaches a table's files.

    Attributes:
        config: properties for the client.
        credentials: what it may use for the locations below a prefix, as the protocol has it.
    """

    config: dict[str, str] = field(default_factory=dict)
    credentials: list[dict[str, Any]] = field(default_factory=list)


@dataclass(frozen=True)
class Place:
    """A folder in a bucket."""

    bucket: str
    key: str

    @property
    def location(self) -> str:
        """As a location that ends with a slash, so that the folder beside it is not meant."""
        return f"s3://{self.bucket}/{self.key}/" if self.key else f"s3://{self.bucket}/"


def places(metadata: TableMetadata) -> list[Place]:
    """The folders in S3 that a table's files are in; none if one of them is elsewhere."""
    found = []
    for location in (
        metadata.location,
        *(metadata.properties[key] for key in FOLDER_PROPERTIES if key in metadata.properties),
    ):
        scheme, _, rest = location.partition("://")
        bucket, _, key = rest.partition("/")
        key = key.strip("/")
        # A table that is a whole bucket would open that of everybody else.
        if scheme not in _S3 or not bucket or not key:
            return []
        found.append(Place(bucket, key))
    return sorted(set(found), key=lambda place: place.location)


def asked(headers: Mapping[str, str]) -> list[str]:
    """The ways that a client names, in its order."""
    return [each.strip().lower() for each in headers.get("x-iceberg-access-delegation", "").split(",") if each.strip()]
