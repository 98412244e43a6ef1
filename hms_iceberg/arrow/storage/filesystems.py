"""pyarrow file systems from catalog properties; and files that are damaged, told from those that cannot be read.

The property names are those of PyIceberg and Iceberg Java (``s3.endpoint``, ``hdfs.host``, ``adls.account-name`` …), so
that an existing configuration works.

Decoders raise one kind of error for both. A failure of the storage has an error number or a type of its own; if a
decoder made text of it, or the store's client knows no numbers, Arrow's words tell.
"""

from __future__ import annotations

import errno
import re
import struct
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

from hms_iceberg.arrow.storage.hdfs.native_failures import LoginError
from hms_iceberg.arrow.storage.hdfs.opening import HDFS_SCHEMES, open_hdfs
from hms_iceberg.errors import (
    ConfigurationError,
    CorruptDataFileError,
    CorruptFileError,
    FileAlreadyExistsError,
    IcebergError,
    MissingDependencyError,
    MissingFileError,
    StorageDeniedError,
    StorageError,
)
from hms_iceberg.lazy import fs, pa
from hms_iceberg.spec.places import (
    AZURE_SCHEMES,
    GCS_SCHEMES,
    S3_SCHEMES,
    folded,
    has_dot_segments,
    is_bucket_store,
    split_location,
)

_S3_RETRIES = 5  # as Apache Iceberg (Java); pyarrow alone gives up at the third "slow down"
_TRUE_TEXTS = frozenset({"true", "1", "yes", "y", "on", "t"})


@dataclass(frozen=True, slots=True)
class ParsedLocation:
    """A location taken apart: scheme ("file" for plain paths), authority (host or bucket), path for the file system."""

    scheme: str
    authority: str
    path: str

    @property
    def is_local(self) -> bool:
        return self.scheme == "file"


def parse_location(location: str) -> ParsedLocation:
    """Takes a location apart, with the bucket before the path as pyarrow wants it. As in Java, `%20` stays three
    characters; as in Hadoop, `..` takes the segment before it away."""
    if "\0" in location:
        raise StorageError(f"Cannot use the location {location!r}: it has a null character, so the text is damaged.")
    scheme, authority, path = split_location(location)
    # An empty segment is a part of an object's key: pyarrow refuses it rather than take another object.
    is_literal = "//" in path and is_bucket_store(scheme)
    if not is_literal and ("//" in path or has_dot_segments(path)):
        whole = folded(path)
        path = whole + ("/" if path.endswith("/") or not whole else "")
    if scheme in S3_SCHEMES or scheme in GCS_SCHEMES:
        return ParsedLocation(scheme, authority, f"{authority}{path}" if authority else path.lstrip("/"))
    if scheme in AZURE_SCHEMES:
        container, _, _ = authority.partition("@")
        return ParsedLocation(scheme, authority, f"{container}{path}")
    return ParsedLocation(scheme, authority, path)


def create_filesystem(location: ParsedLocation, properties: Mapping[str, str]) -> fs.FileSystem:
    """A new pyarrow file system for a location; the caller keeps it."""
    builders: tuple[tuple[frozenset[str], Callable[[ParsedLocation, Mapping[str, str]], fs.FileSystem]], ...] = (
        (frozenset({"file"}), lambda _location, _properties: fs.LocalFileSystem()),
        (S3_SCHEMES, _s3),
        (HDFS_SCHEMES, lambda place, given: open_hdfs(place.scheme, place.authority, given)),
        (GCS_SCHEMES, _gcs),
        (AZURE_SCHEMES, _azure),
    )
    for schemes, builder in builders:
        if location.scheme in schemes:
            return builder(location, properties)
    raise ConfigurationError(
        f"Cannot open {location.scheme}://{location.authority}: no file system is known for the scheme "
        f"{location.scheme!r}. Known schemes: file, s3, s3a, s3n, oss, hdfs, viewfs, gs, gcs, abfs, abfss, wasb, wasbs."
    )


def _text(properties: Mapping[str, str], *names: str) -> str | None:
    return next((properties[name] for name in names if properties.get(name)), None)


def _flag(properties: Mapping[str, str], name: str) -> bool | None:
    value = properties.get(name)
    return None if value is None else str(value).strip().lower() in _TRUE_TEXTS


def _number(properties: Mapping[str, str], name: str) -> float | None:
    value = properties.get(name)
    if value is None:
        return None
    try:
        return float(value)
    except ValueError as error:
        raise ConfigurationError(f"Property {name} must be a number, but is {value!r}.") from error


