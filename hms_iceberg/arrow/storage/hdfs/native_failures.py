"""Typed errors made of the texts of hdfs-native and the NameNode."""

from __future__ import annotations

import errno
import re
from collections.abc import Iterator
from contextlib import contextmanager

from hms_iceberg.arrow.storage.hdfs.login import Login

_REMOTE = re.compile(r'^(?:Fatal)?RPCError\("(?P<java>[\w.$]+)", "(?P<text>.*)"\)$', re.DOTALL)
_GSSAPI = re.compile(r'GSSAPIError\(.*, "(?P<text>.*)"\)$', re.DOTALL)
_GSSAPI_VAGUE = "Unspecified GSS failure.  Minor code may provide more information: "
_DATANODE = re.compile(r'ip_addr: \\?"(?P<host>[^"\\]+).*?xfer_port: (?P<port>\d+)', re.DOTALL)
_CUT_OFF = ("All DataNodes failed", "Connection reset", "Broken pipe", "end of file", "early eof")
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
_NOT_ACCEPTED = ("SaslException", "SecretManager$InvalidToken")
_REMEDIES = {
    "SafeModeException": "HDFS takes no changes until it leaves safe mode (hdfs dfsadmin -safemode get)",
    "StandbyException": (
        "use the nameservice, in locations and for tokens, instead of one NameNode's address; or wait until one is "
        "active"
    ),
}


class LoginError(PermissionError):
    """The cluster does not know who this process is; the text says what to do."""


@contextmanager
def errors_of_hdfs(login: Login) -> Iterator[None]:
    """Turns hdfs-native's errors into LoginError, which says what helps, or OSError with its number, by which Python
    chooses the class."""
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
        raise _login_error(str(error), login) or _encrypted(str(error)) or _remote(str(error), login) from error
    except BaseException as error:
        if type(error).__name__ != "PanicException":  # of the client's Rust: no Exception, and not importable
            raise
        raise OSError(errno.EIO, f"hdfs-native failed: {_first_line(str(error))}") from error


@contextmanager
def errors_of_data(login: Login, advice: str | None) -> Iterator[None]:
    """As `errors_of_hdfs`, where data is read or written; `advice` helps if DataNodes end connections."""
    try:
        with errors_of_hdfs(login):
            yield
    except LoginError:
        raise
    except OSError as error:
        text = error.strerror or str(error)
        if not any(words in text for words in _CUT_OFF):
            raise
        met = " and ".join(f"{each['host']}:{each['port']}" for each in _DATANODE.finditer(text))
        said = f"no DataNode gives it: {met}" if met else text
        raise OSError(error.errno, f"{said} ({advice})" if advice else said) from error


def _numbered(number: int, error: Exception) -> OSError:
    text = str(error.args[-1]) if error.args else type(error).__name__
    return OSError(number, _first_line(text))


def _encrypted(text: str) -> OSError | None:
    if "encryption zone" not in text:
        return None
    said = "it is in an encryption zone, and where its keys are is not known"
    remedy = "set hadoop.security.key.provider.path to the KMS, kms://…, as the cluster's core-site.xml does"
    return OSError(errno.ENOTSUP, f"{said} ({remedy})")


def _login_error(text: str, login: Login) -> LoginError | None:
    if "Failed to load libgssapi_krb" in text:
        said = "Kerberos needs the library libgssapi_krb5: apt install libgssapi-krb5-2, or yum install krb5-libs"
        return LoginError(errno.EACCES, said)
    match = _GSSAPI.match(text)
    if match is None:
        return None
    reason = _first_line(match["text"].replace("\\'", "'")).replace(_GSSAPI_VAGUE, "")
    return LoginError(errno.EACCES, login.advice(reason.rpartition("inaccessible: ")[2]))


def _remote(text: str, login: Login) -> OSError:
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
    if inner in _NOT_ACCEPTED:
        return LoginError(errno.EACCES, login.advice_if_refused(line))
    return OSError(_NUMBERS.get(inner, errno.EIO), f"{line} ({remedy})" if remedy else line)


def _first_line(text: str) -> str:
    return text.strip().partition("\n")[0].rstrip(". ")
