"""Dates, times and timestamps as integers and as ISO 8601 text, for every year a 64-bit count can reach.

Python's datetime ends at the years 1 and 9999 and at microseconds; table values do not. The calendar is the proleptic
Gregorian one.
"""

from __future__ import annotations

import re

MICROS_PER_SECOND = 1_000_000
MICROS_PER_HOUR = 3_600 * MICROS_PER_SECOND
MICROS_PER_DAY = 24 * MICROS_PER_HOUR
NANOS_PER_MICRO = 1_000
NANOS_PER_DAY = MICROS_PER_DAY * NANOS_PER_MICRO

_DAYS_PER_ERA = 146_097  # 400 years
_EPOCH_OFFSET = 719_468  # days from 0000-03-01 to 1970-01-01

_DATE_TEXT = r"([+-]?\d{4,10})-(\d{2})-(\d{2})"
_TIME_TEXT = r"(\d{2}):(\d{2})(?::(\d{2})(?:\.(\d{1,9}))?)?"
_DATE = re.compile(_DATE_TEXT)
_TIME = re.compile(_TIME_TEXT)
_TIMESTAMP = re.compile(f"{_DATE_TEXT}(?:[Tt ]{_TIME_TEXT})?\\s*(Z|z|[+-]\\d{{2}}(?::?\\d{{2}}(?::?\\d{{2}})?)?)?")


def civil_from_days(days: int) -> tuple[int, int, int]:
    """Year, month and day of a count of days from 1970-01-01."""
    shifted = days + _EPOCH_OFFSET
    era, day_of_era = divmod(shifted, _DAYS_PER_ERA)
    year_of_era = (day_of_era - day_of_era // 1460 + day_of_era // 36_524 - day_of_era // 146_096) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    month_from_march = (5 * day_of_year + 2) // 153
    day = day_of_year - (153 * month_from_march + 2) // 5 + 1
    month = month_from_march + 3 if month_from_march < 10 else month_from_march - 9
    return year_of_era + era * 400 + (month <= 2), month, day


def days_from_civil(year: int, month: int, day: int) -> int:
    """Days from 1970-01-01 of a date, which must exist."""
    shifted = year - (month <= 2)
    era, year_of_era = divmod(shifted, 400)
    day_of_year = (153 * (month - 3 if month > 2 else month + 9) + 2) // 5 + day - 1
    day_of_era = year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + day_of_year
    return era * _DAYS_PER_ERA + day_of_era - _EPOCH_OFFSET


def format_date(days: int) -> str:
    """ISO text of a date, such as "2017-11-16"; years beyond four digits carry a sign, as ISO 8601 has it."""
    year, month, day = civil_from_days(days)
    sign = "-" if year < 0 else "+"
    text = f"{year:04d}" if 0 <= year <= 9999 else f"{sign}{abs(year):04d}"
    return f"{text}-{month:02d}-{day:02d}"


def format_time(micros: int) -> str:
    """ISO text of a time of day in microseconds from midnight, with six digits of fraction."""
    return _format_clock(micros * NANOS_PER_MICRO, 6)


def format_timestamp(micros: int, utc: bool = False) -> str:
    """ISO text of microseconds from 1970-01-01, with six digits of fraction; "+00:00" is added if `utc`."""
    days, rest = divmod(micros, MICROS_PER_DAY)
    return f"{format_date(days)}T{_format_clock(rest * NANOS_PER_MICRO, 6)}{'+00:00' if utc else ''}"


def format_milliseconds(milliseconds: int) -> str:
    """ISO text of milliseconds from 1970-01-01 in UTC, as messages tell times of metadata."""
    return format_timestamp(milliseconds * 1_000, utc=True)


_TO_SECONDS = len("2026-01-31T12:00:00")


def format_seconds(milliseconds: int) -> str:
    """A time to the second in UTC, as people read it."""
    return format_milliseconds(milliseconds)[:_TO_SECONDS].replace("T", " ")


def format_timestamp_nanos(nanos: int, utc: bool = False) -> str:
    """ISO text of nanoseconds from 1970-01-01, with nine digits of fraction; "+00:00" is added if `utc`."""
    days, rest = divmod(nanos, NANOS_PER_DAY)
    return f"{format_date(days)}T{_format_clock(rest, 9)}{'+00:00' if utc else ''}"


def _format_clock(nanos: int, digits: int) -> str:
    seconds, fraction = divmod(nanos, 1_000_000_000)
    minutes, second = divmod(seconds, 60)
    hour, minute = divmod(minutes, 60)
    return f"{hour:02d}:{minute:02d}:{second:02d}.{f'{fraction:09d}'[:digits]}"


def parse_date(text: str) -> int:
    """Days from 1970-01-01 of ISO text such as "2017-11-16"; ValueError for others."""
    match = _DATE.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"{text!r} is not a date; expected for example '2017-11-16'")
    return _days(match[1], match[2], match[3], text)


def parse_time(text: str) -> int:
    """Microseconds from midnight of ISO text such as "22:31:08.123456"; ValueError for others, and for finer ones."""
    match = _TIME.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"{text!r} is not a time of day; expected for example '22:31:08.123456'")
    micros, rest = divmod(_clock_nanos(match[1], match[2], match[3], match[4], text), NANOS_PER_MICRO)
    if rest:
        raise ValueError(f"{text!r} is finer than microseconds")
    return micros


def parse_timestamp(text: str) -> tuple[int, int | None]:
    """Nanoseconds from 1970-01-01T00:00 as written, and the zone offset in seconds to subtract for UTC (None without a
    zone). The time may be left out, and stands for midnight then."""
    match = _TIMESTAMP.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"{text!r} is not a timestamp; expected for example '2017-11-16T22:31:08.123456'")
    days = _days(match[1], match[2], match[3], text)
    nanos = _clock_nanos(match[4] or "00", match[5] or "00", match[6], match[7], text)
    return days * NANOS_PER_DAY + nanos, _offset(match[8], text)


def _days(year: str, month: str, day: str, text: str) -> int:
    days = days_from_civil(int(year), int(month), int(day)) if 1 <= int(month) <= 12 else 0
    if civil_from_days(days) != (int(year), int(month), int(day)):
        raise ValueError(f"{text!r} is not a date of the calendar")
    return days


def _clock_nanos(hour: str, minute: str, second: str | None, fraction: str | None, text: str) -> int:
    hours, minutes, seconds = int(hour), int(minute), int(second or 0)
    if hours > 23 or minutes > 59 or seconds > 59:
        raise ValueError(f"{text!r} has no valid time of day; it must be from 00:00:00 to 23:59:59.999999")
    return ((hours * 60 + minutes) * 60 + seconds) * 1_000_000_000 + int((fraction or "").ljust(9, "0"))


def _offset(zone: str | None, text: str) -> int | None:
    if zone is None:
        return None
    if zone in "Zz":
        return 0
    digits = zone[1:].replace(":", "").ljust(6, "0")
    hours, minutes, seconds = int(digits[:2]), int(digits[2:4]), int(digits[4:])
    if hours > 18 or minutes > 59 or seconds > 59:
        raise ValueError(f"{text!r} has no valid zone offset; it must be from -18:00 to +18:00")
    total = hours * 3600 + minutes * 60 + seconds
    return -total if zone[0] == "-" else total
