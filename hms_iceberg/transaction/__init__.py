"""From pending changes to a committed table: attempts, retries, and the files that they leave behind."""

from __future__ import annotations
