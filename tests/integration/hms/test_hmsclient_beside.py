"""Another user of hmsclient in the process has its classes as it brings them."""

from __future__ import annotations

import json
import subprocess
import sys

import pyarrow as pa

from hms_iceberg.catalog import Catalog
from hms_iceberg.hms.connection.thrift_types import ttypes
from hms_iceberg.hms.embedded import EmbeddedMetastore

DESCRIBE = """
import json
from hmsclient.genthrift.fb303 import FacebookService
from hmsclient.genthrift.hive_metastore import ThriftHiveMetastore, ttypes as theirs

def describe(value):
    if isinstance(value, (list, tuple)):
        return [describe(each) for each in value]
    return value if isinstance(value, (str, int, bool, type(None))) else getattr(value, "__qualname__", str(value))

found = {}
for module in (FacebookService, ThriftHiveMetastore, theirs):
    for name, value in vars(module).items():
        if isinstance(value, type):
            members = dict(vars(value))
            methods = {key: f"{each.__module__}.{each.__qualname__}" for key, each in members.items() if callable(each)}
            fields = {key: describe(each) for key, each in members.items() if key.endswith("_spec")}
            found[f"{module.__name__}.{name}"] = [sorted(members), methods, fields]
described = json.dumps(found, sort_keys=True)
"""


def test_the_classes_of_hmsclient_are_as_it_brings_them_after_a_catalog_was_used(
    catalog: Catalog, metastore: EmbeddedMetastore, namespace: str
) -> None:
    table = catalog.create_table(f"{namespace}.events", pa.schema([pa.field("id", pa.int64())]))
    table.append(pa.table({"id": [1]}))
    assert len(ttypes.Table.thrift_spec) == 19, "ours knows the fields of newer servers"
    fresh = subprocess.run(
        [sys.executable, "-c", f"{DESCRIBE}\nprint(described)"], capture_output=True, text=True, check=True
    )
    here: dict[str, str] = {}
    exec(DESCRIBE, here)
    assert json.loads(here["described"]) == json.loads(fresh.stdout)

    from hmsclient import HMSClient

    with HMSClient(host=metastore.uri.removeprefix("thrift://")) as other:
        assert type(other.get_table(namespace, "events")) is not ttypes.Table
