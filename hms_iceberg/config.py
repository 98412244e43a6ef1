"""Configuration of catalogs: `.pyiceberg.yaml`, `PYICEBERG_*` variables, keyword arguments, merged in PyIceberg's way.

Later sources win: the file, then the environment, then the arguments. The file is the first `.pyiceberg.yaml` found in
`$PYICEBERG_HOME`, the home directory and the working directory.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hms_iceberg.errors import ConfigurationError

_FILE = ".pyiceberg.yaml"
_PREFIX = "pyiceberg_"
_HOME = "PYICEBERG_HOME"


def default_catalog_name() -> str:
    """The name in `default-catalog` (or `PYICEBERG_DEFAULT_CATALOG`), `default` if there is none."""
    return str(_configuration().get("default-catalog") or "default")


def known_catalogs() -> list[str]:
    return sorted(_catalogs(_configuration()))


def catalog_properties(name: str, arguments: Mapping[str, Any]) -> dict[str, str]:
    """Properties of a catalog, named in any case, as text; `arguments` that are not None win over environment and file.
    Nested properties of the file get names with dots: `s3: {region: …}` is `s3.region`."""
    configured = _catalogs(_configuration()).get(name.lower()) or {}
    if not isinstance(configured, dict):
        raise ConfigurationError(f"Catalog {name!r}: expected a mapping of properties, got {configured!r}.")
    merged = {**_flat(configured), **{key: value for key, value in arguments.items() if value is not None}}
    return {key: _text(value) for key, value in merged.items() if value is not None}


def _configuration() -> dict[str, Any]:
    return _with_environment(_from_file(), os.environ)


def _catalogs(configuration: Mapping[str, Any]) -> dict[str, Any]:
    catalogs = configuration.get("catalog") or {}
    if not isinstance(catalogs, dict):
        raise ConfigurationError(f"Key 'catalog' of {_FILE}: expected a mapping of catalogs by name, got {catalogs!r}.")
    return catalogs


def _from_file() -> dict[str, Any]:
    for folder in (os.environ.get(_HOME), os.path.expanduser("~"), os.curdir):
        if not folder:
            continue
        path = Path(folder) / _FILE
        if os.path.isfile(path):  # `Path.is_file` raises for a home that belongs to another user
            return _read(path)
    return {}


def _read(path: Path) -> dict[str, Any]:
    import yaml

    try:
        # BaseLoader keeps every scalar as the text that was written, as PyIceberg reads it: `on`, `0123`, `1e3`.
        content = yaml.load(path.read_text(encoding="utf-8"), Loader=yaml.BaseLoader)
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ConfigurationError(f"Cannot read the configuration file {path}: {error}. Correct the file.") from error
    if content in (None, ""):
        return {}
    if not isinstance(content, dict):
        raise ConfigurationError(
            f"Cannot read the configuration file {path}: expected a mapping with the key 'catalog', got {content!r}."
        )
    lowered = _lowered(content)
    assert isinstance(lowered, dict)
    return lowered


def _lowered(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key).lower(): _lowered(item) for key, item in value.items()}
    return value


def _with_environment(configuration: dict[str, Any], environment: Mapping[str, str]) -> dict[str, Any]:
    """`PYICEBERG_CATALOG__PROD__S3__ACCESS_KEY` sets `catalog.prod["s3.access-key"]`."""
    for variable, value in environment.items():
        name = variable.lower()
        if not name.startswith(_PREFIX) or variable == _HOME:
            continue
        parts = name[len(_PREFIX) :].split("__", maxsplit=2)
        path = [part.replace("__", ".").replace("_", "-") for part in parts]
        target = configuration
        for part in path[:-1]:
            inner = target.setdefault(part, {})
            if not isinstance(inner, dict):
                raise ConfigurationError(
                    f"Environment variable {variable}: {part!r} is not a mapping in the configuration file. "
                    "Remove one of the two."
                )
            target = inner
        target[path[-1]] = value
    return configuration


def _flat(properties: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested mappings of the file as dotted keys."""
    flat: dict[str, Any] = {}
    for key, value in properties.items():
        if isinstance(value, dict):
            flat.update(_flat(value, f"{prefix}{key}."))
        else:
            flat[prefix + key] = value
    return flat


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
