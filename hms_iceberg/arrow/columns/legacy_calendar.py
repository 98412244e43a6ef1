"""Dates and times that a writer counted in the hybrid Julian calendar, as the proleptic Gregorian ones they mean.

Java's old date classes count days before 1582-10-15 in the Julian calendar, and know a zone's present standard offset
only before 1900. Spark before 3.0 wrote files so, later Spark if it is asked to, and Hive; the files say so in marks.
Iceberg's own writers, and its readers of other engines, know the proleptic calendar only.

Source: Apache Spark, `DataSourceUtils` and `RebaseDateTime`; Apache Hive, `DataWritableWriteSupport`, `NanoTimeUtils`
and `AvroSerDe`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone, tzinfo
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hms_iceberg.arrow.columns.arrow_schema import child_fields
from hms_iceberg.arrow.columns.nested import children_of, with_children
from hms_iceberg.errors import UnsupportedError

# 1582-10-15, from which both calendars are one, in days; 1900, from which Java's classes agree about zones, in seconds.
GREGORIAN_DAYS = -141_427
_YEAR_1900 = -2_208_988_800
_DAY_SECONDS = 86_400
# Earlier than the first change of any zone's clock.
_BEFORE_CLOCK_CHANGES = -6_000_000_000
_UNITS = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
_FIXED_OFFSET = re.compile(r"(?:UTC|GMT|UT)?([+-])(\d{1,2})(?::?(\d{2}))?(?::?(\d{2}))?")
_MARKS = (
    *(f"org.apache.spark.{name}" for name in ("version", "timeZone", "legacyDateTime", "legacyINT96")),
    *(f"writer.{name}" for name in ("date.proleptic", "proleptic", "time.zone", "zone.conversion.legacy")),
)
_UTC_NAMES = frozenset({"UTC", "GMT", "UT", "Z"})
# Zones that Java knows by short names, and the time zone database does not.
_JAVA_ZONES = {
    "PST": "America/Los_Angeles",
    "CST": "America/Chicago",
    "PNT": "America/Phoenix",
    "JST": "Asia/Tokyo",
    "IST": "Asia/Kolkata",
    "CTT": "Asia/Shanghai",
    "AET": "Australia/Sydney",
    "BST": "Asia/Dhaka",
}


@dataclass(frozen=True, slots=True)
class WriterCalendar:
    """The calendar of a file's writer: the zones in which it made `instants` and INT96 timestamps of local times where
    days before 1582-10-15 may be Julian, None for a proleptic calendar."""

    julian_dates: bool = False
    instants: str | None = None
    int96: str | None = None

    @property
    def is_legacy(self) -> bool:
        """Whether some dates or times may have been counted in the old calendar."""
        return self.julian_dates or self.instants is not None or self.int96 is not None

    def rule(self, kind: pa.DataType, int96: bool = False) -> Rule | None:
        """The change of a column's values; None if they are proleptic."""
        if pa.types.is_date32(kind):
            return Rule(None) if self.julian_dates else None
        if not pa.types.is_timestamp(kind):
            return None
        if int96:
            zone = self.int96
        else:
            zone = self.instants if kind.tz is not None else None
        return None if zone is None else Rule(zone)


PROLEPTIC = WriterCalendar()


@dataclass(frozen=True, slots=True)
class Rule:
    """The change that makes values of one column proleptic; `zone` made instants of local times, None for dates."""

    zone: str | None

    def changes(self, kind: pa.DataType, least: int) -> bool:
        """Whether the column may hold a value that changes, if this is its least one as the file holds it."""
        return least < self._first_unchanged(kind)

    def proleptic(self, array: pa.Array) -> pa.Array:
        storage = _storage(array.type)
        raw = array.view(storage)
        first = self._first_unchanged(array.type)
        if not len(raw) or not pc.any(pc.less(raw, pa.scalar(first, storage))).as_py():
            return array
        values = raw.fill_null(first).to_numpy(zero_copy_only=False).astype(np.int64)
        early = values < first
        values[early] = (
            gregorian_days(values[early])
            if self.zone is None
            else _instants(values[early], _UNITS[array.type.unit], self.zone)
        )
        mask = array.is_null().to_numpy(zero_copy_only=False) if array.null_count else None
        return pa.array(values, pa.int64(), mask=mask).cast(storage).view(array.type)

    def _first_unchanged(self, kind: pa.DataType) -> int:
        if self.zone is None:
            return GREGORIAN_DAYS
        standard, clock = _offsets_of(self.zone)
        return (_YEAR_1900 if clock else GREGORIAN_DAYS * _DAY_SECONDS - standard) * int(_UNITS[kind.unit])


def _storage(kind: pa.DataType) -> pa.DataType:
    return pa.int32() if pa.types.is_date32(kind) else pa.int64()


def writer_calendar(marks: Mapping[str, str]) -> WriterCalendar:
    """The calendar of a Parquet or Avro file by its key-value metadata; without marks it is proleptic, as for Spark
    since 4.0."""
    spark = marks.get("org.apache.spark.version")
    if spark is not None:
        zone = marks.get("org.apache.spark.timeZone") or local_zone()
        old = spark < "3.0.0" or "org.apache.spark.legacyDateTime" in marks
        old_int96 = spark < "3.1.0" or "org.apache.spark.legacyINT96" in marks
        return WriterCalendar(old, zone if old else None, zone if old_int96 else None)
    proleptic = marks.get("writer.date.proleptic", marks.get("writer.proleptic"))
    if proleptic is None and "writer.time.zone" not in marks:
        return PROLEPTIC
    old = proleptic is not None and proleptic.lower() != "true"
    # Hive makes instants of local times by the new classes, in UTC, unless it is asked for the old ones.
    conversion = marks.get("writer.zone.conversion.legacy", "").lower() == "true"
    zone = (marks.get("writer.time.zone") or local_zone()) if conversion else "UTC"
    # Its INT96 days are Julian whatever it says of dates; its Avro files have one mark for both.
    return WriterCalendar(old, zone if old and "writer.proleptic" in marks else None, zone)