def _implementation(name: str, what: str) -> Any:
    try:
        return getattr(fs, name)
    except (AttributeError, ImportError) as error:
        raise MissingDependencyError(
            f"This build of pyarrow has no {name}, which {what} needs. Install a pyarrow wheel from PyPI "
            f"(pip install --upgrade pyarrow)."
        ) from error


def _set(arguments: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in arguments.items() if value is not None}


def _s3(location: ParsedLocation, properties: Mapping[str, str]) -> fs.FileSystem:
    virtual_addressing = _flag(properties, "s3.force-virtual-addressing")
    path_style = _flag(properties, "s3.path-style-access")
    if virtual_addressing is None and path_style is not None:
        virtual_addressing = not path_style
    if virtual_addressing is None and location.scheme == "oss":
        virtual_addressing = True
    region = _text(properties, "s3.region", "client.region")
    if region is None and properties.get("s3.endpoint"):
        region = "us-east-1"  # a self-hosted store ignores it, and asking AWS for the bucket's region would fail
    endpoint = _text(properties, "s3.endpoint")
    retries = _number(properties, "s3.retry.num-retries")
    return _implementation("S3FileSystem", "S3")(
        **_set(
            {
                "endpoint_override": endpoint,
                "access_key": _text(properties, "s3.access-key-id", "client.access-key-id"),
                "secret_key": _text(properties, "s3.secret-access-key", "client.secret-access-key"),
                "session_token": _text(properties, "s3.session-token", "client.session-token"),
                "region": region,
                "proxy_options": _text(properties, "s3.proxy-uri"),
                "connect_timeout": _number(properties, "s3.connect-timeout"),
                "request_timeout": _number(properties, "s3.request-timeout"),
                "role_arn": _text(properties, "s3.role-arn", "client.role-arn"),
                "session_name": _text(properties, "s3.role-session-name", "client.role-session-name"),
                "anonymous": _flag(properties, "s3.anonymous"),
                "force_virtual_addressing": virtual_addressing,
                "tls_ca_file_path": _text(properties, "s3.tls-ca-file-path"),
                "retry_strategy": fs.AwsStandardS3RetryStrategy(
                    max_attempts=1 + (_S3_RETRIES if retries is None else int(retries))
                ),
            }
        )
    )


def _gcs(location: ParsedLocation, properties: Mapping[str, str]) -> fs.FileSystem:
    expires = _number(properties, "gcs.oauth2.token-expires-at")
    endpoint = _text(properties, "gcs.service.host")
    scheme, _, host = endpoint.rpartition("://") if endpoint else ("", "", "")
    return _implementation("GcsFileSystem", "Google Cloud Storage")(
        **_set(
            {
                "access_token": _text(properties, "gcs.oauth2.token"),
                "credential_token_expiration": (
                    None if expires is None else datetime.fromtimestamp(expires / 1000, tz=timezone.utc)
                ),
                "default_bucket_location": _text(properties, "gcs.default-bucket-location"),
                "scheme": scheme or None,
                "endpoint_override": host or None,
                "anonymous": _flag(properties, "gcs.anonymous"),
                "project_id": _text(properties, "gcs.project-id"),
            }
        )
    )


def _azure(location: ParsedLocation, properties: Mapping[str, str]) -> fs.FileSystem:
    _, _, host = location.authority.partition("@")
    account = _text(properties, "adls.account-name") or host.partition(".")[0] or None
    if account is None:
        raise ConfigurationError(
            f"Cannot open {location.scheme}://{location.authority}: no storage account. Write the location as "
            f"{location.scheme}://container@account.dfs.core.windows.net/path or set adls.account-name."
        )
    return _implementation("AzureFileSystem", "Azure Data Lake Storage")(
        **_set(
            {
                "account_name": account,
                "account_key": _text(properties, "adls.account-key"),
                "sas_token": _text(properties, "adls.sas-token"),
                "client_id": _text(properties, "adls.client-id"),
                "client_secret": _text(properties, "adls.client-secret"),
                "tenant_id": _text(properties, "adls.tenant-id"),
                "blob_storage_authority": _text(properties, "adls.blob-storage-authority"),
                "dfs_storage_authority": _text(properties, "adls.dfs-storage-authority"),
                "blob_storage_scheme": _text(properties, "adls.blob-storage-scheme"),
                "dfs_storage_scheme": _text(properties, "adls.dfs-storage-scheme"),
            }
        )
    )


def _decoding_errors() -> tuple[type[Exception], ...]:
    import cramjam

    return (
        CorruptFileError,
        pa.ArrowException,
        OSError,
        EOFError,
        LookupError,
        ValueError,
        OverflowError,
        TypeError,
        RecursionError,
        MemoryError,
        struct.error,
        zlib.error,
        cramjam.DecompressionError,
    )


