"""What stands around tables: this machine, the metastore, the storage. Each is looked at, and told with a remedy."""

from __future__ import annotations

from hms_iceberg.maintenance.doctor.diagnosis import Diagnosis, Health
from hms_iceberg.maintenance.doctor.examine import examine_surroundings

__all__ = ["Diagnosis", "Health", "examine_surroundings"]
