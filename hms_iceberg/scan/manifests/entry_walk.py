"""Many Avro records read through at once: where a field ends in each of them, as columns of numbers.

A position is a number of bytes from the beginning of all records; a column of positions has one for each record.
Numbers are wrong if the records are not where they are thought to be, and what is read of them is checked only so far
that nothing is read outside the bytes: whoever asks has to prove that the records began where it said.

Source: Avro specification, "Binary Encoding".
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np

from hms_iceberg.errors import IcebergError
from hms_iceberg.spec.manifests.avro_container import decode_long

# Entries that differ in more ways are read faster one by one.
_MOST_WAYS = 64
_FEW_VALUES = 4_096
# Which part of the entries a layout must fit to be used, first of so many.
_WORTH = 0.25
_SAMPLED = 16
_HIGH_BITS = np.uint64(0x8080808080808080)
# In a length that has two bytes, or is negative.
_NOT_SHORT = 0x81
_EVERY_BYTE = np.uint64(0x0101010101010101)
_LOW_BITS = 0x7F
_SIZES = {"null": 0, "boolean": 1, "float": 4, "double": 8}
_WORD = 8
# The number that a byte is.
_UNZIGZAG = np.array([(byte >> 1) ^ -(byte & 1) for byte in range(_LOW_BITS + 1)], np.int64)


class IrregularError(IcebergError):
    """Records cannot be read through at once."""


class Places:
    """Where a value is in each record; from 0 to 0 if a record lacks it.

    Args:
        rows: how many records there are.
    """

    __slots__ = ("ends", "starts")

    def __init__(self, rows: int) -> None:
        self.starts = np.zeros(rows, np.int64)
        self.ends = np.zeros(rows, np.int64)


class EntryWalk:
    """Reads through records.

    Args:
        blocks: the bytes of all records.

    Attributes:
        body: the same as one, and a few more bytes.
        size: how many of them are of records.
    """

    def __init__(self, blocks: Sequence[bytes]) -> None:
        self.body = b"".join([*blocks, bytes(_WORD)])
        self.size = len(self.body) - _WORD
        self._bytes = np.frombuffer(self.body, np.uint8)
        # Eight bytes from each position on.
        self._words = np.ndarray(self.size + 1, "<u8", self.body, strides=(1,))

    def varints(self, at: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Integers, and where they end."""
        first = self._bytes[at]
        if not (first > _LOW_BITS).any():
            return _UNZIGZAG[first], at + 1
        words = self._words[at]
        last = _last_bits(words)
        sizes = _byte_count(last)
        words &= last | (last - np.uint64(1))
        values = np.zeros(len(at), np.uint64)
        is_long = last == 0
        has_long = bool(is_long.any())
        for place in range(_WORD if has_long else int(sizes.max())):
            values |= (words >> np.uint64(place)) & np.uint64(_LOW_BITS << (7 * place))
        if has_long:
            rows = np.flatnonzero(is_long)
            high, sizes[rows] = self._high_bits(at[rows] + _WORD)
            values[rows] |= high
        return _unzigzag(values), at + sizes

    def _high_bits(self, at: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """What integers have beyond their eighth byte, and how many bytes they have in all."""
        ninth = self._bytes[at].astype(np.uint64)
        tenth = np.where(ninth > _LOW_BITS, self._bytes[at + 1], 0).astype(np.uint64)
        if (tenth > 1).any():
            raise IrregularError
        high = (ninth & np.uint64(_LOW_BITS)) << np.uint64(7 * _WORD) | tenth << np.uint64(7 * _WORD + 7)
        return high, np.where(ninth > _LOW_BITS, _WORD + 2, _WORD + 1)

    def sizes_before(self, at: np.ndarray) -> np.ndarray:
        """The lengths that end right before some texts, of one or two bytes and after a byte that ends a number."""
        last, before = (self._bytes[at - place].astype(np.int64) for place in (1, 2))
        has_two = before > _LOW_BITS
        if (last > _LOW_BITS).any() or (self._bytes[at - 3] > _LOW_BITS)[has_two].any():
            raise IrregularError
        lengths = np.where(has_two, before & _LOW_BITS | last << 7, last)
        if (lengths & 1).any():
            raise IrregularError
        return lengths >> 1

    def fixed(self, at: np.ndarray, dtype: np.dtype[Any]) -> np.ndarray:
        """The values of a type of fixed size at some positions.

        Args:
            at: the positions.
            dtype: the type; up to so many bytes from the last record on it holds what is not of a record.

        Raises:
            IrregularError: a position is not inside the bytes.
        """
        if len(at) and not 0 <= at.min() <= at.max() <= len(self.body) - dtype.itemsize:
            raise IrregularError
        base, shape = dtype.base, dtype.shape
        steps = (1, *(base.itemsize for _ in shape))
        found: np.ndarray = np.ndarray((len(self.body) - dtype.itemsize + 1, *shape), base, self.body, strides=steps)[
            at
        ]
        return found

    def skip(self, avro_type: Any, at: np.ndarray) -> np.ndarray:
        """Where values of a type end.

        Args:
            avro_type: the type, as Avro's JSON has it.
            at: where the values begin.

        Raises:
            IrregularError: the bytes are not as most writers lay them out.
        """
        if isinstance(avro_type, list):
            branches, begun = self.varints(at)
            return _by_value(branches, begun, lambda branch, start: self.skip(_branch(avro_type, branch), start))
        kind = avro_type["type"] if isinstance(avro_type, dict) else avro_type
        if kind == "array":
            return self._skip_array(avro_type, at)
        if kind == "record":
            for field in avro_type["fields"]:
                at = self.skip(field["type"], at)
            return at
        if kind in ("int", "long", "enum"):
            return self._skip_varints(at)
        if kind in ("string", "bytes"):
            return self._skip_bytes(at)
        size = avro_type["size"] if kind == "fixed" else _SIZES.get(kind)
        if size is None:
            raise IrregularError
        return at + size

    def skip_maps(
        self, types: Sequence[Any], at: np.ndarray, places: Sequence[Mapping[int, Places]], rows: np.ndarray
    ) -> np.ndarray:
        """Where several maps end that follow one another; most entries are laid out as a few of them.

        Args:
            types: of each map, an array of pairs of a key and a value, or a union of it and null.
            at: where the first one begins.
            places: for each map, by key, where values are to be noted.
            rows: to which record each position belongs.
        """
        ends = np.zeros(len(at), np.int64)
        left = np.arange(len(at))
        while len(left):
            shape = _Shape(self.body, int(at[left[0]]), types)
            if self._has_shape(at[left[:: -(-len(left) // _SAMPLED)]], shape).mean() < _WORTH:
                break
            alike = self._has_shape(at[left], shape)
            found, left = left[alike], left[~alike]
            ends[found] = at[found] + shape.size
            for values, wanted in zip(shape.values, places, strict=True):
                for key in wanted.keys() & values.keys():
                    start, end = values[key]
                    wanted[key].starts[rows[found]] = at[found] + start
                    wanted[key].ends[rows[found]] = at[found] + end
        if len(left):
            begun = at[left]
            for avro_type, wanted in zip(types, places, strict=True):
                if len(types) > 1:
                    begun = self.skip_maps([avro_type], begun, [wanted], rows[left])
                else:
                    begun = self._walk_map(avro_type, begun, wanted, rows[left])
            ends[left] = begun
        return ends

    # ------------------------------------------------------------------------------------------- pairs

    def _walk_map(self, avro_type: Any, at: np.ndarray, places: Mapping[int, Places], rows: np.ndarray) -> np.ndarray:
        value_type = map_value_type(avro_type)
        if not isinstance(avro_type, list):
            return self._walk_pairs(value_type, at, rows, places)
        numbers, ends = self.varints(at)
        for number in distinct_values(numbers):
            if _branch(avro_type, number) != "null":
                chosen = np.flatnonzero(numbers == number)
                ends[chosen] = self._walk_pairs(value_type, ends[chosen], rows[chosen], places)
        return ends

    def _has_shape(self, at: np.ndarray, shape: _Shape) -> np.ndarray:
        width = len(shape.text)
        positions = len(self._bytes) - width + 1
        fits = at < positions
        if positions <= 0 or not fits.all():
            alike = np.zeros(len(at), bool)
            if positions > 0:
                alike[fits] = self._has_shape(at[fits], shape)
            return alike
        texts = np.ndarray((positions, width), np.uint8, self._bytes, strides=(1, 1))[at].view(np.uint64)
        texts ^= shape.text.view(np.uint64)
        texts &= shape.mask.view(np.uint64)
        found: np.ndarray = np.bitwise_or.reduce(texts, axis=1) == 0
        return found

    def _walk_pairs(
        self, value_type: str, at: np.ndarray, rows: np.ndarray, places: Mapping[int, Places]
    ) -> np.ndarray:
        counts, begun = self.varints(at)
        if (counts <= 0).all() and not counts.any():
            return begun
        is_sized = counts < 0  # and says how many bytes the pairs take
        if is_sized.any():
            begun[is_sized] = self._skip_varints(begun[is_sized])
            counts = np.abs(counts)
        if counts.max() > self.size:
            raise IrregularError
        order = np.argsort(-counts, kind="stable")[: int(np.count_nonzero(counts))]
        walk = self._walk_texts if value_type == "bytes" else self._walk_numbers
        ends = walk(begun[order], counts[order], rows[order], places)
        begun[order] = self._walk_pairs(value_type, ends, rows[order], places)
        return begun

    def _walk_texts(
        self, at: np.ndarray, counts: np.ndarray, rows: np.ndarray, places: Mapping[int, Places]
    ) -> np.ndarray:
        """Where pairs of a key and a text end, of records with ever fewer of them.

        Those of small keys and short texts are gone through in a few steps for all records.
        """
        codes = {key: 2 * key for key in places if 0 <= key <= _LOW_BITS >> 1}
        for active in _still_more(counts):
            here = at[:active]
            keys, lengths = self._bytes[here], self._bytes[here + 1]
            if (keys > _LOW_BITS).any() or (lengths & _NOT_SHORT).any():
                numbers, values, ends = self._skip_pair("bytes", here)
                _note(places, numbers, values, ends, rows[:active])
                here[:] = ends
                continue
            for key, code in codes.items():
                found = np.flatnonzero(keys == code)
                if len(found):
                    noted = rows[found]
                    places[key].starts[noted] = here[found] + 1
                    places[key].ends[noted] = here[found] + (lengths[found] >> 1) + 2
            here += lengths >> 1
            here += 2
        return at

    def _walk_numbers(
        self, at: np.ndarray, counts: np.ndarray, rows: np.ndarray, places: Mapping[int, Places]
    ) -> np.ndarray:
        """Where pairs of a key and a number end; most records have a key where the first one has it."""
        for key, place in self._numbers_of(int(at[0]), int(counts[0]), places.keys()).items():
            some = counts > place
            keys, values = self.varints(self._skip_numbers(at[some], np.full(int(some.sum()), 2 * place)))
            found = np.flatnonzero(keys == key)
            noted = rows[some][found]
            places[key].starts[noted], places[key].ends[noted] = values[found], self._skip_varints(values[found])
        left = np.zeros(len(at), bool)
        for each in places.values():
            left |= each.ends[rows] == 0
        begun, others = at[left], rows[left]
        for active in _still_more(counts[left]) if len(begun) else ():
            numbers, values, begun[:active] = self._skip_pair("long", begun[:active])
            _note(places, numbers, values, begun[:active], others[:active])
        return self._skip_numbers(at, 2 * counts)

    def _numbers_of(self, at: int, count: int, wanted: Collection[int]) -> dict[int, int]:
        """At which place of a map of numbers some keys are."""
        found = {}
        for place in range(count if wanted else 0):
            key, at = decode_long(self.body, at)
            _, at = decode_long(self.body, at)
            if key in wanted:
                found[key] = place
        return found

    def _skip_pair(self, value_type: str, at: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Keys, and where their values begin and end."""
        keys, value = self.varints(at)
        return keys, value, self.skip(value_type, value)

    # ------------------------------------------------------------------------------------- other values

    def _skip_numbers(self, at: np.ndarray, left: np.ndarray) -> np.ndarray:
        """Where so many integers end: a byte without its high bit ends one."""
        if not left.any():
            return at
        ends = np.zeros(len(at), np.int64)
        rows = np.arange(len(at))
        while len(rows):
            stops = ~self._words[at] & _HIGH_BITS
            found = ((stops >> np.uint64(7)) * _EVERY_BYTE >> np.uint64(56)).astype(np.int64)
            is_done = found >= left
            if is_done.any():
                ends[rows[is_done]] = at[is_done] + _place_of_stop(stops[is_done], left[is_done])
                rows, at, left, found = (each[~is_done] for each in (rows, at, left, found))
            at, left = at + _WORD, left - found
        return ends

    def _skip_varints(self, at: np.ndarray) -> np.ndarray:
        if not (self._bytes[at] > _LOW_BITS).any():
            return at + 1
        last = _last_bits(self._words[at])
        ends = at + _byte_count(last)
        is_long = last == 0
        if is_long.any():
            ends[is_long] = self._skip_varints(at[is_long] + _WORD)
        return ends

    def _skip_bytes(self, at: np.ndarray) -> np.ndarray:
        sizes, begun = self.varints(at)
        if sizes.min() < 0 or sizes.max() > self.size:
            raise IrregularError
        return begun + sizes

    def _skip_array(self, avro_type: Mapping[str, Any], at: np.ndarray) -> np.ndarray:
        counts, begun = self.varints(at)

        def skip_items(count: int, start: np.ndarray) -> np.ndarray:
            if count == 0:
                return start
            if count < 0:
                start = self._skip_bytes(start)
            for _ in range(count):
                start = self.skip(avro_type["items"], start)
            return self._skip_array(avro_type, start)

        return _by_value(counts, begun, skip_items)


class _Shape:
    """How maps are laid out: two are alike if their bytes are equal wherever the mask has bits.

    Attributes:
        text: the bytes of the maps, filled up to whole words.
        mask: all bits of keys, counts and lengths, of other numbers those that tell where they end.
        values: for each map, where the value of each key begins and ends.
        size: the length of all.
    """

    def __init__(self, body: bytes, start: int, types: Sequence[Any]) -> None:
        self._body = body
        self._start = start
        self._mask = bytearray()
        at = start
        self.values: list[dict[int, tuple[int, int]]] = []
        for avro_type in types:
            self.values.append({})
            number = 0
            if isinstance(avro_type, list):
                number, at = decode_long(body, at)
            if not isinstance(avro_type, list) or _branch(avro_type, number) != "null":
                at = self._add(map_value_type(avro_type) == "long", at)
        self._compare_up_to(at)
        self.size = at - start
        filled = -(-self.size // _WORD) * _WORD
        self.mask = np.frombuffer(bytes(self._mask).ljust(filled, b"\0"), np.uint8)
        self.text = np.frombuffer(body[start:at].ljust(filled, b"\0"), np.uint8)

    def _add(self, is_number: bool, at: int) -> int:
        body = self._body
        count = -1
        while count:
            count, at = decode_long(body, at)
            if count < 0:
                _, at = decode_long(body, at)
            for _ in range(abs(count)):
                key, value = decode_long(body, at)
                number, at = decode_long(body, value)
                if is_number:
                    self._compare_up_to(value)
                    self._mask += b"\x80" * (at - value)
                elif 0 <= number <= len(body) - at:
                    self._compare_up_to(at)
                    self._mask += bytes(number)
                    at += number
                else:
                    raise IrregularError
                self.values[-1][key] = value - self._start, at - self._start
        return at

    def _compare_up_to(self, position: int) -> None:
        self._mask += b"\xff" * (position - self._start - len(self._mask))


def _still_more(counts: np.ndarray) -> list[int]:
    """For each step, how many of falling counts are greater than its number."""
    steps = np.arange(int(counts[0]))
    found: list[int] = np.searchsorted(-counts, -steps, side="left").tolist()
    return found


def _note(
    places: Mapping[int, Places], keys: np.ndarray, starts: np.ndarray, ends: np.ndarray, rows: np.ndarray
) -> None:
    """Notes where the values of some keys are."""
    for key in places.keys() & range(keys.min(), keys.max() + 1):
        found = keys == key
        noted = rows[found]
        places[key].starts[noted], places[key].ends[noted] = starts[found], ends[found]


def map_value_type(avro_type: Any) -> str:
    """The type of the values of an array of pairs of a key and a value, or of a union of it and null.

    Raises:
        IrregularError: it is no such type.
    """
    branches = avro_type if isinstance(avro_type, list) else [avro_type]
    arrays = [each for each in branches if each != "null"]
    items = arrays[0].get("items") if len(arrays) == 1 and isinstance(arrays[0], dict) else None
    fields = items.get("fields", []) if isinstance(items, dict) else []
    types = [fields[1]["type"]] if [field["name"] for field in fields] == ["key", "value"] else []
    if fields[:1] and fields[0]["type"] == "int" and types in (["long"], ["bytes"]):
        return str(types[0])
    raise IrregularError


def _branch(branches: list[Any], number: int) -> Any:
    if not 0 <= number < len(branches):
        raise IrregularError
    return branches[number]


def distinct_values(values: np.ndarray) -> list[int]:
    """The different numbers among some.

    Raises:
        IrregularError: they are too many.
    """
    if len(values) and (values == values[0]).all():
        return [int(values[0])]
    least = int(values.min()) if len(values) else 0
    if len(values) and int(values.max()) - least < _FEW_VALUES:  # sooner than by sorting them
        found: list[int] = (np.flatnonzero(np.bincount(values - least)) + least).tolist()
    else:
        found = np.unique(values).tolist()
    if len(found) > _MOST_WAYS:
        raise IrregularError
    return found


def _by_value(values: np.ndarray, at: np.ndarray, skip: Callable[[int, np.ndarray], np.ndarray]) -> np.ndarray:
    """Where values end that are skipped in one way for each number that was read before them."""
    distinct = distinct_values(values)
    if len(distinct) == 1:
        return skip(distinct[0], at)
    ends = at.copy()
    for value in distinct:
        chosen = np.flatnonzero(values == value)
        ends[chosen] = skip(value, at[chosen])
    return ends


def _last_bits(words: np.ndarray) -> np.ndarray:
    """The high bit of the byte that ends a number; 0 if it is longer than eight bytes."""
    return _lowest(~words & _HIGH_BITS)


def _unzigzag(values: np.ndarray) -> np.ndarray:
    found: np.ndarray = (values >> np.uint64(1)).astype(np.int64) ^ -(values & np.uint64(1)).astype(np.int64)
    return found


def _lowest(bits: np.ndarray) -> np.ndarray:
    lowest: np.ndarray = bits & (~bits + np.uint64(1))
    return lowest


def _place_of_stop(stops: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    """How many bytes there are up to the first, second, … bit of a word."""
    for place in range(1, int(numbers.max())):
        stops = np.where(numbers > place, stops & (stops - np.uint64(1)), stops)
    return _byte_count(_lowest(stops))


def _byte_count(last: np.ndarray) -> np.ndarray:
    """Up to which byte a number goes; 0 if it goes beyond the eighth."""
    return np.frexp(last.astype(np.float64))[1].astype(np.int64) >> 3
