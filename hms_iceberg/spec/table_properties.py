"""The table properties that this package acts on: name, type, default, who reads it, and what it does. One record each.

Everything else follows from this table:
    readers: `GC_ENABLED.of(table.properties)` is a typed value, the default if the property is not set;
    checks: `check_properties` refuses what no reader could use, before it is set;
    completion: `property_names` lists the names;
    documentation: `settings_rows` yields the rows of a page of settings, section by section.

A property whose name ends in a column's name is a `ColumnProperty`. Where a reader needs another default than the rest
(appends do not merge manifests unless asked to), the second record stands beside the first.

PyIceberg's names of properties are in `hms_iceberg.spec.property_names`.

Source: Iceberg documentation, "Configuration": table properties.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from hms_iceberg.maintenance_policy import check_policy
from hms_iceberg.spec.json_model import text_properties
from hms_iceberg.spec.property_kinds import (
    BoolProperty,
    ChoiceProperty,
    CodecProperty,
    ColumnProperty,
    FractionProperty,
    IntProperty,
    PatternProperty,
    SizeProperty,
    TableProperty,
    TextProperty,
)

_MIB = 1024 * 1024
_DAY_MS = 24 * 3600 * 1000


# ------------------------------------------------------------------------------------------------ commits

_COMMITS = "commits"
# Java's default is 4. Without locks that is too few for many writers: a retry costs two small files and a call, and its
# waits grow, so that every writer gets through.
COMMIT_NUM_RETRIES = IntProperty(
    "commit.retry.num-retries", "How often a commit is tried again after a conflict (4 in Java).", _COMMITS, 20
)
COMMIT_MIN_RETRY_WAIT_MS = IntProperty(
    "commit.retry.min-wait-ms", "Shortest wait before a commit is tried again.", _COMMITS, 100
)
COMMIT_MAX_RETRY_WAIT_MS = IntProperty(
    "commit.retry.max-wait-ms", "Longest wait before a commit is tried again.", _COMMITS, 60_000
)
COMMIT_TOTAL_RETRY_TIME_MS = IntProperty(
    "commit.retry.total-timeout-ms", "Time after which a commit is not tried again.", _COMMITS, 1_800_000
)
STATUS_CHECK_NUM_RETRIES = IntProperty(
    "commit.status-check.num-retries", "How often a lost connection is followed by a look at the table.", _COMMITS, 3
)
STATUS_CHECK_MIN_WAIT_MS = IntProperty(
    "commit.status-check.min-wait-ms", "Shortest wait between two such looks.", _COMMITS, 1_000
)
STATUS_CHECK_MAX_WAIT_MS = IntProperty(
    "commit.status-check.max-wait-ms", "Longest wait between two such looks.", _COMMITS, 60_000
)
STATUS_CHECK_TOTAL_TIMEOUT_MS = IntProperty(
    "commit.status-check.total-timeout-ms", "Time after which the state of a commit stays unknown.", _COMMITS, 1_800_000
)
MANIFEST_TARGET_SIZE_BYTES = IntProperty(
    "commit.manifest.target-size-bytes",
    "Size of a manifest, when manifests are merged or rewritten.",
    _COMMITS,
    8 * _MIB,
)
MANIFEST_MIN_COUNT_TO_MERGE = IntProperty(
    "commit.manifest.min-count-to-merge", "Fewer manifests than this are not merged with new ones.", _COMMITS, 100
)
MANIFEST_MERGE_ENABLED = BoolProperty(
    "commit.manifest-merge.enabled",
    "Whether commits merge small manifests; appends do so only if it is set to true, as in PyIceberg.",
    _COMMITS,
    True,
)
MANIFEST_MERGE_ON_APPEND = replace(MANIFEST_MERGE_ENABLED, default=False)
"""That property as appends read it: they merge only if it is set, as in PyIceberg."""
SUMMARY_PARTITION_LIMIT = IntProperty(
    "write.summary.partition-limit", "A summary names changed partitions up to this number.", _COMMITS, 0
)
LOCK_ENABLED = BoolProperty(
    "engine.hive.lock-enabled", "Whether commits take the metastore's lock; false compares and swaps.", _COMMITS, True
)
WAP_ENABLED = BoolProperty(
    "write.wap.enabled", "Whether writes may be staged, to be audited and published later.", _COMMITS, False
)

# ----------------------------------------------------------------------------------------------- metadata

_METADATA = "metadata"
METADATA_PREVIOUS_VERSIONS_MAX = IntProperty(
    "write.metadata.previous-versions-max", "How many earlier metadata files the metadata lists.", _METADATA, 100
)
METADATA_DELETE_AFTER_COMMIT = BoolProperty(
    "write.metadata.delete-after-commit.enabled",
    "Whether metadata files that are no longer listed are deleted.",
    _METADATA,
    False,
)
METADATA_COMPRESSION = ChoiceProperty(
    "write.metadata.compression-codec", "Compression of metadata files.", _METADATA, "none", ("none", "gzip")
)
METADATA_PATH = TextProperty(
    "write.metadata.path", "Folder of metadata files; by default `metadata` below the table.", _METADATA, ""
)
NAME_MAPPING = TextProperty(
    "schema.name-mapping.default", "Field ids by name, as JSON, for files that have no field ids.", _METADATA, ""
)
DEFAULT_METRICS_MODE = PatternProperty(
    "write.metadata.metrics.default",
    "What is kept of each column: none, counts, truncate(length) or full.",
    _METADATA,
    "truncate(16)",
    r"none|counts|full|truncate\(\s*(0*[1-9]\d*)\s*\)",
    "none, counts, truncate(length) with a length above 0, or full",
)
COLUMN_METRICS_MODE = ColumnProperty(
    "write.metadata.metrics.column.",
    "What is kept of one column, as write.metadata.metrics.default.",
    _METADATA,
    DEFAULT_METRICS_MODE,
)
METRICS_MAX_COLUMNS = IntProperty(
    "write.metadata.metrics.max-inferred-column-defaults",
    "Unless a default is set, only this many columns have metrics.",
    _METADATA,
    100,
    0,
)
HIVE_ENGINE = BoolProperty(
    "engine.hive.enabled", "Whether Hive itself can read the table (a storage handler in its row).", _METADATA, False
)

# --------------------------------------------------------------------------------------------- encryption

_ENCRYPTION = "encryption"
ENCRYPTION_KEY_ID = TextProperty(
    "encryption.key-id",
    "The key in the catalog's key service that the table is encrypted by; set when it is created.",
    _ENCRYPTION,
    "",
)
DATA_KEY_LENGTH = ChoiceProperty(
    "encryption.data-key-length", "Bytes of the keys of files.", _ENCRYPTION, "16", ("16", "24", "32")
)

# ------------------------------------------------------------------------------------------------ reading

_SCANS = "scans"
SPLIT_TARGET_SIZE = IntProperty("read.split.target-size", "Bytes that a reader's task is to hold.", _SCANS, 128 * _MIB)
SPLIT_LOOKBACK = IntProperty(
    "read.split.planning-lookback", "Tasks that are open at once while files are put into them.", _SCANS, 10
)
SPLIT_OPEN_FILE_COST = IntProperty(
    "read.split.open-file-cost", "The least bytes that a file counts as in a task.", _SCANS, 4 * _MIB
)

# --------------------------------------------------------------------------------------------- file sizes

_WRITERS = "writers"
_FORMATS = ("parquet", "orc", "avro")
TARGET_FILE_BYTES = IntProperty("write.target-file-size-bytes", "Size of data files.", _WRITERS, 512 * _MIB, 1)
DELETE_TARGET_FILE_BYTES = IntProperty(
    "write.delete.target-file-size-bytes", "Size of delete files.", _WRITERS, 64 * _MIB, 1
)
FILE_FORMAT = ChoiceProperty("write.format.default", "Format of data files.", _WRITERS, "parquet", _FORMATS)
DELETE_FILE_FORMAT = ChoiceProperty(
    "write.delete.format.default", "Format of delete files; by default that of data files.", _WRITERS, "", _FORMATS
)
DELETE_GRANULARITY = ChoiceProperty(
    "write.delete.granularity",
    "Whether a position delete file is about one data file or a partition.",
    _WRITERS,
    "file",
    ("file", "partition"),
)
DOWNCAST_NANOSECONDS = BoolProperty(
    "downcast-ns-timestamp-to-us-on-write", "Whether nanoseconds are cut to microseconds.", _WRITERS, False
)

# ---------------------------------------------------------------------------------------------- locations

DATA_PATH = TextProperty("write.data.path", "Folder of data files; by default `data` below the table.", _WRITERS, "")
OBJECT_STORAGE_ENABLED = BoolProperty(
    "write.object-storage.enabled", "Whether paths of data files begin with a hash.", _WRITERS, False
)
OBJECT_STORAGE_PARTITIONED_PATHS = BoolProperty(
    "write.object-storage.partitioned-paths", "Whether such paths name the partition.", _WRITERS, True
)
OBJECT_STORAGE_PATH = TextProperty(
    "write.object-storage.path", "Deprecated: folder of data files whose paths begin with a hash.", _WRITERS, ""
)
FOLDER_STORAGE_PATH = TextProperty("write.folder-storage.path", "Deprecated: folder of data files.", _WRITERS, "")
FOLDER_PROPERTIES = tuple(each.name for each in (DATA_PATH, METADATA_PATH, OBJECT_STORAGE_PATH, FOLDER_STORAGE_PATH))
"""Names of the properties that say where files go."""

# --------------------------------------------------------------------------------- Parquet, ORC and Avro

_PARQUET, _ORC, _AVRO = "Parquet writers", "ORC writer", "Avro writer"
_OF_SPARK = "Spark's Parquet writer"
PARQUET_ROW_GROUP_BYTES = SizeProperty(
    "write.parquet.row-group-size-bytes", "Size of row groups.", _PARQUET, 128 * _MIB
)
PARQUET_ROW_GROUP_ROWS = SizeProperty("write.parquet.row-group-limit", "Rows of row groups.", _PARQUET, 1_048_576)
PARQUET_PAGE_BYTES = SizeProperty("write.parquet.page-size-bytes", "Size of pages.", _PARQUET, _MIB)
PARQUET_PAGE_ROWS = SizeProperty("write.parquet.page-row-limit", "Rows of pages.", _PARQUET, 20_000)
PARQUET_DICTIONARY_BYTES = SizeProperty("write.parquet.dict-size-bytes", "Size of dictionaries.", _PARQUET, 2 * _MIB)
PARQUET_PAGE_VERSION = ChoiceProperty(
    "write.parquet.page-version", "Version of data pages.", _PARQUET, "v1", ("v1", "v2")
)
PARQUET_CODEC = CodecProperty(
    "write.parquet.compression-codec",
    "Codec: zstd, gzip, snappy, lz4, brotli or none.",
    _PARQUET,
    "zstd",
    ("zstd", "gzip", "snappy", "lz4", "lz4_raw", "brotli", "lzo", "uncompressed", "none"),
)
PARQUET_CODEC_LEVEL = IntProperty(
    "write.parquet.compression-level", "Level of the codec; unless set, that of the library.", _PARQUET, 3, bits=32
)
PARQUET_ROWS_CHECK_MIN = SizeProperty(
    "write.parquet.row-group-check-min-record-count", "Fewest rows between two looks at the size.", _OF_SPARK, 100
)
PARQUET_ROWS_CHECK_MAX = SizeProperty(
    "write.parquet.row-group-check-max-record-count", "Most rows between two looks at the size.", _OF_SPARK, 10_000
)
PARQUET_BLOOM_MAX_BYTES = SizeProperty(
    "write.parquet.bloom-filter-max-bytes", "Size of a bloom filter at most.", _PARQUET, _MIB
)
PARQUET_BLOOM_ENABLED = ColumnProperty(
    "write.parquet.bloom-filter-enabled.column.", "Whether a column has a bloom filter.", _PARQUET
)
PARQUET_BLOOM_FPP = ColumnProperty(
    "write.parquet.bloom-filter-fpp.column.", "How often its bloom filter may be wrong.", _PARQUET
)
PARQUET_BLOOM_NDV = ColumnProperty(
    "write.parquet.bloom-filter-ndv.column.", "How many distinct values its bloom filter is made for.", _PARQUET
)
PARQUET_DICTIONARIES = ColumnProperty(
    "write.parquet.dict-encoding-enabled.column.", "Whether a column has dictionaries.", _PARQUET
)
PARQUET_STATISTICS = ColumnProperty(
    "write.parquet.stats-enabled.column.", "Whether a column has statistics in the file.", _PARQUET
)
PARQUET_SHREDS = BoolProperty(
    "write.parquet.shred-variants", "Whether parts of variants get columns of their own.", _PARQUET, False
)
PARQUET_VARIANT_ROWS = IntProperty(
    "write.parquet.variant-inference-buffer-size", "How many rows of a file tell which parts.", _PARQUET, 100
)
ORC_STRIPE_BYTES = SizeProperty("write.orc.stripe-size-bytes", "Size of stripes.", _ORC, 64 * _MIB)
ORC_CODEC = CodecProperty(
    "write.orc.compression-codec",
    "Codec: zlib, snappy, lz4, zstd or none.",
    _ORC,
    "zlib",
    ("zlib", "gzip", "snappy", "lz4", "zstd", "lzo", "brotli", "none", "uncompressed"),
)
ORC_STRATEGY = ChoiceProperty(
    "write.orc.compression-strategy", "What the codec is tuned for.", _ORC, "speed", ("speed", "compression")
)
ORC_BLOOM_COLUMNS = TextProperty(
    "write.orc.bloom.filter.columns", "Columns with bloom filters, with commas between them.", _ORC, ""
)
ORC_BLOOM_FPP = FractionProperty("write.orc.bloom.filter.fpp", "How often bloom filters may be wrong.", _ORC, 0.05)
AVRO_CODEC = CodecProperty(
    "write.avro.compression-codec",
    "Codec: gzip, zstd, snappy or uncompressed.",
    _AVRO,
    "gzip",
    ("gzip", "deflate", "zstd", "zstandard", "snappy", "bzip2", "uncompressed", "none", "null"),
)

COMPRESSION_CODECS = {"parquet": PARQUET_CODEC, "orc": ORC_CODEC, "avro": AVRO_CODEC}
"""The codec's property by file format."""

