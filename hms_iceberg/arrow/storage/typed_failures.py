"""Errors of storage with the location named, whichever library raises them."""

from __future__ import annotations

import errno
import re
from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa

from hms_iceberg.arrow.storage.hdfs.native_failures import LoginError
from hms_iceberg.errors import FileAlreadyExistsError, MissingFileError, StorageDeniedError, StorageError

# How AWS and Google say it, of which Arrow makes an error like any other.
_DENIED = re.compile("ACCESS_DENIED|PERMISSION_DENIED")


def already_exists(location: str) -> FileAlreadyExistsError:
    """The error of a file that is there already."""
    return FileAlreadyExistsError(
        f"Cannot create {location}: a file is there already and was left as it is. Expected a name that nobody else "
        f"uses; load the table again and retry with a new name."
    )


@contextmanager
def translated_errors(action: str, location: str) -> Iterator[None]:
    """Turns the operating system's and pyarrow's errors into ours, with the location named.

    Args:
        action: what is done, such as `read`, for messages.
        location: location of the file.

    Returns:
        a context manager.

    Raises:
        MissingFileError: there is no such file.
        StorageDeniedError: this user, or the key given, lacks the right.
        StorageError: anything else that failed.
    """
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
