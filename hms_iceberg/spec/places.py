"""Places: what all spellings of a file's or folder's location have in common.

Text is written and read; whether two locations are the same file, or one is in the other, is asked of places only.
They are folded as Hadoop's `Path` does: `.`, `..` and empty segments go, `%20` stays three characters.

On S3, `a//b` and `a/./b` could be other objects than `a/b`. They count as one place: Hadoop's file systems and the
HTTP client below pyarrow fold dots on the way to the store, pyarrow refuses empty segments, and a file that may be a
live one must not be deleted.

What only a storage knows (links, nameservices, accounts), `hms_iceberg.storage.Places` adds.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

S3_SCHEMES = frozenset({"s3", "s3a", "s3n", "oss"})
GCS_SCHEMES = frozenset({"gs", "gcs"})
AZURE_SCHEMES = frozenset({"abfs", "abfss", "wasb", "wasbs"})
_BUCKETS = S3_SCHEMES | GCS_SCHEMES | AZURE_SCHEMES
_FAMILIES = {
    **dict.fromkeys(S3_SCHEMES, "s3"),
    **dict.fromkeys(GCS_SCHEMES, "gs"),
    **dict.fromkeys(AZURE_SCHEMES, "abfs"),
}
_HDFS_PORT = ":8020"
_THIS_MACHINE = "localhost"
# A single letter before the colon is a Windows drive, not a scheme.
_LOCATION = re.compile(r"^(?P<scheme>[A-Za-z][A-Za-z0-9+.-]+):(?://(?P<authority>[^/]*))?(?P<path>.*)$", re.DOTALL)


def split_location(location: str) -> tuple[str, str, str]:
    """Scheme (in lower case, `file` if there is none), authority and path of a location, as they are spelled."""
    match = _LOCATION.match(location)
    if match is None:
        return "file", "", location
    return match["scheme"].lower(), match["authority"] or "", match["path"]


def is_bucket_store(scheme: str) -> bool:
    """Whether the authority of a scheme's locations is a bucket or container, not a server."""
    return scheme in _BUCKETS


def folded(path: str) -> str:
    """A path without empty, `.`, `..` segments and final slash; the root is empty, `..` at a relative start stays."""
    if not ("//" in path or "/." in path or path.startswith(".") or path.endswith("/")):
        return path
    is_absolute = path.startswith("/")
    kept: list[str] = []
    for segment in path.split("/"):
        if segment == ".." and kept and kept[-1] != "..":
            kept.pop()
        elif segment not in ("", ".") and not (segment == ".." and is_absolute):
            kept.append(segment)
    if not kept:
        return "" if is_absolute or not path else "."
    return "/" * is_absolute + "/".join(kept)


def has_dot_segments(location: str) -> bool:
    """Whether a segment of a location is `.` or `..`, so that it is another place than its text looks like."""
    return "/." in f"/{location}" and any(segment in (".", "..") for segment in location.split("/"))


class Place(NamedTuple):
    """The place of a file or folder. Equal places are one file, or one folder.

    Attributes:
        family: what the schemes of one kind of storage have in common: `file`, `s3`, `gs`, `abfs`, `hdfs` …
        authority: the bucket, container and account, server or nameservice; empty on this machine's disks.
        path: folded; `/a/b`, empty for the root.
    """

    family: str
    authority: str
    path: str

    @classmethod
    def of(cls, location: str) -> Place:
        """The place that a location's text alone tells; `hms_iceberg.storage.Places` adds what a storage knows."""
        scheme, authority, path = split_location(location)
        if scheme == "file":
            server = authority.lower()
            return cls("file", "" if server == _THIS_MACHINE else server, folded(path))
        if is_bucket_store(scheme):
            # Their listings have keys without the slash that comes before them.
            bucket, path = (authority, path) if authority else _without_authority(path)
            return cls(_FAMILIES[scheme], _bucket(scheme, bucket), folded(f"/{path}"))
        server = authority.rpartition("@")[2].lower().removesuffix(_HDFS_PORT if scheme == "hdfs" else "")
        return cls(scheme, server, folded(f"/{path}"))

    def __str__(self) -> str:
        return f"{self.family}://{self.authority}{self.path}"

    @property
    def parent(self) -> Place:
        """The folder of the place; the root is its own."""
        return self._replace(path=self.path.rpartition("/")[0])

    @property
    def name(self) -> str:
        """The last segment."""
        return self.path.rpartition("/")[2]

    def child(self, name: str) -> Place:
        """The place of a name in this folder.

        Args:
            name: one segment, neither empty nor of dots only.
        """
        return Place(self.family, self.authority, f"{self.path}/{name}")

    def is_in(self, folder: Place) -> bool:
        """Whether the place is a folder, or in it."""
        if self.family != folder.family or self.authority != folder.authority:
            return False
        return self.path == folder.path or self.path.startswith(f"{folder.path}/")

    def contains(self, other: Place) -> bool:
        """Whether another place is this one, or in it."""
        return other.is_in(self)

    def below(self, folder: Place) -> str:
        """The relative path from a folder that the place is in."""
        return self.path[len(folder.path) + 1 :]

    def upwards(self) -> Iterator[Place]:
        """The place, its folder, the folder of that, up to the root."""
        path = self.path
        while path:
            yield Place(self.family, self.authority, path)
            path = path.rpartition("/")[0]
        yield Place(self.family, self.authority, "")

    def anywhere(self) -> Place:
        """The place with the same path on any server, by which files that are kept, or not let in, are compared.

        One server can have names that nobody tells of: its address, `localhost`, an alias, a gateway with the interface
        of another store. Two places that may be one are equal so, and some that are not: then a file is kept that could
        go.
        """
        if self.family in ("s3", "gs", "abfs"):
            return Place("", "", f"/{self.authority.partition('@')[0].lower()}{self.path}")
        return Place("", "", self.path)


def _without_authority(path: str) -> tuple[str, str]:
    bucket, _, key = path.lstrip("/").partition("/")
    return bucket, key


def _bucket(scheme: str, authority: str) -> str:
    if scheme not in AZURE_SCHEMES:
        return authority
    container, at, host = authority.lower().partition("@")
    return f"{container}{at}{host.replace('.blob.', '.dfs.', 1)}"  # two doors of one account
