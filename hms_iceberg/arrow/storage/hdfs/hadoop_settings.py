"""Hadoop's settings of a cluster: the files of a configuration folder, and catalog properties."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from xml.etree import ElementInclude, ElementTree

from hms_iceberg.errors import ConfigurationError

_FILES = ("core-site.xml", "hdfs-site.xml")
_VARIABLE = re.compile(r"\$\{([^${}\s]+)\}")
_DEEPEST = 20  # as Hadoop substitutes
# Iceberg Java's prefix of a catalog's own settings of Hadoop.
_PREFIX = "hadoop."
_OWN_NAMES = ("dfs.", "fs.", "hadoop.", "ipc.")
_OF_CLUSTERS = re.compile(r"fs\.(defaultFS|viewfs\.|permissions\.)|dfs\.|ipc\.|hadoop\.(security|rpc)\.")


def hadoop_settings(properties: Mapping[str, str]) -> dict[str, str]:
    """Hadoop's settings for a catalog: its properties `dfs.*`, `fs.*`, `ipc.*` and `hadoop.*`, with and without the
    prefix `hadoop.` as in Iceberg Java, above the files of `HADOOP_CONF_DIR` or `HADOOP_HOME/etc/hadoop`."""
    found = dict(_from_folder())
    found |= {name: value for name, value in properties.items() if name.startswith(_OWN_NAMES)}
    found |= {name[len(_PREFIX) :]: value for name, value in properties.items() if name.startswith(_PREFIX)}
    return {name: _filled(value, found) for name, value in found.items()}


def is_of_clusters(name: str) -> bool:
    """Whether a setting of Hadoop says where a cluster is or how it is used."""
    return _OF_CLUSTERS.match(name) is not None


def _from_folder() -> Mapping[str, str]:
    folder = os.environ.get("HADOOP_CONF_DIR")
    if not folder and os.environ.get("HADOOP_HOME"):
        folder = os.path.join(os.environ["HADOOP_HOME"], "etc", "hadoop")
    found: dict[str, str] = {}
    for path in (Path(folder) / name for name in _FILES) if folder else ():
        if path.exists():
            found |= _from_file(path)
    return found


def _from_file(path: Path) -> dict[str, str]:
    try:
        root = ElementTree.parse(path).getroot()
        ElementInclude.include(root, base_url=str(path))
    except (ElementTree.ParseError, ElementInclude.FatalIncludeError, OSError) as error:
        raise ConfigurationError(
            f"Cannot read Hadoop's configuration {path}: {error}. Mend the file, or set HADOOP_CONF_DIR to "
            "another folder."
        ) from error
    rows = ((row.findtext("name"), row.findtext("value")) for row in root.iter("property"))
    return {name.strip(): value.strip() for name, value in rows if name and value is not None}


def _filled(value: str, settings: Mapping[str, str]) -> str:
    """A setting with its `${…}` variables replaced; unknown variables stay as they are."""
    for _ in range(_DEEPEST):
        filled = _VARIABLE.sub(lambda match: _variable(match[1], settings) or match[0], value)
        if filled == value:
            break
        value = filled
    return value


def _variable(name: str, settings: Mapping[str, str]) -> str | None:
    if name.startswith("env."):
        variable, _, default = name[len("env.") :].partition(":-")
        return os.environ.get(variable) or default or None
    return settings.get(name)
