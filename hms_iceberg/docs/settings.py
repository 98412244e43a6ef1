"""The page of properties, made from the tables and classes that the package itself reads."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import fields
from itertools import groupby

from hms_iceberg.arrow.storage.arrow_storage import PREVIEW_PROPERTY
from hms_iceberg.encryption.key_services import SERVICE_CLASS, SERVICE_TYPE
from hms_iceberg.hms.connection.client_settings import ClientSettings
from hms_iceberg.hms.locking.lock_settings import LockSettings
from hms_iceberg.hms.rows.table_rows import RowSettings
from hms_iceberg.maintenance.service.policy import PREFIX, Policy
from hms_iceberg.spec.table_properties import settings_rows

Row = tuple[str, str, str, str]
"""A property: its name, its values, its default, and what it means."""


def settings_page() -> str:
    """Markdown: a table for each reader of properties, with name, values, default and meaning."""
    parts = [
        "# Properties",
        "What `set_properties`, `create table … tblproperties` and `hms-iceberg properties` take, with its default; "
        "below, the [properties of catalogs](#properties-of-catalogs).",
        "Properties that are not listed are kept, and change nothing here.",
    ]
    order = {each.reader: number for number, each in reversed(list(enumerate(settings_rows())))}
    rows = sorted(settings_rows(), key=lambda each: order[each.reader])
    for reader, listed in groupby(rows, key=lambda each: each.reader):
        of_reader = ((each.name, ", ".join(each.choices) or each.kind, each.default, each.about) for each in listed)
        parts += [f"## {reader[:1].upper()}{reader[1:]}", _table(of_reader)]
    parts += [
        "## Maintenance service",
        "Of a table, or without `maintenance.` in a policy file; see [maintenance](../maintenance/README.md).",
        _table(_of_policy()),
        "## Properties of catalogs",
        "Arguments of `load_catalog`, `-p KEY=VALUE` of a command, lines of `.pyiceberg.yaml`, or variables such as "
        "`PYICEBERG_CATALOG__PROD__URI`. Times without a unit are seconds, those that end in `-ms` milliseconds. "
        "How to log in to a metastore is in the guide on the [catalog](../catalog/README.md); `s3.*`, `gcs.*`, "
        "`adls.*` and `hdfs.*` are in the guide on [storage](../arrow/storage/README.md).",
        _table(_of_catalogs()),
    ]
    return "\n\n".join(parts) + "\n"


def _of_policy() -> Iterable[Row]:
    about = dict(re.findall(r"^ +(\w+): (.+?)$", Policy.__doc__ or "", re.M))
    for each in fields(Policy):
        kind = "true, false" if isinstance(each.default, bool) else "integer"
        meaning = about.get(each.name, "")
        yield (
            PREFIX + each.name.replace("_", "-"),
            kind,
            str(each.default).lower(),
            f"{meaning[:1].upper()}{meaning[1:]}",
        )


def _of_catalogs() -> Iterable[Row]:
    client, locks, rows = ClientSettings, LockSettings, RowSettings
    yield (
        "type",
        "hive, rest, hadoop",
        "by the URI",
        "A Hive Metastore, a server of the REST protocol, or tables in folders.",
    )
    yield "uri", "text", "", "`thrift://host:9083`, several with commas; `http://host:8181` for REST."
    yield "warehouse", "text", "the metastore's", "Where new databases and tables are put."
    preview = "Whether tables of format version 4 are read, as far as its draft is settled; they are never changed."
    yield PREVIEW_PROPERTY, "true, false", "false", preview
    timeout = "hive.metastore.client.connection.timeout"
    yield timeout, "time", f"{client.connect_timeout:g}s", "How long to wait for a connection."
    yield (
        "hive.metastore.client.socket.timeout",
        "time",
        f"{client.socket_timeout:g}s",
        "How long to wait for an answer.",
    )
    yield "hive.metastore.connect.retries", "integer", str(client.attempts), "How often a connection is tried."
    delay = "hive.metastore.client.connect.retry.delay"
    yield delay, "time", f"{client.retry_delay:g}s", "The wait between two rounds over the addresses."
    yield "clients", "integer", str(client.idle_connections), "Connections that are kept open while nobody uses them."
    yield "ugi", "text", "the server's choice", "Whom calls act for, as `user:group1,group2`; without a login only."
    lock = "Whether commits take the metastore's lock; `auto`: only if the server cannot compare and swap."
    yield "iceberg.engine.hive.lock-enabled", "true, false, auto", "true", lock
    compare = "Whether a server that can compares as well while the lock is held."
    yield "iceberg.hive.lock-compare-enabled", "true, false", str(locks.compare).lower(), compare
    for name, default, about in (
        ("lock-timeout", locks.timeout, "How long a commit waits for the lock."),
        ("lock-creation-timeout", locks.creation_timeout, "How long asking for a lock may take."),
        ("lock-creation-min-wait", locks.creation_min_wait, "The first wait before a lock is asked for again."),
        ("lock-creation-max-wait", locks.creation_max_wait, "The longest such wait."),
        ("lock-check-min-wait", locks.check_min_wait, "The first wait before a waiting lock is looked at again."),
        ("lock-check-max-wait", locks.check_max_wait, "The longest such wait."),
        ("lock-heartbeat-interval", locks.heartbeat_interval, "How often a held lock gives a sign of life."),
    ):
        yield f"iceberg.hive.{name}-ms", "integer", f"{default * 1000:g}", about
    keys = "Where the keys of [encrypted tables](../encryption/README.md) are; others by entry points."
    yield SERVICE_TYPE, "keystore, aws, vault", "", keys
    yield SERVICE_CLASS, "text", "", "The Python class of a key service, as `module:Class`, in place of a type."
    size = "The longest parameter or column type that the metastore holds; 4000 for old databases."
    yield "iceberg.hive.table-property-max-size", "integer", str(rows.max_value_length), size
    engine = "Whether Hive itself is to read the tables."
    yield "iceberg.engine.hive.enabled", "true, false", str(rows.hive_engine).lower(), engine
    zone = "false shows timestamps with zone as Hive 3's type, which Spark cannot read."
    yield "hive.hive2-compatible", "true, false", str(not rows.local_time_zone).lower(), zone


def _table(rows: Iterable[Row]) -> str:
    lines = [f"| `{name}` | {values} | {default or '-'} | {_cell(about)} |" for name, values, default, about in rows]
    return "\n".join(["| property | values | default | meaning |", "|---|---|---|---|", *lines])


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
