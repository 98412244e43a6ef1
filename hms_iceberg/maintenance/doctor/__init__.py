"""Checks of what tables depend on: this machine, the metastore, the storage. A problem is told with its remedy."""

from __future__ import annotations

from hms_iceberg.maintenance.doctor.diagnosis import Diagnosis, Health
from hms_iceberg.maintenance.doctor.examine import examine_surroundings

__all__ = ["Diagnosis", "Health", "examine_surroundings"]