# -------------------------------------------------------------------------------------------- row changes

_ROW_CHANGES = "row changes"
_OPERATIONS = ("delete", "update", "merge")
_DISTRIBUTIONS = ("none", "hash", "range")
COPY_ON_WRITE, MERGE_ON_READ = "copy-on-write", "merge-on-read"
WRITE_MODES = {
    each: ChoiceProperty(
        f"write.{each}.mode",
        f"Whether {each} writes files again (copy-on-write) or delete files beside them (merge-on-read).",
        _ROW_CHANGES,
        COPY_ON_WRITE,
        (COPY_ON_WRITE, MERGE_ON_READ),
    )
    for each in _OPERATIONS
}
ISOLATION_LEVELS = {
    each: ChoiceProperty(
        f"write.{each}.isolation-level",
        f"Which concurrent commits make {each} fail: serializable refuses new matching rows as well.",
        _ROW_CHANGES,
        "serializable",
        ("serializable", "snapshot"),
    )
    for each in _OPERATIONS
}
ROW_DISTRIBUTION_MODES = {
    each: ChoiceProperty(
        f"write.{each}.distribution-mode", f"How Spark distributes rows of {each}.", "spark", "hash", _DISTRIBUTIONS
    )
    for each in _OPERATIONS
}

# -------------------------------------------------------------------------------------------------- Spark

