"""Names and defaults of the table properties that this package acts on, and typed reading of them.

Source: Iceberg documentation, "Configuration": table properties.
"""

from __future__ import annotations

from collections.abc import Mapping

from hms_iceberg.errors import ConfigurationError

# Java's default is 4. Without locks that is too few for many writers: a retry costs two small files and a call, and its
# waits grow, so that every writer gets through.
COMMIT_NUM_RETRIES = ("commit.retry.num-retries", 20)
COMMIT_MIN_RETRY_WAIT_MS = ("commit.retry.min-wait-ms", 100)
COMMIT_MAX_RETRY_WAIT_MS = ("commit.retry.max-wait-ms", 60_000)
COMMIT_TOTAL_RETRY_TIME_MS = ("commit.retry.total-timeout-ms", 1_800_000)

STATUS_CHECK_NUM_RETRIES = ("commit.status-check.num-retries", 3)
STATUS_CHECK_MIN_WAIT_MS = ("commit.status-check.min-wait-ms", 1_000)
STATUS_CHECK_MAX_WAIT_MS = ("commit.status-check.max-wait-ms", 60_000)
STATUS_CHECK_TOTAL_TIMEOUT_MS = ("commit.status-check.total-timeout-ms", 1_800_000)

MANIFEST_TARGET_SIZE_BYTES = ("commit.manifest.target-size-bytes", 8 * 1024 * 1024)
MANIFEST_MIN_COUNT_TO_MERGE = ("commit.manifest.min-count-to-merge", 100)
MANIFEST_MERGE_ENABLED = ("commit.manifest-merge.enabled", True)
SUMMARY_PARTITION_LIMIT = ("write.summary.partition-limit", 0)

METADATA_PREVIOUS_VERSIONS_MAX = ("write.metadata.previous-versions-max", 100)
METADATA_DELETE_AFTER_COMMIT = ("write.metadata.delete-after-commit.enabled", False)
METADATA_COMPRESSION = ("write.metadata.compression-codec", "none")
METADATA_PATH = "write.metadata.path"

SPLIT_TARGET_SIZE = ("read.split.target-size", 128 * 1024 * 1024)
SPLIT_LOOKBACK = ("read.split.planning-lookback", 10)
SPLIT_OPEN_FILE_COST = ("read.split.open-file-cost", 4 * 1024 * 1024)

MIN_SNAPSHOTS_TO_KEEP = ("history.expire.min-snapshots-to-keep", 1)
MAX_SNAPSHOT_AGE_MS = ("history.expire.max-snapshot-age-ms", 5 * 24 * 3600 * 1000)
MAX_REF_AGE_MS = ("history.expire.max-ref-age-ms", 2**63 - 1)
GC_ENABLED = ("gc.enabled", True)
WAP_ENABLED = ("write.wap.enabled", False)


def int_property(properties: Mapping[str, str], name_and_default: tuple[str, int]) -> int:
    """A property as an integer, its default if it is not set.

    Raises:
        ConfigurationError: the value is not an integer.
    """
    name, default = name_and_default
    text = properties.get(name)
    if text is None:
        return default
    try:
        return int(text)
    except ValueError:
        raise ConfigurationError(
            f"Table property {name!r}: expected an integer such as {default}, got {text!r}. Set it to an integer."
        ) from None


def bool_property(properties: Mapping[str, str], name_and_default: tuple[str, bool]) -> bool:
    """A property as a boolean: `true` in any case is true, every other text is false, as Java reads it."""
    name, default = name_and_default
    text = properties.get(name)
    return default if text is None else text.strip().lower() == "true"


def text_property(properties: Mapping[str, str], name_and_default: tuple[str, str]) -> str:
    """A property's text, its default if it is not set."""
    name, default = name_and_default
    return properties.get(name, default)


def metadata_folder(location: str, properties: Mapping[str, str]) -> str:
    """Where the metadata files of a table at `location` go: `write.metadata.path`, by default `metadata` below it.

    A relative path is taken below the table's location (specification, "Path Construction").
    """
    return _folder(location, properties.get(METADATA_PATH), "metadata")


def _folder(location: str, path: str | None, default: str) -> str:
    path = (path or default).rstrip("/")
    if path.startswith("/") or "://" in path or path.split("/", 1)[0].endswith(":"):
        return path
    return f"{location.rstrip('/')}/{path}"
