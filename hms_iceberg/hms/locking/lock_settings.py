"""Settings of locks, read from a catalog's properties, under the names that Iceberg gives them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hms_iceberg.hms.connection.property_reader import PropertyReader


@dataclass(frozen=True)
class LockSettings:
    """How a table's lock is waited for and kept; all times in seconds."""

    timeout: float = 180.0  # for all of the waiting together (`iceberg.hive.lock-timeout-ms`)
    # part of it that may go into the lock's creation (`iceberg.hive.lock-creation-timeout-ms`)
    creation_timeout: float = 180.0
    # creation_min_wait, creation_max_wait: between two attempts to create it (`iceberg.hive.lock-creation-*-wait-ms`)
    creation_min_wait: float = 0.05
    creation_max_wait: float = 5.0
    # check_min_wait, check_max_wait: between two checks whether it is granted (`iceberg.hive.lock-check-*-wait-ms`)
    check_min_wait: float = 0.05
    check_max_wait: float = 5.0
    # longest time without a heartbeat (`iceberg.hive.lock-heartbeat-interval-ms`); it must be below the server's
    # `hive.txn.timeout`
    heartbeat_interval: float = 240.0
    # whether a server that can is to compare as well while the lock is held, so that a request that arrives late harms
    # nobody; it is found out by trying (`iceberg.hive.lock-compare-enabled`)
    compare: bool = True

    @classmethod
    def from_properties(cls, properties: Mapping[str, str]) -> LockSettings:
        reader = PropertyReader(properties)

        def ms(name: str, default: float) -> float:
            return reader.milliseconds(f"iceberg.hive.{name}-ms", default)

        return cls(
            timeout=ms("lock-timeout", cls.timeout),
            creation_timeout=ms("lock-creation-timeout", cls.creation_timeout),
            creation_min_wait=ms("lock-creation-min-wait", cls.creation_min_wait),
            creation_max_wait=ms("lock-creation-max-wait", cls.creation_max_wait),
            check_min_wait=ms("lock-check-min-wait", cls.check_min_wait),
            check_max_wait=ms("lock-check-max-wait", cls.check_max_wait),
            heartbeat_interval=max(0.01, ms("lock-heartbeat-interval", cls.heartbeat_interval)),
            compare=reader.boolean("iceberg.hive.lock-compare-enabled", cls.compare),
        )
