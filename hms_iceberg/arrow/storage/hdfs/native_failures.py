"""What went wrong, out of the texts in which hdfs-native and the NameNode say it."""

from __future__ import annotations

import errno
import re
from collections.abc import Iterator
from contextlib import contextmanager

_REMOTE = re.compile(r'^(?:Fatal)?RPCError\("(?P<java>[\w.$]+)", "(?P<text>.*)"\)$', re.DOTALL)
_PACKAGE = re.compile(r"\b(?:[a-z]\w*\.)+(?=[A-Z]\w*(?:Exception|Error)\b)")
_NUMBERS = {
    "AccessControlException": errno.EACCES,
    "AuthorizationException": errno.EACCES,
    "FileAlreadyExistsException": errno.EEXIST,
    "FileNotFoundException": errno.ENOENT,
    "ParentNotDirectoryException": errno.ENOTDIR,
    "PathIsNotDirectoryException": errno.ENOTDIR,
    "PathIsNotEmptyDirectoryException": errno.ENOTEMPTY,
    "NSQuotaExceededException": errno.EDQUOT,
    "DSQuotaExceededException": errno.EDQUOT,
    "QuotaByStorageTypeExceededException": errno.EDQUOT,
    "SafeModeException": errno.EBUSY,
    "StandbyException": errno.EHOSTDOWN,
}
_REMEDIES = {
    "SafeModeException": "HDFS takes no changes until it leaves safe mode (hdfs dfsadmin -safemode get)",
    "StandbyException": "use the nameservice instead of one NameNode's address, or wait until one is active",
}


@contextmanager
def errors_of_hdfs() -> Iterator[None]:
    """Turns hdfs-native's errors into the operating system's, of one line.

    Raises:
        OSError: what failed, with its number: Python chooses the class by it.
    """
    try:
        yield
    except FileNotFoundError as error:
        raise _numbered(errno.ENOENT, error) from error
    except FileExistsError as error:
        raise _numbered(errno.EEXIST, error) from error
    except IsADirectoryError as error:
        raise _numbered(errno.EISDIR, error) from error
    except OSError as error:
        raise _numbered(error.errno or errno.EIO, error) from error
    except (RuntimeError, NotImplementedError) as error:
        raise _remote(str(error)) from error
    except BaseException as error:
        if type(error).__name__ != "PanicException":  # of the client's Rust: no Exception, and not importable
            raise
        raise OSError(errno.EIO, f"hdfs-native failed: {_first_line(str(error))}") from error


def _numbered(number: int, error: Exception) -> OSError:
    text = str(error.args[-1]) if error.args else type(error).__name__
    return OSError(number, _first_line(text))


def _remote(text: str) -> OSError:
    match = _REMOTE.match(text)
    if match is None:
        return OSError(errno.EIO, _first_line(text))
    said = match["text"].encode("latin-1", "backslashreplace").decode("unicode_escape", "replace")
    java = match["java"].rpartition(".")[2]
    # What a NameNode tells to try again is said with what is the matter before it.
    line = _PACKAGE.sub("", _first_line(said))
    inner = next((name for name in _NUMBERS if line.startswith(f"{name}: ")), java)
    remedy = _REMEDIES.get(inner)
    line = line if inner != java or line.startswith(inner) else f"{inner}: {line}"
    return OSError(_NUMBERS.get(inner, errno.EIO), f"{line} ({remedy})" if remedy else line)


def _first_line(text: str) -> str:
    return text.strip().partition("\n")[0].rstrip(". ")
