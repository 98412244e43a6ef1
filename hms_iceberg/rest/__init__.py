"""A catalog behind the Iceberg REST protocol, for every engine that speaks it.

`application(catalog)` is an ASGI application; `hms-iceberg rest` serves one.
"""

from __future__ import annotations

from hms_iceberg.rest.application import application
from hms_iceberg.rest.settings import Limits, RestSettings, StorageSettings

__all__ = ["Limits", "RestSettings", "StorageSettings", "application"]
