from __future__ import annotations

import datetime as dt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hms_iceberg.spec.values import datetimes
from tests.support.spec_strategies import INTS, LONGS


@given(st.dates())
def test_dates_agree_with_python_where_python_has_them(date):
    days = (date - dt.date(1970, 1, 1)).days
    assert datetimes.civil_from_days(days) == (date.year, date.month, date.day)
    assert datetimes.days_from_civil(date.year, date.month, date.day) == days
    assert datetimes.format_date(days) == date.isoformat()


@given(INTS)
def test_every_date_is_read_back_from_its_text(days):
    assert datetimes.parse_date(datetimes.format_date(days)) == days


@pytest.mark.parametrize(
    ("days", "text"), [(-719528, "0000-01-01"), (-719529, "-0001-12-31"), (2932897, "+10000-01-01")]
)
def test_years_beyond_four_digits_carry_a_sign(days, text):
    assert datetimes.format_date(days) == text
    assert datetimes.parse_date(text) == days


@given(LONGS)
def test_every_timestamp_is_read_back_from_its_text(count):
    assert datetimes.parse_timestamp(datetimes.format_timestamp(count)) == (count * 1000, None)
    assert datetimes.parse_timestamp(datetimes.format_timestamp(count, utc=True)) == (count * 1000, 0)
    assert datetimes.parse_timestamp(datetimes.format_timestamp_nanos(count)) == (count, None)


@given(st.datetimes())
def test_timestamps_agree_with_python_where_python_has_them(moment):
    micros = (moment - dt.datetime(1970, 1, 1)) // dt.timedelta(microseconds=1)
    assert datetimes.format_timestamp(micros) == moment.isoformat(timespec="microseconds")
    assert datetimes.parse_timestamp(moment.isoformat()) == (micros * 1000, None)


@given(st.times())
def test_times_agree_with_python(time):
    micros = datetimes.parse_time(time.isoformat())
    assert datetimes.format_time(micros) == time.isoformat(timespec="microseconds")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2017-11-16T14:31:08-08:00", (1510842668 * 10**9, -28800)),
        ("2017-11-16 14:31:08.5Z", (1510842668 * 10**9 + 500_000_000, 0)),
        ("2017-11-16T14:31:08+0530", (1510842668 * 10**9, 19800)),
        ("2017-11-16T14:31+01", (1510842660 * 10**9, 3600)),
        ("2017-11-16", (1510790400 * 10**9, None)),
    ],
)
def test_timestamps_are_read_in_the_usual_spellings(text, expected):
    assert datetimes.parse_timestamp(text) == expected


@pytest.mark.parametrize("text", ["", "2017-13-01", "2017-02-29", "2017-00-10", "2017-1-1", "17-11-16", "x2017-11-16"])
def test_dates_that_do_not_exist_are_refused(text):
    with pytest.raises(ValueError, match="is not a date"):
        datetimes.parse_date(text)


@pytest.mark.parametrize("text", ["", "24:00:00", "12:60", "1:00:00", "12:00:00.1234567"])
def test_times_that_do_not_exist_or_are_too_fine_are_refused(text):
    with pytest.raises(ValueError, match=r"not a time of day|no valid time|finer than"):
        datetimes.parse_time(text)


@pytest.mark.parametrize(
    "text", ["", "now", "2017-11-16T", "2017-11-16T25:00", "2017-11-16T12:00+19", "2017-02-30T1:00"]
)
def test_timestamps_that_do_not_exist_are_refused(text):
    with pytest.raises(ValueError, match=r"not a timestamp|no valid|not a date"):
        datetimes.parse_timestamp(text)
