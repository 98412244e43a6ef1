"""The versions of Spark that a session can be extended with."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from hms_iceberg.errors import UnsupportedError

logger = logging.getLogger(__name__)

FIRST, LAST = (3, 5), (4, 3)
_SCALA_BEFORE_4 = (2, 12)
SUPPORTED = f"PySpark {FIRST[0]}.{FIRST[1]} to {LAST[0]}.{LAST[1]}"


def release(version: str) -> tuple[int, int]:
    """The major and minor number of a version such as ``4.3.0-preview1``."""
    major, minor = version.split(".")[:2]
    return int(major), int(minor)


def require_version(version: str, scala: str) -> None:
    """Refuses versions (``spark.version``) of Spark that are too old, and builds with another Scala."""
    if release(version) < FIRST:
        raise UnsupportedError(
            f"Cannot extend this Spark session: Spark {version} lacks what the extension needs. "
            f"Supported are {SUPPORTED}."
        )
    if release(version) < (4, 0) and release(scala) != _SCALA_BEFORE_4:
        raise UnsupportedError(
            f"Cannot extend this Spark session: Spark {version} is built with Scala {scala} here. Use its build with "
            f"Scala {_SCALA_BEFORE_4[0]}.{_SCALA_BEFORE_4[1]}, such as that of PySpark."
        )


def require_shapes(version: str, missing: Mapping[str, str], warn: bool) -> None:
    """Refuses a version of Spark that lacks private parts that the bridge needs, or with `warn` says once for each JVM
    what is lost without each of `missing`, and that it was never tried."""
    needed = sorted(part for part, loss in missing.items() if not loss)
    if needed:
        raise UnsupportedError(
            f"Cannot extend this Spark session: Spark {version} has changed what the extension relies on. It lacks "
            f"{', '.join(needed)}. Supported are {SUPPORTED}."
        )
    if not warn:
        return
    if release(version) > LAST:
        logger.warning("hms_iceberg was never tried with Spark %s. Supported are %s.", version, SUPPORTED)
    for part, loss in missing.items():
        logger.warning("Spark %s lacks %s: %s.", version, part, loss)
