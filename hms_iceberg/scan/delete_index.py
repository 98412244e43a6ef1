"""Which delete files apply to which data files, as joins of two frames.

- A deletion vector applies to the data file it names, and replaces position delete files for it.
- A position delete file applies to the one data file that it names (or whose path is both of its bounds), else to the
  files of its partition; if the file's data sequence number is not greater than its own.
- What names its data file applies to it whatever the partitions and specs of both, as in Apache Iceberg before 1.12,
  which refuses to read it if they differ.
- An equality delete file applies to the files of its partition, or of all if its spec is unpartitioned; if the
  file's data sequence number is less than its own, and the bounds of both leave a common key possible.

Source: Iceberg specification, "Scan Planning".
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from hms_iceberg.errors import CorruptManifestError
from hms_iceberg.lazy import pl
from hms_iceberg.scan.partition_columns import PartitionColumns, decode_bounds, has_bounds
from hms_iceberg.spec.data_types import DoubleType, FloatType, IcebergType, PrimitiveType
from hms_iceberg.spec.manifests.manifest_values import DELETE_FILE_PATH_ID, DataFileContent

__all__ = ["DELETE_FILE_PATH_ID", "DeleteIndex", "key_metric_columns"]

# How many pairs of data file and delete file are looked at in one go.
_PAIRS_AT_ONCE = 4_000_000


@dataclass(frozen=True)
class DeleteIndex:
    """Finds the deletes of data files.

    Args:
        partitions: the table's partition columns.
        unpartitioned: ids of the specs whose equality deletes apply everywhere.
        key_types: types of the fields that are keys of equality deletes, by id.
    """

    partitions: PartitionColumns
    unpartitioned: Collection[int]
    key_types: Mapping[int, IcebergType]

    def assign(self, files: pl.DataFrame, deletes: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
        """The delete files that apply to any file, and the pairs of data file and delete file.

        Args:
            files: data files, with the metrics of all keys (see :func:`key_metric_columns`).
            deletes: delete files with the same, and the column ``referenced_data_file`` filled in from bounds.

        Returns:
            The delete files of the pairs; and the pairs: ``data_file`` (row in ``files``) and ``delete_file`` (row in
            the returned delete files), sorted.

        Raises:
            CorruptManifestError: two deletion vectors for one file, or one that is older than its file.
        """
        if files.height == 0 or deletes.height == 0:
            return deletes.clear(), _no_pairs()
        data = files.with_row_index("data_file")
        delete = deletes.with_row_index("delete_file")
        is_position = delete["content"] == int(DataFileContent.POSITION_DELETES)
        is_vector = is_position & (delete["file_format"] == "PUFFIN")
        vectors = self._vectors(data, delete.filter(is_vector))
        positions = self._positions(data, delete.filter(is_position & ~is_vector), vectors)
        equality = self._equality(data, delete.filter(~is_position))
        pairs = pl.concat([vectors, positions, *equality])
        used = pairs.select(pl.col("delete_file").unique().sort())
        renumbered = used.with_row_index("number")
        pairs = pairs.join(renumbered, on="delete_file").select("data_file", pl.col("number").alias("delete_file"))
        return deletes[used["delete_file"]], pairs.sort("data_file", "delete_file")

    def _vectors(self, data: pl.DataFrame, vectors: pl.DataFrame) -> pl.DataFrame:
        if vectors.height == 0:
            return _no_pairs()
        pairs = data.join(vectors, left_on="file_path", right_on="referenced_data_file", suffix="_delete")
        twice = pairs.filter(pl.col("data_file").is_duplicated())
        if twice.height:
            raise CorruptManifestError(
                f"Cannot plan the deletes of {twice['file_path'][0]}: it has {twice.height} deletion vectors, the "
                f"first two in {' and '.join(twice['file_path_delete'].to_list()[:2])}; a file may have one"
            )
        stray = pairs.filter(pl.col("sequence_number") > pl.col("sequence_number_delete"))
        if stray.height:
            row = stray.row(0, named=True)
            raise CorruptManifestError(
                f"Cannot plan the deletes of {row['file_path']} (sequence number {row['sequence_number']}, spec "
                f"{row['spec_id']}): its deletion vector in {row['file_path_delete']} has sequence number "
                f"{row['sequence_number_delete']}; a vector is at least as new as its file"
            )
        return pairs.select("data_file", "delete_file")

    def _positions(self, data: pl.DataFrame, deletes: pl.DataFrame, vectors: pl.DataFrame) -> pl.DataFrame:
        if deletes.height == 0:
            return vectors.clear()
        data = data.join(vectors, on="data_file", how="anti")
        in_order = pl.col("sequence_number") <= pl.col("sequence_number_delete")
        by_path = deletes.filter(pl.col("referenced_data_file").is_not_null()).select(
            "delete_file", "sequence_number", pl.col("referenced_data_file").alias("file_path")
        )
        named = data.join(by_path, on="file_path", suffix="_delete").filter(in_order)
        found = [named.select("data_file", "delete_file")]
        rest = deletes.filter(pl.col("referenced_data_file").is_null())
        for spec_id, group in _by_spec(rest):
            own = data.filter(pl.col("spec_id") == spec_id)
            for pairs in self._same_partition(own, group, spec_id, ("sequence_number",)):
                found.append(pairs.filter(in_order).select("data_file", "delete_file"))
        return pl.concat(found)

    def _equality(self, data: pl.DataFrame, deletes: pl.DataFrame) -> Iterator[pl.DataFrame]:
        in_order = pl.col("sequence_number") < pl.col("sequence_number_delete")
        metrics = [name for field_id in self.key_types for name in key_metric_columns(field_id)]
        keys = [_is_key(field_id) for field_id in self.key_types]
        kept = ("sequence_number", *metrics)
        for spec_id, group in _by_spec(self._with_keys(deletes)):
            everywhere = spec_id in self.unpartitioned
            own = data if everywhere else data.filter(pl.col("spec_id") == spec_id)
            for pairs in self._same_partition(own, group, None if everywhere else spec_id, kept, keys):
                yield self._with_common_key(pairs.filter(in_order))

    def _with_keys(self, deletes: pl.DataFrame) -> pl.DataFrame:
        """Adds a column for each key that says which delete files have it."""
        # Not with `list.contains`, which is wrong for some lists in polars 1.30.
        lists = deletes["equality_ids"].to_list()
        return deletes.with_columns(
            pl.Series(_is_key(key), [key in (ids or ()) for ids in lists], dtype=pl.Boolean) for key in self.key_types
        )

    def _same_partition(
        self,
        data: pl.DataFrame,
        deletes: pl.DataFrame,
        spec_id: int | None,
        kept: Collection[str],
        of_deletes: Collection[str] = (),
    ) -> Iterator[pl.DataFrame]:
        """Pairs of equal partitions; of all files if the spec id is None."""
        columns = () if spec_id is None else self.partitions.columns(spec_id)
        keys = [name for name in columns if data.height and data.schema[name] != _null()]
        left = _with_zero_signs(data.select("data_file", *kept, *keys), keys)
        right = _with_zero_signs(deletes.select("delete_file", *kept, *of_deletes, *keys), keys)
        keys = [name for name in left.columns if name in keys or name.startswith("zero_")]
        step = max(1, _PAIRS_AT_ONCE // max(1, data.height)) if not keys else deletes.height
        for start in range(0, deletes.height, step):
            part = right.slice(start, step)
            if keys:
                yield left.join(part, on=keys, suffix="_delete", nulls_equal=True)
            else:
                yield left.join(part, how="cross", suffix="_delete")

    def _with_common_key(self, pairs: pl.DataFrame) -> pl.DataFrame:
        """Pairs whose metrics leave a row possible that the delete file deletes."""
        possible = pl.Series([True]).new_from_index(0, pairs.height)
        for field_id, key_type in self.key_types.items():
            if not isinstance(key_type, PrimitiveType):
                continue
            possible &= _overlaps(pairs, field_id, key_type) | ~pairs[_is_key(field_id)]
        return pairs.filter(possible).select("data_file", "delete_file")


def key_metric_columns(field_id: int) -> tuple[str, str, str, str, str]:
    """Names of the columns that hold a key's metrics: values, nulls, NaN, lower and upper bound as stored."""
    return f"values_{field_id}", f"nulls_{field_id}", f"nans_{field_id}", f"lower_{field_id}", f"upper_{field_id}"


