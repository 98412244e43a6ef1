"""The places of locations by links, nameservices, mounts and accounts, which a storage knows."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Mapping
from contextlib import suppress

from hms_iceberg.arrow.storage.hdfs.cluster_address import one_spelling
from hms_iceberg.arrow.storage.hdfs.opening import HDFS_SCHEMES, own_authority
from hms_iceberg.errors import ConfigurationError
from hms_iceberg.spec.places import Place, split_location


def known_place(location: str, properties: Mapping[str, str], hadoop: Callable[[], Mapping[str, str]]) -> Place:
    """The place of a file or folder, which need not be there."""
    place = Place.of(location)
    if place.family == "file":
        # What has a null character is no file's name, and is in no folder but its own.
        return place if "\0" in location else place._replace(path=os.path.realpath(place.path or "/").rstrip("/"))
    if place.family == "abfs" and properties.get("adls.account-name"):
        return place._replace(authority=place.authority.partition("@")[0])  # the only account that is asked
    if place.family in HDFS_SCHEMES:
        with suppress(ConfigurationError):  # nothing says where it is: then text has to do
            _, authority, _ = split_location(location)
            authority = authority or own_authority(place.family, properties)
            return Place.of(one_spelling(place.family, authority, place.path, hadoop()))
    return place


def is_link(place: Place) -> bool:
    """Whether there is a local link at a place whose folder is known."""
    try:
        return place.family == "file" and stat.S_ISLNK(os.lstat(place.path).st_mode)
    except (OSError, ValueError):
        return False


def leads_up(link: str) -> bool:
    """Whether a local link leads to a folder that it is in, so that a listing through it would have no end."""
    inside = os.path.join(os.path.realpath(os.path.dirname(link)), "")
    return inside.startswith(os.path.join(os.path.realpath(link), ""))
