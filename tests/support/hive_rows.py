"""Rows with a column of every type that Hive tables have."""

from __future__ import annotations

_COLUMNS = """
    select cast(id as tinyint) as i8, cast(id as smallint) as i16, cast(id as int) as i32, id as i64,
           cast(id as float) / 3 as f32, if(id = 2, double('NaN'), cast(id as double) / 7) as f64, id % 2 = 0 as b,
           cast(id * 1.25 as decimal(9, 2)) as d9, cast(id * 1000000000000.125 as decimal(38, 10)) as d38,
           cast(concat('s', id) as varchar(9)) as s, cast(concat('b', id) as binary) as bin,
           date_add(date'1969-12-30', cast(id as int)) as day,
           if(id = 4, null, timestamp'{start}' + make_interval(0, 0, 0, 0, 0, 0, id)) as at,
           array(id, null) as l, map(concat('k', id), cast(id as int)) as m,
           named_struct('inner', cast(id as int), 'l', array(named_struct('x', concat('x', id)))) as st,
           {part} as part
    from range({first}, {end})
"""


def every_type(
    first: int = 0,
    end: int = 5,
    *,
    start: str = "1969-12-31 23:59:58.123",
    part: str = "if(id = 3, null, concat('p', id))",
) -> str:
    """A query of Spark.

    Args:
        first, end: numbers of the rows; nulls, NaN and times before and after 1970 are among the first five.
        start: the time of row 0; each row's is a second later.
        part: the last column, by which tables may be partitioned.
    """
    return _COLUMNS.format(first=first, end=end, start=start, part=part)
