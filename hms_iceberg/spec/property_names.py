"""Names of table properties, as constants of one class, by PyIceberg's names."""

from __future__ import annotations

from hms_iceberg.spec import table_properties


class TableProperties:
    """Names of table properties; the values are described in `hms_iceberg.spec.table_properties`."""

    PARQUET_ROW_GROUP_SIZE_BYTES = table_properties.PARQUET_ROW_GROUP_BYTES.name
    PARQUET_ROW_GROUP_LIMIT = table_properties.PARQUET_ROW_GROUP_ROWS.name
    PARQUET_PAGE_SIZE_BYTES = table_properties.PARQUET_PAGE_BYTES.name
    PARQUET_PAGE_ROW_LIMIT = table_properties.PARQUET_PAGE_ROWS.name
    PARQUET_DICT_SIZE_BYTES = table_properties.PARQUET_DICTIONARY_BYTES.name
    PARQUET_COMPRESSION = table_properties.PARQUET_CODEC.name
    PARQUET_COMPRESSION_LEVEL = table_properties.PARQUET_CODEC_LEVEL.name
    WRITE_AVRO_COMPRESSION = table_properties.AVRO_CODEC.name
    WRITE_TARGET_FILE_SIZE_BYTES = table_properties.TARGET_FILE_BYTES.name
    DEFAULT_WRITE_METRICS_MODE = table_properties.DEFAULT_METRICS_MODE.name
    METRICS_MODE_COLUMN_CONF_PREFIX = table_properties.COLUMN_METRICS_MODE.name.rstrip(".")
    WRITE_PARTITION_SUMMARY_LIMIT = table_properties.SUMMARY_PARTITION_LIMIT.name
    OBJECT_STORE_ENABLED = table_properties.OBJECT_STORAGE_ENABLED.name
    WRITE_OBJECT_STORE_PARTITIONED_PATHS = table_properties.OBJECT_STORAGE_PARTITIONED_PATHS.name
    WRITE_DATA_PATH = table_properties.DATA_PATH.name
    WRITE_METADATA_PATH = table_properties.METADATA_PATH.name
    WRITE_FILE_FORMAT = table_properties.FILE_FORMAT.name
    DELETE_MODE = table_properties.WRITE_MODES["delete"].name
    DELETE_MODE_COPY_ON_WRITE = table_properties.COPY_ON_WRITE
    DELETE_MODE_MERGE_ON_READ = table_properties.MERGE_ON_READ
    DEFAULT_NAME_MAPPING = table_properties.NAME_MAPPING.name
    FORMAT_VERSION = "format-version"
    MANIFEST_TARGET_SIZE_BYTES = table_properties.MANIFEST_TARGET_SIZE_BYTES.name
    MANIFEST_MIN_MERGE_COUNT = table_properties.MANIFEST_MIN_COUNT_TO_MERGE.name
    MANIFEST_MERGE_ENABLED = table_properties.MANIFEST_MERGE_ENABLED.name
    METADATA_PREVIOUS_VERSIONS_MAX = table_properties.METADATA_PREVIOUS_VERSIONS_MAX.name
    METADATA_DELETE_AFTER_COMMIT_ENABLED = table_properties.METADATA_DELETE_AFTER_COMMIT.name
    MAX_SNAPSHOT_AGE_MS = table_properties.MAX_SNAPSHOT_AGE_MS.name
    MIN_SNAPSHOTS_TO_KEEP = table_properties.MIN_SNAPSHOTS_TO_KEEP.name