DISTRIBUTION_MODE = ChoiceProperty(
    "write.distribution-mode",
    "How Spark distributes rows before it writes; by default range with a sort order, hash with partitions.",
    "spark",
    "",
    _DISTRIBUTIONS,
)
FANOUT_ENABLED = BoolProperty(
    "write.spark.fanout.enabled", "Whether Spark keeps a file open for each partition.", "spark", False
)
ADVISORY_PARTITION_BYTES = IntProperty(
    "write.spark.advisory-partition-size-bytes",
    "How much of shuffled rows one of Spark's tasks gets; 0 decides by file format and codec.",
    "spark",
    0,
)
ACCEPT_ANY_SCHEMA = BoolProperty(
    "write.spark.accept-any-schema", "Whether Spark leaves the check of columns to the write.", "spark", False
)
AUTO_SCHEMA_EVOLUTION = BoolProperty(
    "write.spark.auto-schema-evolution.enabled", "Whether MERGE WITH SCHEMA EVOLUTION may add columns.", "spark", True
)

# -------------------------------------------------------------------------------------------- maintenance

_MAINTENANCE = "maintenance"
MIN_SNAPSHOTS_TO_KEEP = IntProperty(
    "history.expire.min-snapshots-to-keep", "How many snapshots of a branch are kept at least.", _MAINTENANCE, 1
)
MAX_SNAPSHOT_AGE_MS = IntProperty(
    "history.expire.max-snapshot-age-ms", "Age up to which snapshots are kept.", _MAINTENANCE, 5 * _DAY_MS
)
MAX_REF_AGE_MS = IntProperty(
    "history.expire.max-ref-age-ms",
    "Age up to which branches and tags are kept; main always is.",
    _MAINTENANCE,
    2**63 - 1,
)
GC_ENABLED = BoolProperty(
    "gc.enabled", "Whether files of the table may be deleted; false if they may belong to others.", _MAINTENANCE, True
)
IS_SNAPSHOT_TABLE = BoolProperty(
    "snapshot", "Set in tables over another table's files: the service never deletes these.", _MAINTENANCE, False
)

