"""Floating-point numbers: rounding to 32 bits, the fewest digits that read back, and text as Java writes it."""

from __future__ import annotations

import math
from struct import Struct

_SINGLE = Struct("<f")


def nearest_single(number: float) -> float:
    """The nearest 32-bit float, as the double that holds it exactly; OverflowError beyond the largest."""
    rounded: float = _SINGLE.unpack(_SINGLE.pack(number))[0]
    return rounded


def shortest_single(number: float) -> float:
    """The number with the fewest digits that rounds to a 32-bit float: 1.1 rather than 1.100000023841858."""
    candidates = (float(f"{number:.{digits}g}") for digits in range(1, 18))
    return next(each for each in candidates if _rounds_to(each, number))


def java_text(number: float, single: bool) -> str:
    """Text as Java's Float and Double print: plain from 0.001 to 10,000,000, else with an exponent, such as 1.0E10."""
    if math.isnan(number):
        return "NaN"
    if math.isinf(number):
        return "Infinity" if number > 0 else "-Infinity"
    sign = "-" if math.copysign(1.0, number) < 0 else ""
    if number == 0:
        return sign + "0.0"
    digits, exponent = _shortest_digits(abs(number), single)
    if -3 <= exponent < 7:
        if exponent < 0:
            return f"{sign}0.{'0' * (-exponent - 1)}{digits}"
        whole = digits[: exponent + 1].ljust(exponent + 1, "0")
        return f"{sign}{whole}.{digits[exponent + 1 :] or '0'}"
    return f"{sign}{digits[0]}.{digits[1:] or '0'}E{exponent}"


def _shortest_digits(number: float, single: bool) -> tuple[str, int]:
    """The fewest digits that read back as the number, and the decimal exponent of the first one."""
    texts = (f"{number:.{precision}e}" for precision in range(17))
    text = next(each for each in texts if (_rounds_to(float(each), number) if single else float(each) == number))
    mantissa, exponent = text.split("e")
    return mantissa.replace(".", "").rstrip("0") or "0", int(exponent)


def _rounds_to(decimal: float, number: float) -> bool:
    try:
        return nearest_single(decimal) == number
    except OverflowError:  # the largest float, rounded up to fewer digits
        return False
