"""Many Avro records read through at once: where a field ends in each of them, as columns of numbers.

A position is a number of bytes from the beginning of all records; a column of positions has one for each record.
Numbers are wrong if the records are not where they are thought to be, and what is read of them is checked only so far
that nothing is read outside the bytes: whoever asks has to prove that the records began where it said.

Source: Avro specification, "Binary Encoding".
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from hms_iceberg.scan.manifests.map_shape import IrregularError, MapShape, branch_of, map_value_type
from hms_iceberg.spec.manifests.avro_container import decode_long

# Entries that differ in more ways are read faster one by one.
_MOST_WAYS = 64
_FEW_VALUES = 4_096
# Which part of the entries a layout must fit to be used, first of so many.
_WORTH = 0.25
_SAMPLED = 16
# Up to so many bytes, values are compared before they are read.
_MOST_ALIKE = 64
_HIGH_BITS = np.uint64(0x8080808080808080)
# In a length that has two bytes, or is negative.
_NOT_SHORT = 0x81
_MOST_BYTE = 0xFF
# Numbers are passed over by looking at so many words at once, each of at least so many numbers if it is common.
_MOST_WORDS = 31
_NUMBERS_OF_WORD = 4
_EVERY_BYTE = np.uint64(0x0101010101010101)
_LOW_BITS = 0x7F
# Takes the lowest bit of each byte into the last byte.
_GATHER_BITS = np.uint64(0x0102040810204080)
_COUNTED_BITS = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1, bitorder="little").cumsum(axis=1)
# For each set of bits in a byte, the place of the first, second, … bit, counted from one.
_PLACES_OF_STOPS = (_COUNTED_BITS[:, None] == np.arange(1, 9)[:, None]).argmax(axis=2).astype(np.int64).ravel() + 1
_SIZES = {"null": 0, "boolean": 1, "float": 4, "double": 8}
_WORD = 8
_BEYOND = _MOST_WORDS * _WORD
# The number that a byte is.
_UNZIGZAG = np.array([(byte >> 1) ^ -(byte & 1) for byte in range(_LOW_BITS + 1)], np.int64)


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
        self.body = b"".join([*blocks, bytes(_BEYOND)])
        self.size = len(self.body) - _BEYOND
        self._bytes = np.frombuffer(self.body, np.uint8)
        # Eight bytes from each position on.
        self._words = np.ndarray(self.size + 1, "<u8", self.body, strides=(1,))

    def varints(self, at: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Integers, and where they end."""
        first = self._bytes.take(at)
        if first.max(initial=0) <= _LOW_BITS:
            return _UNZIGZAG.take(first), at + 1
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

    def alike(self, types: Sequence[Any], at: np.ndarray) -> int:
        """How many of some values that follow one another are the same in all records, from the first one on.

        Args:
            types: of the values.
            at: where the first one begins.
        """
        sample = self.fixed(at[:: -(-len(at) // _SAMPLED)], np.dtype((np.uint8, _MOST_ALIKE)))
        differs = np.flatnonzero((sample != sample[0]).any(axis=0))
        most = int(differs[0]) if len(differs) else _MOST_ALIKE
        size, ends, end = 0, [], at[:1]
        for avro_type in types:
            end = self.skip(avro_type, end)
            if end[0] - at[0] > most:
                break
            ends.append(end)
            size = int(end[0] - at[0])
        texts = self.fixed(at, np.dtype((np.uint8, size))).tobytes() if size else b""
        return len(ends) if texts == texts[:size] * len(at) else 0

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
            return _by_value(branches, begun, lambda branch, start: self.skip(branch_of(avro_type, branch), start))
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
            shape = MapShape(self.body, int(at[left[0]]), types)
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
                if len(types) > 1 and map_value_type(avro_type) == "bytes":
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
            if branch_of(avro_type, number) != "null":
                chosen = _places_of(numbers == number)
                ends[chosen] = self._walk_pairs(value_type, ends[chosen], rows[chosen], places)
        return ends

    def _has_shape(self, at: np.ndarray, shape: MapShape) -> np.ndarray:
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
        if not counts.any():
            return begun
        is_sized = counts < 0  # and says how many bytes the pairs take
        if is_sized.any():
            begun[is_sized] = self._skip_varints(begun[is_sized])
            counts = np.abs(counts)
        if counts.max() > self.size:
            raise IrregularError
        chosen = _places_of(counts > 0)
        walk = self._walk_texts if value_type == "bytes" else self._walk_numbers
        ends = walk(begun[chosen], counts[chosen], rows[chosen], places)
        begun[chosen] = self._walk_pairs(value_type, ends, rows[chosen], places)
        return begun

    def _walk_texts(
        self, at: np.ndarray, counts: np.ndarray, rows: np.ndarray, places: Mapping[int, Places]
    ) -> np.ndarray:
        """Where pairs of a key and a text end.

        Those of small keys and short texts are gone through in a few steps for all records.
        """
        order = _falling(counts)
        sorted_at, counts, rows = at[order], counts[order], rows[order]
        codes = {key: 2 * key for key in places if 0 <= key <= _LOW_BITS >> 1}
        bytes_at = self._bytes.take
        for active in _still_more(counts):
            here = sorted_at[:active]
            keys, lengths = bytes_at(here), bytes_at(here + 1)
            if keys.max() > _LOW_BITS or (lengths & _NOT_SHORT).any():
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
        ends = np.empty_like(at)
        ends[order] = sorted_at
        return ends

    def _walk_numbers(
        self, at: np.ndarray, counts: np.ndarray, rows: np.ndarray, places: Mapping[int, Places]
    ) -> np.ndarray:
        """Where pairs of a key and a number end; most records have a key where the first one has it."""
        if not places:
            return self._skip_numbers(at, 2 * counts)
        for key, place in self._numbers_of(int(at[0]), int(counts[0]), places.keys()).items():
            some = counts > place
            keys, values = self.varints(self._skip_numbers(at[some], np.full(int(some.sum()), 2 * place)))
            found = np.flatnonzero(keys == key)
            noted = rows[some][found]
            places[key].starts[noted], places[key].ends[noted] = values[found], self._skip_varints(values[found])
        left = np.zeros(len(at), bool)
        for each in places.values():
            left |= each.ends[rows] == 0
        others = np.flatnonzero(left)
        others = others[_falling(counts[others])]
        begun, counts_left, others = at[others], counts[others], rows[others]
        for active in _still_more(counts_left) if len(begun) else ():
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
        ends = at.copy()
        rows = np.flatnonzero(left)
        at, left = at[rows], left[rows]
        while len(rows):
            width = min(_MOST_WORDS, int(left.max()) // _NUMBERS_OF_WORD + 1)
            text = np.ndarray((self.size + 1, width * _WORD), np.uint8, self.body, strides=(1, 1))[at]
            stops = (text <= _LOW_BITS).view("<u8")
            # A row for each word instead of each record, so that they are added up at once.
            found = np.ascontiguousarray((stops * _EVERY_BYTE).view(np.uint8)[:, _WORD - 1 :: _WORD].T)
            for before, counts in pairwise(found):
                counts += before
            wanted = np.minimum(left, _MOST_BYTE).astype(np.uint8)
            word = (found < wanted).sum(axis=0, dtype=np.uint8)
            done = _places_of(word < width)
            place, column = word[done].astype(np.int64), np.arange(len(rows))[done]
            before = np.where(place > 0, found[place - 1, column], 0)
            ends[rows[done]] = at[done] + place * _WORD + _place_of_stop(stops[column, place], left[done] - before)
            more = np.flatnonzero(word == width)
            rows, at, left = rows[more], at[more] + width * _WORD, left[more] - found[-1, more]
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


def _places_of(chosen: np.ndarray) -> np.ndarray | slice:
    """Where something is so; all places at once if it is so everywhere."""
    return slice(None) if chosen.all() else np.flatnonzero(chosen)


def _falling(counts: np.ndarray) -> np.ndarray | slice:
    """The order in which counts fall."""
    most = int(counts.max(initial=0))
    if (counts == most).all():
        return slice(None)
    # Single bytes are sorted sooner.
    return np.argsort((most - counts).astype(np.uint8 if most <= _MOST_BYTE else np.int64), kind="stable")


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
    """How many bytes of a word there are up to the first, second, … of those that are one."""
    found: np.ndarray = _PLACES_OF_STOPS.take(
        (stops * _GATHER_BITS >> np.uint64(56)).astype(np.int64) * 8 + numbers - 1
    )
    return found


def _byte_count(last: np.ndarray) -> np.ndarray:
    """Up to which byte a number goes; 0 if it goes beyond the eighth."""
    return np.frexp(last.astype(np.float64))[1].astype(np.int64) >> 3