def is_known_to_spark(marks: Mapping[str, str]) -> bool:
    """Whether plain Spark reads the writer's calendar marks: it knows its own marks only."""
    return "org.apache.spark.version" in marks


def text_marks(found: Mapping[Any, bytes] | None) -> dict[str, str]:
    """The marks among the key-value metadata of a file, as text."""
    marks = {}
    for name in _MARKS:
        value = (found or {}).get(name, (found or {}).get(name.encode()))
        if value is not None:
            marks[name] = value.decode(errors="replace")
    return marks


def proleptic_columns(batch: pa.RecordBatch, rules: Iterable[Rule | None]) -> pa.RecordBatch:
    """A batch as its writer meant it, by a rule for each leaf."""
    each = iter(rules)
    columns = [_proleptic(column, each) for column in batch.columns]
    return pa.RecordBatch.from_arrays(columns, schema=batch.schema)


def has_old_values(batch: pa.RecordBatch, rules: Iterable[Rule | None]) -> bool:
    """Whether a batch has a date or time in the old calendar that has to be converted, by a rule for each leaf."""
    each = iter(rules)
    made = [(_proleptic(column, each), column) for column in batch.columns]
    return any(new is not old and not new.equals(old) for new, old in made)


def _proleptic(array: pa.Array, rules: Iterator[Rule | None]) -> pa.Array:
    fields = child_fields(array.type)
    if not fields:
        rule = next(rules)
        return array if rule is None else rule.proleptic(array)
    children = children_of(array)
    changed = [_proleptic(child, rules) for child in children]
    if all(new is old for new, old in zip(changed, children, strict=True)):
        return array
    return with_children(array, changed, fields)


def old_times(columns: Iterable[str]) -> list[str]:
    """Reports columns with dates or times that were written in the old calendar."""
    names = ", ".join(columns)
    if not names:
        return []
    return [
        "holds dates before 1582-10-15 or times before 1900 that its writer counted in the old calendar of Java, which "
        f"its writer knows, and Apache Iceberg in Java and other engines do not (in {names})"
    ]


# ------------------------------------------------------------------------------------------------- calendars


def gregorian_days(days: Any) -> Any:
    """Days since 1970 of proleptic dates with the year, month and day that Julian ones have. A 29 February that is no
    proleptic date becomes the day after it."""
    shifted = days + 2_440_588 + 32_082
    year = (4 * shifted + 3) // 1461
    day_of_year = shifted - 1461 * year // 4
    month = (5 * day_of_year + 2) // 153
    day = day_of_year - (153 * month + 2) // 5  # the first of a month is 0
    # Years here begin in March.
    year -= 4800
    return 365 * year + year // 4 - year // 100 + year // 400 + (153 * month + 2) // 5 + day - 719_468


def _instants(values: Any, per_second: int, zone: str) -> Any:
    """Instants before 1900 of the local times that the old classes make of instants."""
    standard, clock = _offsets_of(zone)
    day = _DAY_SECONDS * per_second
    days, time = np.divmod(values + standard * per_second, day)
    local = np.where(days < GREGORIAN_DAYS, gregorian_days(days), days) * day + time
    seconds = local // per_second
    return local - _clock_offsets(seconds, clock, standard) * per_second


def _clock_offsets(local: Any, clock: str | None, standard: int) -> Any:
    """Offsets in seconds of local times from UTC, as clocks showed them."""
    if clock is None:
        return standard
    times = np.maximum(local, _BEFORE_CLOCK_CHANGES)
    zoned = pc.assume_timezone(
        pa.array(times, pa.timestamp("s")), clock, ambiguous="latest", nonexistent="latest"
    ).view(pa.int64())
    return times - zoned.to_numpy()


def _offsets_of(zone: str) -> tuple[int, str | None]:
    """The standard offset of a zone now, in seconds, and its name if its clocks ever had another."""
    if zone in _UTC_NAMES:
        return 0, None
    fixed = _FIXED_OFFSET.fullmatch(zone)
    if fixed is not None:
        sign, hours, minutes, seconds = fixed.groups()
        offset = int(hours) * 3600 + int(minutes or 0) * 60 + int(seconds or 0)
        return (-offset if sign == "-" else offset), None
    name = _JAVA_ZONES.get(zone, zone)
    try:
        known: tzinfo = ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise UnsupportedError(
            f"Dates and times before 1900 were written in time zone {zone!r}, which this machine does not know. "
            "Install the package tzdata."
        ) from error
    # Summer time, or the winter time that some call so, comes and goes within a year.
    year = (datetime(2020, 1, 1, tzinfo=timezone.utc) + timedelta(days=days) for days in range(0, 366, 12))
    offsets = (each.astimezone(known).utcoffset() or timedelta() for each in year)
    return int(min(offsets).total_seconds()), name


def local_zone() -> str:
    """The name of this machine's time zone, which Java takes for a file that names none."""
    name = os.environ.get("TZ", "").removeprefix(":")
    if name:
        return name
    resolved = os.path.realpath("/etc/localtime")
    if "/zoneinfo/" in resolved:
        return resolved.partition("/zoneinfo/")[2]
    written = Path("/etc/timezone")
    return (written.read_text().strip() if written.is_file() else "") or "UTC"
