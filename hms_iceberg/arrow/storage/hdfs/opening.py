"""Chooses the client of HDFS: hdfs-native, or libhdfs if the user says so."""

from __future__ import annotations

import getpass
import os
import re
from collections.abc import Mapping
from importlib.util import find_spec
from urllib.parse import urlencode

from hms_iceberg.arrow.storage.hdfs import tokens
from hms_iceberg.arrow.storage.hdfs.cluster_address import check_default, cluster_address
from hms_iceberg.arrow.storage.hdfs.hadoop_settings import hadoop_settings
from hms_iceberg.arrow.storage.hdfs.login import Login, has_kerberos
from hms_iceberg.errors import ConfigurationError, MissingDependencyError
from hms_iceberg.lazy import fs

HDFS_SCHEMES = frozenset({"hdfs", "viewfs"})
_CLIENT = "hdfs.client"
_CLIENTS = ("native", "libhdfs")
_USER_VARIABLE = "HADOOP_USER_NAME"


def open_hdfs(scheme: str, authority: str, properties: Mapping[str, str]) -> fs.FileSystem:
    """The file system of a cluster, by the location's authority, or else `hdfs.host` and `hdfs.port`, or
    `fs.defaultFS`. Properties: `hdfs.client` (`native`, `libhdfs`), `hdfs.user`, `hdfs.kerberos_ticket`,
    `hdfs.kerberos-principal`, `hdfs.kerberos-keytab`, and Hadoop's."""
    client = properties.get(_CLIENT, _CLIENTS[0]).strip().lower()
    if client not in _CLIENTS:
        raise ConfigurationError(f"Property {_CLIENT} must be native or libhdfs, but is {properties[_CLIENT]!r}.")
    if not authority:
        authority = own_authority(scheme, properties)
        if authority:
            check_default(authority, hadoop_settings(properties))
    if client == "libhdfs":
        return _libhdfs(scheme, authority, properties)
    if find_spec("hdfs_native") is None:
        raise MissingDependencyError(
            f"Cannot open {scheme}://{authority}: HDFS needs the package hdfs-native. Run pip install "
            "'hms_iceberg[hdfs]'; or, with a Hadoop installation, set the property hdfs.client to libhdfs."
        )
    settings = hadoop_settings(properties)
    login = Login.of(properties, has_kerberos(settings))
    services = tokens.services() if has_kerberos(settings) and login.principal is None else ()
    address = cluster_address(scheme, authority, settings, services)
    if not has_kerberos(settings):
        if login.principal is not None:
            raise ConfigurationError(
                f"Cannot log in to {scheme}://{authority} as {login.principal}: the cluster has no Kerberos, and "
                "hadoop.security.authentication is simple. Remove the properties hdfs.kerberos-principal, "
                "hdfs.kerberos-keytab and hdfs.kerberos_ticket, or use hdfs.user."
            )
        _act_as(properties.get("hdfs.user"))
    from hms_iceberg.arrow.storage.hdfs.native import NativeHdfs

    return fs.PyFileSystem(NativeHdfs(address, login))


def own_authority(scheme: str, properties: Mapping[str, str]) -> str:
    """The authority of locations without a host, as `hdfs.host` and `hdfs.port` say; nothing if they do not."""
    host = properties.get("hdfs.host", "") if scheme == "hdfs" else ""
    if not host:
        return ""
    return (host.partition("://")[2] or host) + (f":{_port(properties)}" if properties.get("hdfs.port") else "")


def default_cluster(properties: Mapping[str, str]) -> str | None:
    """Scheme and authority of paths without a scheme, if the properties themselves say that they are on HDFS. In the
    configuration folder it does not count: there a path of Python is local, as its user expects."""
    default = properties.get("hadoop.fs.defaultFS") or properties.get("fs.defaultFS", "")
    match = re.match(r"(hdfs|viewfs)://[^/]+", default)
    return match[0] if match else None


def moves_exclusively(filesystem: fs.FileSystem) -> bool:
    """Whether a file that is moved never replaces another, so that exactly one of several writers of a name wins."""
    if not isinstance(filesystem, fs.PyFileSystem):
        return False
    from hms_iceberg.arrow.storage.hdfs.native import NativeHdfs

    return isinstance(filesystem.handler, NativeHdfs)


def _port(properties: Mapping[str, str]) -> int:
    try:
        return int(properties["hdfs.port"])
    except ValueError as error:
        raise ConfigurationError(f"Property hdfs.port must be a number, but is {properties['hdfs.port']!r}.") from error


def _act_as(user: str | None) -> None:
    """Makes the process act as a user, for clusters without Kerberos, which believe the name that a client gives. The
    client reads the variable whenever it connects, and so again in the middle of its work: a process has one user."""
    name = os.environ.setdefault(_USER_VARIABLE, user or _own_name())
    if user and name != user:
        raise ConfigurationError(
            f"Cannot use HDFS as {user} (property hdfs.user): this process uses it as {name} ({_USER_VARIABLE}), "
            "and one process has one user there. Set the variable before the first use, or start another process."
        )


def _own_name() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container's user without a name
        return str(os.getuid())


def _libhdfs(scheme: str, authority: str, properties: Mapping[str, str]) -> fs.FileSystem:
    options = {"user": properties.get("hdfs.user"), "kerb_ticket": properties.get("hdfs.kerberos_ticket")}
    given = urlencode({name: value for name, value in options.items() if value})
    host = authority or "default"
    try:
        return fs.HadoopFileSystem.from_uri(f"{scheme}://{host}/" + (f"?{given}" if given else ""))
    except (AttributeError, ImportError) as error:
        raise MissingDependencyError(
            "This build of pyarrow has no HadoopFileSystem, which libhdfs needs. Install a pyarrow wheel from PyPI, or "
            f"remove the property {_CLIENT}."
        ) from error
    except OSError as error:
        line = str(error).strip().partition("\n")[0]
        raise ConfigurationError(
            f"Cannot connect to {scheme}://{authority} by libhdfs: {line.rstrip('.')}. It needs Java (JAVA_HOME) and a "
            "Hadoop installation: set HADOOP_HOME, and CLASSPATH to the output of `hadoop classpath --glob` (PySpark's "
            "jars are not enough). "
            f"Without one, remove the property {_CLIENT} and run pip install 'hms_iceberg[hdfs]'."
        ) from error
