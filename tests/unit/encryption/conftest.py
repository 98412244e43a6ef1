"""A file of keys."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest


@pytest.fixture
def keystore(tmp_path: Path) -> str:
    """The keys `one` and `two`."""
    path = tmp_path / "keys.json"
    keys = {"one": bytes(range(16)), "two": bytes(range(32))}
    path.write_text(json.dumps({name: base64.b64encode(key).decode() for name, key in keys.items()}))
    path.chmod(0o600)
    return str(path)
