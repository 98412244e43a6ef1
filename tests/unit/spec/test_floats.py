"""Floating-point numbers have the fewest digits that read back, and Java's text."""

from __future__ import annotations

import math
import random
import struct

import numpy as np
import pytest

from hms_iceberg.spec.values.floats import java_text, nearest_single, shortest_single

LARGEST = nearest_single(float(np.finfo(np.float32).max))


def test_numbers_of_32_bits_have_the_digits_that_numpy_finds() -> None:
    drawn = random.Random(11)
    numbers = [struct.unpack("<f", drawn.randbytes(4))[0] for _ in range(2000)]
    for each in (*filter(math.isfinite, numbers), 1.100000023841858, LARGEST, -LARGEST, 1e-45, 16_777_216.0):
        single = nearest_single(each)
        assert shortest_single(single) == float(str(np.float32(single)))


@pytest.mark.parametrize(
    ("number", "single", "text"),
    [
        (0.001, False, "0.001"),
        (0.00099, False, "9.9E-4"),
        (9_999_999.0, False, "9999999.0"),
        (1e7, False, "1.0E7"),
        (-0.0, True, "-0.0"),
        (nearest_single(1.1), True, "1.1"),
        (LARGEST, True, "3.4028235E38"),
        (math.inf, True, "Infinity"),
        (-math.inf, False, "-Infinity"),
        (math.nan, False, "NaN"),
    ],
)
def test_text_is_that_of_java(number: float, single: bool, text: str) -> None:
    assert java_text(number, single) == text