def _is_key(field_id: int) -> str:
    return f"is_key_{field_id}"


def _overlaps(pairs: pl.DataFrame, field_id: int, key_type: IcebergType) -> pl.Series:
    values, nulls, nans, lower, upper = key_metric_columns(field_id)
    data_nulls, delete_nulls = pairs[nulls], pairs[f"{nulls}_delete"]
    both_null = (data_nulls != 0).fill_null(True) & (delete_nulls != 0).fill_null(True)
    data_all_null = (data_nulls == pairs[values]).fill_null(False)
    delete_all_null = (delete_nulls == pairs[f"{values}_delete"]).fill_null(False)
    apart = (data_all_null & (delete_nulls == 0).fill_null(False)) | (
        delete_all_null & (data_nulls == 0).fill_null(False)
    )
    if has_bounds(key_type):
        data_lower, data_upper = decode_bounds(pairs[lower], key_type), decode_bounds(pairs[upper], key_type)
        delete_lower = decode_bounds(pairs[f"{lower}_delete"], key_type)
        delete_upper = decode_bounds(pairs[f"{upper}_delete"], key_type)
        known = data_lower.is_not_null() & data_upper.is_not_null()
        known &= delete_lower.is_not_null() & delete_upper.is_not_null()
        if isinstance(key_type, FloatType | DoubleType):
            # NaN equals NaN, and is within no bounds.
            known &= (pairs[nans] == 0).fill_null(False) | (pairs[f"{nans}_delete"] == 0).fill_null(False)
        apart |= known & ((data_lower > delete_upper) | (delete_lower > data_upper)).fill_null(False)
    return both_null | ~apart


def _with_zero_signs(frame: pl.DataFrame, keys: Collection[str]) -> pl.DataFrame:
    """Adds the sign of zeros as a key: partitions of -0.0 and 0.0 differ, and a join takes them for equal."""
    floating = [name for name in keys if frame.schema[name] in (pl.Float32, pl.Float64)]
    return frame.with_columns(
        ((pl.col(name) == 0) & (1 / pl.col(name) < 0)).fill_null(False).alias(f"zero_{name}") for name in floating
    )


def _by_spec(deletes: pl.DataFrame) -> Iterator[tuple[int, pl.DataFrame]]:
    for spec_id in deletes["spec_id"].unique().sort():
        yield spec_id, deletes.filter(deletes["spec_id"] == spec_id)


def _no_pairs() -> pl.DataFrame:
    return pl.DataFrame(schema={"data_file": pl.UInt32, "delete_file": pl.UInt32})


def _null() -> object:
    return pl.Null
