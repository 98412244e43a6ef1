"""The NameNodes of a location: an address, a nameservice, the default file system, or a table of mounts."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from hms_iceberg.arrow.storage.hdfs import tokens
from hms_iceberg.arrow.storage.hdfs.login import check_login, login_methods
from hms_iceberg.errors import ConfigurationError, StorageError

_DEFAULT_PORT = 8020
_DEFAULT = "fs.defaultFS"
_NAMENODES = "dfs.ha.namenodes."
_RPC_ADDRESS = "dfs.namenode.rpc-address."
_MOUNTS = "fs.viewfs.mounttable."
_LIBHDFS = "set the property hdfs.client to libhdfs, which needs a Hadoop installation"


@dataclass(frozen=True, slots=True)
class ClusterAddress:
    """The NameNodes and settings that a client connects with. `mounts` are the folders of viewfs that are mounted, if
    nothing outside of them is."""

    url: str
    settings: Mapping[str, str] = field(repr=False)
    mounts: tuple[str, ...] | None = None


def cluster_address(
    scheme: str, authority: str, settings: Mapping[str, str], services: Sequence[str] = ()
) -> ClusterAddress:
    """Finds the NameNodes of a location by its authority (`host`, `host:port`, a nameservice, empty for
    `fs.defaultFS`), and that one can be reached; `services` name the client's tokens."""
    authority = (authority or _default_authority(scheme, settings)).rpartition("@")[2]
    if scheme == "viewfs":
        return _mounted(authority, settings, services)
    return _of_namenodes(authority, settings, services)


def check_default(authority: str, settings: Mapping[str, str]) -> None:
    """Refuses a location without a host if the catalog names another cluster than Hadoop's settings do."""
    default = settings.get(_DEFAULT, "")
    scheme, _, rest = default.partition("://")
    if scheme != "hdfs" or not rest.strip("/"):
        return
    own, others = (_addresses(each, settings) for each in (authority, rest.partition("/")[0]))
    if not any(tokens.service_of(address, others) for address in own):
        raise ConfigurationError(
            f"Cannot tell which cluster hdfs:/// is: the property hdfs.host says {authority}, and {_DEFAULT} is "
            f"{default}. Remove hdfs.host, set both to the same cluster, or write locations with their host."
        )


def one_spelling(scheme: str, authority: str, path: str, settings: Mapping[str, str]) -> str:
    """The location of a file by its nameservice, or else by its NameNode's address: one for all its spellings."""
    authority = (authority or _default_authority(scheme, settings)).rpartition("@")[2]
    if scheme == "viewfs":
        prefix = f"{_MOUNTS}{authority}."
        links = {key[len(f"{prefix}link.") :]: key for key in settings if key.startswith(f"{prefix}link.")}
        mount = max((each for each in links if f"{path}/".startswith(f"{each}/")), key=len, default="")
        target = settings.get(links.get(mount, f"{prefix}linkFallback"), "")
        if not target.startswith("hdfs://"):
            return f"{scheme}://{authority}{path}"
        authority, slash, folder = target.removeprefix("hdfs://").partition("/")
        path = f"{slash}{folder}".rstrip("/") + path[len(mount) :]
    addresses = _addresses(authority, settings)
    services = (key[len(_NAMENODES) :] for key in settings if key.startswith(_NAMENODES))
    known = next((each for each in services if {*addresses} & {*_namenodes(each, settings).values()}), addresses[0])
    return f"hdfs://{known}{path}"


def _addresses(authority: str, settings: Mapping[str, str]) -> list[str]:
    """The addresses of the NameNodes behind an authority (host or nameservice)."""
    name, port = _host_and_port(authority.rpartition("@")[2])
    if f"{_NAMENODES}{name}" in settings:
        return list(_namenodes(name, settings).values())
    # A nameservice may have one NameNode without a name of its own.
    return [settings.get(f"{_RPC_ADDRESS}{name}") or f"{name}:{port or _DEFAULT_PORT}"]


def _default_authority(scheme: str, settings: Mapping[str, str]) -> str:
    default = settings.get(_DEFAULT, "")
    own, _, rest = default.partition("://")
    if own == scheme and rest.strip("/"):
        return rest.partition("/")[0]
    if scheme == "viewfs":
        return "default"  # Hadoop's name of the table without a name
    said = f"{_DEFAULT} is {default}" if default else f"there is no {_DEFAULT}"
    raise ConfigurationError(
        f"Cannot tell which cluster {scheme}:/// is: {said}. Set HADOOP_CONF_DIR to the folder of core-site.xml, set "
        f"the property {_DEFAULT} or hdfs.host, or write the location with its host or nameservice."
    )


