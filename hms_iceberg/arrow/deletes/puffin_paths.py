"""Deletion vectors of data files that get other paths.

Source: Puffin specification, "File structure" and blob type ``deletion-vector-v1``.
"""

from __future__ import annotations

import json
from collections.abc import Callable

from hms_iceberg.arrow.deletes.puffin_footer import MAGIC, TAIL, parse_footer
from hms_iceberg.arrow.storage.failures import decoding
from hms_iceberg.storage import Storage

_REFERENCED = "referenced-data-file"


def copy_puffin(storage: Storage, source: str, target: str, rename: Callable[[str], str]) -> int:
    """Copies a Puffin file, with other paths of the data files that its vectors are about.

    Blobs stay where they are in the file, so that their offsets in manifests hold.

    Args:
        storage: where both files are.
        source: the file.
        target: the new file.
        rename: from the path of a data file to its new one.

    Returns:
        The size of the new file in bytes.

    Raises:
        MissingFileError: there is no such file.
        CorruptDataFileError: it is no Puffin file, or its footer is damaged.
    """
    data = storage.read(source)
    with decoding(source, "Puffin"):
        start, footer = parse_footer(data, source)
        for blob in footer["blobs"]:
            properties = blob.get("properties") or {}
            if _REFERENCED in properties:
                properties[_REFERENCED] = rename(properties[_REFERENCED])
    payload = json.dumps(footer, ensure_ascii=False).encode("utf-8")
    copied = data[:start] + MAGIC + payload + TAIL.pack(len(payload), 0, MAGIC)
    storage.create(target, copied)
    return len(copied)