# How Arrow's ORC reader, and its clients of S3, Google, Azure and HDFS, begin to say that a read failed.
_FAILED_READ = re.compile(r"Arrow error: IOError|AWS Error |google::cloud::Status|Azure Error: |HDFS .*failed")
_NUMBER = re.compile(r"\[errno (\d+)\]", re.IGNORECASE)
_GONE = re.compile(r"RESOURCE_NOT_FOUND|NO_SUCH_KEY|kNotFound|NOT_FOUND|BlobNotFound")


@contextmanager
def decoding(location: str, form: str, where: str = "") -> Iterator[None]:
    """Turns errors of reading a file within a block into typed ones: the file is damaged, or not readable now."""
    try:
        yield
    except _decoding_errors() as error:
        if _is_typed(error):
            raise
        raise _read_error(error, location) or _damage(error, location, form, where) from error


def _is_typed(error: BaseException) -> bool:
    """Whether an error needs no translation: it is typed already, or a limit of Arrow's arrays."""
    if isinstance(error, CorruptFileError):
        return isinstance(error, CorruptDataFileError)
    return isinstance(error, (IcebergError, pa.ArrowCapacityError))


def _read_error(error: BaseException, location: str) -> StorageError | None:
    """The error of the storage behind a decoder's error; None if there is none."""
    if isinstance(error, MemoryError):
        return StorageError(
            f"Cannot read {location}: memory ran out ({error}). Read fewer columns or smaller batches, or give the "
            f"process more memory; if it has enough, the sizes in the file are damaged."
        )
    if not isinstance(error, OSError):
        return None
    text = str(error).partition(" Detail: Python exception")[0]
    if type(error) is OSError and error.errno is None and not _FAILED_READ.search(text):
        return None
    found = _NUMBER.search(text)
    number = error.errno or (int(found[1]) if found else None)
    if isinstance(error, FileNotFoundError) or number == errno.ENOENT or _GONE.search(text):
        return MissingFileError(f"Cannot read {location}: the file disappeared while it was read ({text}).")
    return StorageError(
        f"Cannot read {location}: its storage failed ({text or type(error).__name__}). The file itself may be whole; "
        f"check that the storage can be reached and that it lets you in, and read again."
    )


# How Arrow's Parquet reader says that 32-bit integers were stored by differences of more bits.
_WIDE_DELTAS = re.compile(r"InitBlock EOF|delta bit width")


def _damage(error: BaseException, location: str, form: str, where: str) -> CorruptDataFileError:
    part = f"{where}: " if where else ""
    if _WIDE_DELTAS.search(str(error)):
        return CorruptDataFileError(
            f"Cannot read {location}: {part}{error}. The file is damaged, or its 32-bit integers have the encoding "
            "DELTA_BINARY_PACKED with differences of more than 32 bits, which DuckDB writes (parquet_version v2) and "
            "pyarrow does not read. Let Spark or DuckDB (parquet_version v1) write the file again."
        )
    return CorruptDataFileError(
        f"Cannot read {location}: {part}{error}. The file is damaged or is no {form} file; restore it, or remove it "
        f"from the table."
    )


# -------------------------------------------------------------------------------------------------------- errors


# How AWS and Google say it, of which Arrow makes an error like any other.
_DENIED = re.compile("ACCESS_DENIED|PERMISSION_DENIED")


def already_exists(location: str) -> FileAlreadyExistsError:
    return FileAlreadyExistsError(
        f"Cannot create {location}: a file is there already and was left as it is. Expected a name that nobody else "
        f"uses; load the table again and retry with a new name."
    )


@contextmanager
def translated_errors(action: str, location: str) -> Iterator[None]:
    """Turns the operating system's and pyarrow's errors into ours, with the location named."""
    try:
        yield
    except FileNotFoundError as error:
        raise MissingFileError(
            f"Cannot {action} {location}: there is no such file. Check that the table's location is reachable from "
            f"here and that nothing outside Iceberg removed files below it."
        ) from error
    except LoginError as error:
        raise StorageDeniedError(f"Cannot {action} {location}: {error.strerror}.") from error
    except (OSError, pa.ArrowInvalid) as error:
        detail = str(error).strip() or type(error).__name__
        if isinstance(error, PermissionError) or getattr(error, "errno", None) == errno.EROFS or _DENIED.search(detail):
            raise StorageDeniedError(
                f"Cannot {action} {location}: {detail}. The user of this process, or the key for the store, lacks the "
                f"right to {action} it. Grant that right, or use other credentials."
            ) from error
        raise StorageError(f"Cannot {action} {location}: {detail}") from error