# -------------------------------------------------------------------------------------------------- views

_VIEWS = "views"
VIEW_VERSIONS_MAX = IntProperty("version.history.num-entries", "How many versions a view keeps.", _VIEWS, 10)
VIEW_DROP_DIALECT = BoolProperty(
    "replace.drop-dialect.allowed", "Whether a new version may lack a dialect of the one before.", _VIEWS, False
)
VIEW_METADATA_COMPRESSION = replace(
    METADATA_COMPRESSION, about="Compression of a view's metadata files.", reader=_VIEWS, default="gzip"
)


# ----------------------------------------------------------------------------------------- the whole table


def _records() -> Iterator[TableProperty]:
    found: dict[tuple[str, str], TableProperty] = {}
    for value in list(globals().values()):
        for each in value.values() if isinstance(value, dict) else (value,):
            if isinstance(each, TableProperty):
                found.setdefault((each.name, each.reader), each)  # the first record of a name is the one that is shown
    yield from found.values()


@dataclass(frozen=True, slots=True)
class SettingsRow:
    name: str
    kind: str
    default: str
    choices: tuple[str, ...]
    reader: str
    about: str


_ALL = tuple(_records())
_OF_TABLES = tuple(each for each in _ALL if each.reader != _VIEWS)
_BY_NAME = {each.name: each for each in _OF_TABLES if not isinstance(each, ColumnProperty)}
_FAMILIES = [each for each in _OF_TABLES if isinstance(each, ColumnProperty)]