def _of_namenodes(authority: str, settings: Mapping[str, str], services: Sequence[str]) -> ClusterAddress:
    name, _ = _host_and_port(authority)
    if f"{_NAMENODES}{name}" not in settings:
        [address] = _addresses(authority, settings)
        for service in (each.removeprefix(tokens.OF_NAMESERVICE) for each in services):
            if tokens.service_of(address, _namenodes(service, settings).values()):
                return _of_namenodes(service, settings, services)
        _reachable(authority, {name: address}, settings)
        return ClusterAddress(f"hdfs://{tokens.service_of(address, services) or address}", settings)
    addresses = _namenodes(name, settings)
    missing = [each for each, address in addresses.items() if not address]
    if missing or not addresses:
        raise ConfigurationError(
            f"Cannot connect to the nameservice {name}: {_NAMENODES}{name} names {', '.join(addresses) or 'nothing'}, "
            f"and there is no {_RPC_ADDRESS}{name}.{(missing or ['…'])[0]}. Complete the configuration."
        )
    reached = _reachable(name, addresses, settings)
    if f"{tokens.OF_NAMESERVICE}{name}" not in services:
        for each in reached:
            if found := tokens.service_of(addresses[each], services):
                return ClusterAddress(f"hdfs://{found}", settings)
    # The client waits for a machine that is switched off much longer than for one that refuses: those come last.
    ordered = ",".join([*reached, *(each for each in addresses if each not in reached)])
    return ClusterAddress(f"hdfs://{name}", {**settings, f"{_NAMENODES}{name}": ordered})


def _mounted(name: str, settings: Mapping[str, str], services: Sequence[str]) -> ClusterAddress:
    prefix = f"{_MOUNTS}{name}."
    own = {key[len(prefix) :]: value for key, value in settings.items() if key.startswith(prefix)}
    links = {key[len("link.") :]: target for key, target in own.items() if key.startswith("link.")}
    others = sorted(key for key in own if re.match(r"link(?!\.|Fallback$)", key))
    if others:
        raise ConfigurationError(f"Cannot use viewfs://{name}: {prefix}{others[0]} is not known here; {_LIBHDFS}.")
    fallback = own.get("linkFallback")
    if not links and not fallback:
        raise ConfigurationError(
            f"Cannot use viewfs://{name}: it has no mounts. Set HADOOP_CONF_DIR to the folder of a core-site.xml with "
            f"{prefix}link./folder, or write locations with hdfs://."
        )
    changed = dict(settings)
    for key, target in own.items():
        if key == "linkFallback" or key.startswith("link."):
            scheme, _, rest = target.partition("://")
            if scheme != "hdfs":
                raise ConfigurationError(f"Cannot use viewfs://{name}: {prefix}{key} is {target!r}, not hdfs://…")
            authority, slash, path = rest.partition("/")
            reached = _of_namenodes(authority, changed, services)
            changed = {**reached.settings, f"{prefix}{key}": f"{reached.url}{slash}{path}"}
    if fallback is None:
        # The client wants one. It is never used: the handler refuses what is not below a mount.
        changed[f"{prefix}linkFallback"] = changed[f"{prefix}link.{next(iter(links))}"]
    return ClusterAddress(f"viewfs://{name}", changed, None if fallback else tuple(sorted(links)))


def _host_and_port(authority: str) -> tuple[str, int | None]:
    host, colon, port = authority.rpartition(":")
    if not colon or port.endswith("]"):
        return authority, None
    try:
        return host, int(port)
    except ValueError as error:
        raise ConfigurationError(f"Cannot use hdfs://{authority}: {port!r} is no port.") from error


def _namenodes(name: str, settings: Mapping[str, str]) -> dict[str, str]:
    named = (each.strip() for each in settings.get(f"{_NAMENODES}{name}", "").split(","))
    return {each: settings.get(f"{_RPC_ADDRESS}{name}.{each}", "") for each in named if each}


def _known(settings: Mapping[str, str]) -> str:
    services = sorted(key[len(_NAMENODES) :] for key in settings if key.startswith(_NAMENODES))
    return f"Nameservices that are known: {', '.join(services)}. " if services else "No nameservice is known. "


def _reachable(what: str, addresses: Mapping[str, str], settings: Mapping[str, str]) -> list[str]:
    """The addresses of those NameNodes that accept connections; refuses a cluster and settings of which one has
    Kerberos."""
    reached, failures = [], []
    with ThreadPoolExecutor(len(addresses)) as pool:
        asked = {name: pool.submit(login_methods, *_with_port(address)) for name, address in addresses.items()}
    for name, answer in asked.items():
        try:
            methods = answer.result()
        except (OSError, UnicodeError) as error:
            failures.append(f"{addresses[name]}: {error}")
        else:
            check_login(f"hdfs://{what}", methods, settings)
            reached.append(name)
    if not reached:
        known = "" if f"{_NAMENODES}{what}" in settings else _known(settings)
        raise StorageError(
            f"Cannot connect to hdfs://{what}: no NameNode can be reached ({'; '.join(failures)}). {known}Check "
            "the name, HADOOP_CONF_DIR and the network."
        )
    return reached


def _with_port(address: str) -> tuple[str, int]:
    host, port = _host_and_port(address)
    return host.strip("[]"), port or _DEFAULT_PORT