def settings_rows() -> Iterator[SettingsRow]:
    """The rows of a page of all properties, in the order of this module; names of families end in `<column>`."""
    for each in _ALL:
        name = f"{each.name}<column>" if isinstance(each, ColumnProperty) else each.name
        choices = each.choices if isinstance(each, ChoiceProperty) else ()
        yield SettingsRow(name, each.KIND, each.default_text, choices, each.reader, each.about)


def property_names() -> list[str]:
    """Names of the properties of tables, for completion; families by their prefix."""
    return sorted(each.name for each in _OF_TABLES)


def check_properties(properties: Mapping[str, str]) -> None:
    """Refuses values of known properties that no reader could use; ConfigurationError names what may be set."""
    for name, text in properties.items():
        if name in _BY_NAME:
            _BY_NAME[name].check(text)
        for family in _FAMILIES:
            if family.matches(name):
                family.check(text)
    check_policy(properties)


def metadata_folder(location: str, properties: Mapping[str, str]) -> str:
    """The folder of metadata files: `write.metadata.path`, relative ones below the location, by default `metadata`
    (specification, "Path Construction")."""
    path = (METADATA_PATH.of(properties) or "metadata").rstrip("/")
    if path.startswith("/") or "://" in path or path.split("/", 1)[0].endswith(":"):
        return path
    return f"{location.rstrip('/')}/{path}"


def with_defaults(kind: str, given: Mapping[str, Any] | None, catalog: Mapping[str, str]) -> dict[str, str]:
    """Properties of a new table or view, above the catalog's `table-default.*` (`view-default.*`) and below its
    `table-override.*`."""
    return _below(f"{kind}-default.", catalog) | text_properties(given or {}) | _below(f"{kind}-override.", catalog)


def _below(prefix: str, properties: Mapping[str, str]) -> dict[str, str]:
    return {key[len(prefix) :]: value for key, value in properties.items() if key.startswith(prefix)}
